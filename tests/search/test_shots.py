"""A setting for each shot: the list, the scores of all frames, and exit codes."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import vkssim as library
from vkssim.errors import OptionError

from ..support.commands import vkssim
from .clips import ASKED, CUT, FRAMES, QUICK, WORDS, arguments, break_settings, source

pytestmark = pytest.mark.usefixtures("shared_device")


TARGET = "float_ssim=0.93"


def searched(clip: str, **more: Any) -> Any:
    asked: dict[str, Any] = {**ASKED, "targets": TARGET, **more}
    return library.search_shots(clip, **arguments(**asked))


def test_each_shot_has_its_cheapest_setting(clip: str) -> None:
    """The settings are those that every CRF from 28 to 35 says, shot by shot."""
    running = searched(clip)
    shots = list(running)
    assert [(shot.first, shot.count) for shot in shots] == [(0, CUT), (CUT, FRAMES - CUT)]
    met: list[list[float]] = [[], []]
    for crf in range(28, 36):
        for number, shot in enumerate(searched(clip, least=crf, most=crf)):
            if shot.meets:
                met[number].append(shot.setting)
    assert [shot.setting for shot in shots] == [max(settings) for settings in met]
    assert running.zones() == "".join(
        f"{shot.first} {shot.first + shot.count} x264 reset --crf {shot.setting:g} --preset ultrafast\n" for shot in shots
    )
    assert running.bytes == sum(shot.trial.bytes for shot in shots)
    report = running.report
    assert [frame.index for frame in report.frames] == list(range(FRAMES))
    assert [frame.time for frame in report.frames] == pytest.approx([number / 25 for number in range(FRAMES)], abs=1e-3)
    assert all(part.mean() >= 0.93 for part in np.split(report.column("float_ssim"), [CUT]))


def test_the_command_writes_the_list_the_scores_and_a_page(clip: str, tmp_path: Path) -> None:
    zones, scores, page = (str(tmp_path / name) for name in ("zones.txt", "scores.json", "page.html"))
    outputs = ("--shots", zones, "--scores", scores, "--html", page)
    result = vkssim("search", clip, *WORDS, "--target", TARGET, *outputs)
    assert result.exit_code == 0, result.stderr
    assert f"wrote {page}" in result.stderr
    assert "2 shots" in result.stdout
    lines = [line.split() for line in Path(zones).read_text().splitlines()]
    assert [line[:4] for line in lines] == [["0", str(CUT), "x264", "reset"], [str(CUT), str(FRAMES), "x264", "reset"]]
    assert len(json.loads(Path(scores).read_text())["frames"]) == FRAMES
    text = unescape(Path(page).read_text())
    assert "<title>clip.mkv: a crf for each of 2 shots – vkssim</title>" in text
    assert "2 of 2" in text
    assert Path(zones).read_text().strip() in text
    rows = re.findall(r"(\d+) to (\d+)</td><td class=\"\">([\d.]+)<", text)
    assert [(int(first), int(last) + 1, setting) for first, last, setting in rows] == [
        (int(words[0]), int(words[1]), words[5]) for words in lines
    ]
    trials = int(re.findall(r"All trials \((\d+)\)", text)[0])
    assert trials == sum(shot.trials for shot in searched(clip))
    assert text.count('<circle class="ring" cx=') == 2
    drawn = vkssim("report", scores, "-o", page)
    assert drawn.exit_code == 0, drawn.stderr
    assert "float_ssim" in Path(page).read_text()


def test_shots_that_meet_no_target_exit_with_1(clip: str, tmp_path: Path) -> None:
    zones, out = tmp_path / "zones.json", tmp_path / "out.mkv"
    words = ("--target", "float_ssim=0.9999", "--least", "30", "--most", "31", "--shots", str(zones), "-o", str(out))
    result = vkssim("search", clip, *WORDS, *words)
    assert result.exit_code == 1
    assert "no crf that was tried meets the targets in 2 shots of 2" in result.stderr
    assert "note: no file is written" in result.stderr
    assert not out.exists()
    assert "av1an" not in result.stdout
    assert [shot["meets"] for shot in json.loads(zones.read_text())["shots"]] == [False, False]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--shots", "zones.xml"), "the endings are .txt"),
        (("--scores", "scores.json"), "--scores goes with --shots"),
        (("--shots", "zones.txt", "--two-pass"), "--two-pass is for one setting of the whole clip"),
        (("--shots", "zones.txt", "--whole"), "--whole is for one setting of the whole clip"),
        (("--shots", "zones.txt", "-o", "out.avi"), "the endings are .mkv"),
        (("--shots", "zones.txt", "--parameter", "qp"), "Av1an has no zones for qp"),
        (("--shots", "zones.txt", "--enc", "maxrate=2000k"), "--enc maxrate: Av1an gives options to x264 itself"),
    ],
)
def test_what_is_refused(clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], text: str) -> None:
    monkeypatch.chdir(tmp_path)
    result = vkssim("search", clip, *WORDS, "--target", TARGET, *words)
    assert result.exit_code == 2
    assert text in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoder", QUICK)
@pytest.mark.parametrize("ending", [".mkv", ".mp4"])
def test_the_clip_is_written_with_the_setting_of_each_shot(tmp_path: Path, encoder: str, ending: str) -> None:
    """The file has the scores of the trials, from the start and after a seek back to a shot with another setting."""
    path, out = source(tmp_path / "clip.mkv", sound="flac", count=3 * CUT, shots=3), tmp_path / f"out{ending}"
    step = 1.0 if encoder == "libsvtav1" else 0.25
    running = searched(path, encoder=encoder, options=QUICK[encoder], targets="float_ssim=0.93", output=out, step=step)
    report = running.report
    assert len({shot.setting for shot in running.shots}) > 1
    written = library.score_files(path, out, features="float_ssim=scale=1")
    assert written.column("float_ssim") == pytest.approx(report.column("float_ssim"), abs=1e-9)
    with av.open(str(out)) as container:
        stream: Any = container.streams.video[0]
        assert [packet.is_keyframe for packet in container.demux(stream) if packet.size].count(True) == 3
        container.seek(int(2 * CUT / 25 / stream.time_base), stream=stream)
        last = next(container.decode(stream)).to_ndarray()
        container.seek(0, stream=stream)
        frames = [frame.to_ndarray() for frame in container.decode(stream)]
        assert len(container.streams.audio) == 1
    np.testing.assert_array_equal(frames[2 * CUT], last)
    with av.open(str(out)) as container:
        np.testing.assert_array_equal(frames, [frame.to_ndarray() for frame in container.decode(video=0)])


def test_a_setting_that_cannot_be_used_is_named_with_the_frames_of_its_shot(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = searched(clip)
    assert first.report
    broken = first.shots[0].setting
    break_settings(monkeypatch, lambda setting, _output: setting == broken)
    running = searched(clip)
    assert running.report
    assert running.shots[0].setting == broken - 1
    assert running.notes[0].startswith(f"frames 0 to {CUT - 1}: crf {broken:g}: vp9 cannot decode the stream of libx264")


def test_a_search_that_was_closed_has_no_report(clip: str) -> None:
    running = searched(clip)
    running.close()
    with pytest.raises(OptionError, match="closed"):
        assert running.report
