"""Test the worst frames: their choice, their presentation times, and their table."""

from __future__ import annotations

import math
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from vkssim.cli.delivery import print_summary, print_worst
from vkssim.report.results import FrameScores, worst_frames

from ..support.commands import pair_words, succeed
from ..support.pictures import clip
from .reports import small_report

LUMA = clip(6)


def test_worst_first_and_what_has_no_score_before_all() -> None:
    report = small_report()
    report.frames = [FrameScores(n, {"float_ssim": score}) for n, score in enumerate((0.5, 0.2, math.nan, 0.2, 0.9))]
    assert [frame.index for frame in worst_frames(report, "float_ssim", 4)] == [2, 1, 3, 0]
    assert worst_frames(report, "float_ssim", 0) == []
    assert len(worst_frames(report, "float_ssim", 9)) == 5


@pytest.mark.parametrize(("flags", "frames"), [((), 3), (("--worst", "1"), 1), (("--worst", "0"), 0)])
def test_command_line(tmp_path: Path, flags: tuple[str, ...], frames: int) -> None:
    distorted = np.roll(LUMA, 1, axis=2)
    distorted[4] = 255 - LUMA[4]
    result = succeed(*pair_words(tmp_path, LUMA, distorted), *flags)
    _, heading, table = result.stdout.partition("worst frames by float_ssim")
    rows = [line.split("│")[1].strip() for line in table.splitlines() if line.startswith("│")]
    assert (bool(heading), len(rows)) == (frames > 0, frames)
    assert rows[:1] == ["4"][:frames]
    assert "time" not in table, "raw clips have none"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("columns", "shown"), [(80, 5), (104, 7), (120, 8)])
def test_tables_fit_the_terminal(columns: int, shown: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider, no number is cut, with the longest name; the mean is there in dB as well."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    report = small_report()
    report.names, report.similarities = ("float_ms_ssim", "float_ms_ssim_l_scale0"), ("float_ms_ssim",)
    report.frames = [FrameScores(123456, dict.fromkeys(report.names, 0.987654321), 36000.0)]
    terminal = Terminal()
    print_summary(report, terminal)
    print_worst(report, 3, terminal)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    tables = [line for line in lines if line[:1] in "┏┃┡│└"]
    assert max(map(len, tables)) <= columns
    assert all("…" not in line for line in tables)
    heads = [head.strip() for head in tables[1].split("┃")[2:-1]]
    assert (len(heads), heads[:2]) == (shown, ["mean", "mean dB"])
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in tables if line.startswith("│")]
    assert rows[0][:3] == ["float_ms_ssim", "0.987654", "19.085"]
    assert rows[1][:3] == ["float_ms_ssim_l_scale0", "0.987654", ""]
    assert rows[2] == ["123456", "10:00:00.000", "0.987654"]


def test_no_decibel_where_there_is_none() -> None:
    """Null if a frame has no score, infinite for identical clips, absent for scores that are no similarity."""
    report = small_report()
    report.similarities = ("float_ms_ssim",)
    for score, shown in ((math.nan, "null"), (1.0, "inf")):
        report.frames = [FrameScores(0, {"float_ms_ssim": score, "float_ssim": 0.5})]
        text = StringIO()
        print_summary(report, text)
        rows = [[cell.strip() for cell in line.split("│")] for line in text.getvalue().splitlines() if "│" in line]
        assert {row[1]: row[3] for row in rows} == {"float_ms_ssim": shown, "float_ssim": ""}
