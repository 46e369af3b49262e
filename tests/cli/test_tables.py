"""Tables on terminals of several widths: no number is broken, no table is too wide, and what does not fit is named."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from vkssim.cli import batch, tables
from vkssim.cli.delivery import print_summary
from vkssim.cli.tables import print_table
from vkssim.ladder.tables import _OLDEST_COLUMNS
from vkssim.report import render
from vkssim.report.results import FrameScores, ScoreReport
from vkssim.types import BackendInfo

from ..ladder.ladders import manifest
from ..support.commands import succeed

NAMES = ("float_ms_ssim", "float_ssim")
NUMBER = re.compile(r"[-+]?\d+\.\d+")
WIDTHS = (60, 80, 120)


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The width of the terminal that tables are printed on."""
    monkeypatch.setattr(tables, "console", lambda file: Console(file=file, width=request.param))
    return int(request.param)


def _results(path: Path) -> str:
    """Results of a batch: two references at eight rates by two codecs, with opinions."""
    rows: list[dict[str, Any]] = []
    for place in range(16):
        number, codec = place // 2, ("x264", "x265")[place % 2]
        row: dict[str, Any] = dict.fromkeys(_OLDEST_COLUMNS, "")
        row |= {"reference": "a/folder/of/its/own/a_rather_long_name_of_a_clip.mp4", "distorted": f"{codec}_{number}.mp4"}
        row |= {"frames": 250, "measured_kbps": 500 * 2**number * (1 - 0.2 * (place % 2)), "codec": codec}
        row |= {"mos": 1.5 + 0.4 * number + 0.05 * (place % 3), "distortion": "jpeg2000"}
        for name, lowest in zip(NAMES, (0.9, 0.8), strict=True):
            row |= {f"{name}_{pooling}": lowest + 0.011 * number for pooling in ("mean", "harmonic_mean")}
        rows.append(row)
    return manifest(path, rows)


def _report(path: Path, drop: float = 0.0, frames: int = 3) -> str:
    report = ScoreReport("r", "d", 32, 24, 8, NAMES, BackendInfo("cpu", "", ""))
    report.frames = [FrameScores(100_000 + n, dict.fromkeys(NAMES, 0.98635112 - drop * n)) for n in range(frames)]
    path.write_text(render(report, "json", "max"))
    return str(path)


def _check(text: str, width: int, decimals: tuple[int, ...]) -> list[str]:
    """Check the only table in a text, and return the words of its headings."""
    lines = [line for line in text.splitlines() if line[:1] in "┏┃┡│└├"]
    assert lines
    assert max(map(len, lines)) <= width
    assert "\\n" not in text
    assert "…" not in text
    heads = [line for line in lines if line.startswith("┃")]
    cells = [cell.strip() for line in lines if line.startswith("│") for cell in line.split("│")[1:-1]]
    numbers = [number for cell in cells if "mp4" not in cell for number in re.findall(r"[-+]?\d*\.\d*", cell)]
    assert numbers
    for number in numbers:
        assert NUMBER.fullmatch(number), f"{number} is a part of a number"
        assert len(number.partition(".")[2]) in decimals, f"{number} is cut"
    return " ".join(heads).replace("┃", " ").split()


def test_correlate(width: int, tmp_path: Path) -> None:
    result = succeed("correlate", _results(tmp_path / "r.csv"))
    heads = _check(result.stdout, width, (3, 4))
    assert "PLCC" in heads
    left_out = [name for name in ("KROCC", "SROCC", "RMSE") if name not in heads]
    assert bool(left_out) == (width < 120)
    assert all(name in result.stdout for name in left_out), "columns that are left out are named"
    assert ("--json has all" in result.stdout) == (width < 120)


def test_bd_rate(width: int, tmp_path: Path) -> None:
    words = ("--anchor", "codec=x264", "--test", "codec=x265")
    result = succeed("bd-rate", _results(tmp_path / "r.csv"), *words)
    assert _check(result.stdout, width, (2, 6)).count("BD-rate") == 1


def test_compare(width: int, tmp_path: Path) -> None:
    result = succeed("compare", _report(tmp_path / "a.json"), _report(tmp_path / "b.json", 0.0123))
    heads = _check(result.stdout, width, (6,))
    assert {"before", "after", "score"} <= set(heads)


def test_batch(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of a reference are together, names are whole, and what all rows have is below the table."""
    poolings, rows = ("mean", "harmonic_mean", "p5", "min"), []
    for title, crf in (("sea", 18), ("park", 18), ("sea", 30), ("park", 30)):
        row: dict[str, Any] = {"reference": f"/a/folder/{title}.mp4", "distorted": f"/a/folder/of/its/own/{title}_{crf}.mp4"}
        row |= {"preset": "slow", "crf": crf, "frames": 250, "measured_kbps": 1234.5}
        rows.append(row | {f"{name}_{pooling}": 0.98635112 for name in NAMES for pooling in poolings})
    rows[1] |= {"frames": None, "measured_kbps": None, **dict.fromkeys(name for name in row if name.startswith("float"))}
    batch._print(rows, "results.csv")
    shown = capsys.readouterr().out
    heads = _check(shown, width, (6,))
    assert {"reference", "distorted", "crf", NAMES[0]} <= set(heads)
    assert not {"frames", "preset"} & set(heads)
    assert "all rows: preset slow\n" in shown
    names = [[cell.strip() for cell in line.split("│")[1:3]] for line in shown.splitlines() if line.startswith("│")]
    assert names == [["sea.mp4", "sea_18.mp4"], ["", "sea_30.mp4"], ["park.mp4", "park_18.mp4"], ["", "park_30.mp4"]]
    assert shown.count("├") == 1, "a line between two references"
    assert width < 80 or re.search(r"park_18.mp4 +│ 18 +│ +failed │ +│", shown)


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["/clips/new/a.mp4", "/clips/old/b.mp4"], ["new/a.mp4", "old/b.mp4"]),
        (["/c/sintel_1080p_slow_crf18.mp4", "/c/sintel_1080p_slow_crf22.mp4"], ["…crf18.mp4", "…crf22.mp4"]),
        (["sea_18.mp4", "sea_22.mp4"], ["sea_18.mp4", "sea_22.mp4"]),
        (["/c/a.mp4", "/c/a.mp4"], ["/c/a.mp4", "/c/a.mp4"]),
    ],
    ids=["folders", "long beginnings", "short beginnings", "equal"],
)
def test_names_without_their_common_part(names: list[str], short: list[str]) -> None:
    assert tables.without_common_part(names) == short


def test_a_column_without_values_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """A score that is in dB already has no other mean in dB."""
    report = ScoreReport("r", "d", 32, 24, 8, NAMES, BackendInfo("cpu", "", ""))
    report.frames = [FrameScores(0, dict.fromkeys(NAMES, 17.5)), FrameScores(1, dict.fromkeys(NAMES, 16.5))]
    print_summary(report, sys.stdout)
    shown = capsys.readouterr().out
    assert "mean dB" not in shown
    assert "2 frames of" in shown


def test_numbers_stay_whole_where_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the table is as wide as it has to be."""
    monkeypatch.setattr(tables, "console", lambda file: Console(file=file, width=10))
    text = io.StringIO()
    rows = [["x" * 40, "0.12345678", "0.87654321"]]
    print_table("a title", ["name", "first", "second"], rows, text, optional=["first"])
    assert "0.87654321" in text.getvalue()
    assert "0.12345678" not in text.getvalue()
