"""Finding by how many frames a clip is shifted, using it, and the hint where nobody asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim import PictureOptions, ScoreReport, Selection, find_offset, score_files, score_many
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.pools import WorkerOptions
from vkssim.engine.ranges import FrameRange
from vkssim.engine.task import FixedPool
from vkssim.engine.verdict import add_hint
from vkssim.errors import InputError, InterruptedRunError, ThresholdError
from vkssim.frames.pairing.offset import MAX_SHIFT, Shift, signature
from vkssim.frames.raw import RawFile

from ..frames.encoding import encode_frames, video_frame
from ..page.pages import page_report
from ..support.clips import write, y4m_bytes
from ..support.commands import vkssim
from ..support.pictures import Picture, clip
from .in_ranges import InTurn, small_ranges

CONTENT = clip(60, 48, 64)
MOVING = np.stack([CONTENT[0, :, :64] // 2 + np.roll(CONTENT[1], 3 * number, axis=1) // 2 for number in range(60)])
FEATURE = "float_ssim=scale=1:window=uniform8"


def _y4m(path: Path, luma: Picture, space: str = "420") -> str:
    return write(path, y4m_bytes(luma, space))


def _coarse(luma: Picture) -> Picture:
    """As a codec might leave it."""
    return luma // 16 * 16


def _noisy(luma: Picture) -> Picture:
    return np.maximum(luma.astype(int) + np.random.default_rng(1).integers(-20, 21, luma.shape), 0).astype(np.uint8)


def _pair(folder: Path, offset: int, change: Callable[[Picture], Picture] = _coarse) -> tuple[str, str]:
    """A reference and a distorted clip whose frame i+offset is the reference's frame i."""
    reference, distorted = CONTENT[max(0, offset) :], CONTENT[max(0, -offset) :]
    return _y4m(folder / "ref.y4m", reference), _y4m(folder / "dis.y4m", change(distorted))


def _flicker(frames: int) -> Picture:
    """Grey pictures whose brightness is almost periodic."""
    n = np.arange(frames)
    brightness = 0.5 + 0.2 * np.sin(2 * np.pi * n / 7) + 0.1 * np.sin(n**2 / 300)
    return np.broadcast_to(np.round(255 * brightness).astype(np.uint8)[:, None, None], (frames, 96, 128))


FLICKER = _flicker(300)


@pytest.mark.parametrize("offset", [13, 1, 0, -1, -13])
def test_found(tmp_path: Path, offset: int) -> None:
    assert find_offset(*_pair(tmp_path, offset)) == offset


@pytest.mark.parametrize(
    "change",
    [
        lambda luma: (16 + luma * (219 / 255)).astype(np.uint8),
        lambda luma: np.maximum(luma, 30),
        lambda luma: np.where(np.arange(64) < 20, 128, luma).astype(np.uint8),
        lambda luma: (255 * (luma / 255) ** 2.2).astype(np.uint8),
        _noisy,
    ],
    ids=["another range", "clipped", "a bar", "gamma", "noise"],
)
def test_found_whatever_was_done(tmp_path: Path, change: Callable[[Picture], Picture]) -> None:
    assert find_offset(*_pair(tmp_path, 7, change)) == 7


def test_flicker_that_is_almost_periodic(tmp_path: Path) -> None:
    assert find_offset(_y4m(tmp_path / "a.y4m", FLICKER), _y4m(tmp_path / "b.y4m", _coarse(FLICKER[60:]))) == -60


def test_of_another_size_and_depth(tmp_path: Path) -> None:
    reference = _y4m(tmp_path / "ref.y4m", CONTENT)
    small = (CONTENT[5:, ::2, ::2].astype(np.uint16) << 2) + 1
    distorted = _y4m(tmp_path / "dis.y4m", small, "420p10")
    assert find_offset(reference, distorted, pictures=PictureOptions(scale="reference")) == -5


def test_beside_the_offset_that_was_given_and_behind_skipped_frames(tmp_path: Path) -> None:
    paths = _pair(tmp_path, 13)
    assert find_offset(*paths, selection=Selection(offset=20)) == 13
    assert find_offset(*paths, selection=Selection(skip_reference=4, skip_distorted=4)) == 13


LOOP = np.concatenate([CONTENT[:10]] * 6)
STILL = np.repeat(CONTENT[:1], 40, axis=0)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (LOOP, LOOP[4:], r"move too little to find the offset; it may be one of -14, -4, 6, 16. Give `offset`"),
        (CONTENT, clip(60, 48, 64, seed=5), r"at no offset of less than \d+ frames do the clips show the same pictures"),
        (CONTENT[:30], CONTENT[11:41], "at no offset of less than 11 frames"),  # the right one may lie behind the edge
        (FLICKER, FLICKER[121:], "at no offset of less than 120 frames"),
        (STILL, _coarse(STILL), "the clips stand still or move too little"),
        (STILL, _noisy(STILL), "the clips stand still or move too little"),
        (CONTENT[:8], CONTENT[2:10], "clips of 8 frames are too short to find an offset"),
        (MOVING, np.delete(MOVING, (24, 25), axis=0), "is -2 in one part of the clips and 0 in another: frames were dropped"),
    ],
    ids=["a loop", "something else", "at the edge", "flicker", "still", "still with noise", "too short", "two dropped"],
)
def test_what_is_not_certain_is_not_guessed(tmp_path: Path, first: Picture, second: Picture, why: str) -> None:
    with pytest.raises(InputError, match=why):
        find_offset(_y4m(tmp_path / "a.y4m", first), _y4m(tmp_path / "b.y4m", second))


def test_what_can_be_read_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the search for the offset reads - a second time"):
        find_offset("-", _y4m(tmp_path / "a.y4m", CONTENT))


@pytest.mark.parametrize("shape", [(1080, 1920), (1081, 1921), (72, 128), (48, 64), (5, 7), (1, 1)], ids=str)
def test_signature_is_the_mean_of_blocks(shape: tuple[int, int]) -> None:
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    plane = (100 + 50 * rows / shape[0] + 20 * columns / shape[1]).astype(np.uint8)
    found = signature(plane, 8)
    assert found.shape == (144,)
    assert found[0] == pytest.approx(plane[: -(-shape[0] // 9), : -(-shape[1] // 16)].mean(), abs=2)
    np.testing.assert_allclose(signature(plane.astype(np.uint16) << 2, 10), found, rtol=1e-12)


# -- in reports -------------------------------------------------------------------------------------------------------


def _scored(paths: tuple[str, str], **options: Any) -> ScoreReport:
    return score_files(*paths, features=FEATURE, backend="cpu", **options)


def _hints(report: ScoreReport) -> list[str]:
    return [warning for warning in report.warnings if "seem to be shifted" in warning]


def test_a_low_score_of_shifted_clips_gives_a_hint(tmp_path: Path) -> None:
    """Also if a threshold was not met; not if the offset was given, or times pair the frames."""
    paths = _pair(tmp_path, 13)
    (hint,) = _hints(_scored(paths))
    assert "frame i of " in hint
    assert "looks like frame i+13 of" in hint
    assert hint.endswith("--offset 13 or --find-offset would match them")
    with pytest.raises(ThresholdError) as raised:
        _scored(paths, fail_under=["float_ssim=0.9"])
    assert raised.value.report is not None
    assert _hints(raised.value.report) == [hint]
    assert _hints(_scored(paths, selection=Selection(offset=13))) == []
    assert _hints(_scored(paths, sync="pts")) == []


def test_no_hint_where_clips_are_bad_but_in_step(tmp_path: Path) -> None:
    report = _scored(_pair(tmp_path, 0, lambda luma: luma // 100 * 100))
    assert report.column("float_ssim").mean() < 0.9
    assert _hints(report) == []


def test_clips_without_any_score(tmp_path: Path) -> None:
    """The negative of a picture has a negative structure, to which a power of MS-SSIM does not apply."""
    luma = clip(12, 176, 176)
    paths = _y4m(tmp_path / "ref.y4m", luma), _y4m(tmp_path / "negative.y4m", 255 - luma)
    report = score_files(*paths, features="float_ms_ssim", backend="cpu")
    assert np.isnan(report.column("float_ms_ssim")).all()
    assert _hints(report) == []


def _timed(path: Path, shown: Sequence[tuple[int, float]]) -> str:
    """A clip of some frames of MOVING, each with its time in units of 1/25 s."""
    frames = [video_frame(64, 48, "gray", [MOVING[number]]) for number, _ in shown]
    return encode_frames(path, frames, "ffv1", times=[time / 25 for _, time in shown])


EVERY = [(number, float(number)) for number in range(60)]
BY_TIME, NOTHING, CURE = "--sync pts pairs frames by time", "", "or --find-offset would match them"


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A clip of all frames."""
    return _timed(tmp_path_factory.mktemp("timed") / "ref.mkv", EVERY)


@pytest.mark.parametrize(
    ("shown", "advice"),
    [
        ([frame for frame in EVERY if frame[0] not in (5, 6)], BY_TIME),
        ([frame for frame in EVERY if frame[0] % 16 != 5], BY_TIME),
        ([(number, time + 2 * (number > 30)) for number, time in EVERY], NOTHING),
        (sorted([*EVERY, *((number, time + 0.5) for number, time in EVERY)], key=lambda frame: frame[1]), BY_TIME),
        ([EVERY[0], *EVERY[13:]], BY_TIME),
        ([(number, 1.2 * time) for number, time in EVERY], NOTHING),
        ([(number, place) for place, number in enumerate([*range(20), *range(22, 60)])], NOTHING),
        ([(number, place) for place, number in enumerate([*range(20), *range(17, 60)])], NOTHING),
        ([(number, place) for place, number in enumerate(range(13, 60))], f"--offset -13 {CURE}"),
        ([(number, place) for place, number in enumerate([*[0] * 13, *range(60)])], f"--offset 13 {CURE}"),
    ],
    ids=[
        "two dropped", "several dropped", "a pause", "doubled rate", "still at first", "slower", "dropped, times lost",
        "doubled, times lost", "late", "early",
    ],
)  # fmt: skip
def test_one_advice_that_is_right(tmp_path: Path, every: str, shown: Sequence[tuple[int, float]], advice: str) -> None:
    report = _scored((every, _timed(tmp_path / "dis.mkv", shown)))
    advised = [warning for warning in report.warnings if "--" in warning]
    assert len(advised) == bool(advice)
    assert all(warning.endswith(advice) for warning in advised)


def test_several_devices_give_the_same_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = _pair(tmp_path, 13)
    (hint,) = _hints(_scored(paths))
    small_ranges(monkeypatch)
    ranges: list[FrameRange] = []
    two = FixedPool([InTurn(ranges), InTurn(ranges)])
    monkeypatch.setattr(WorkerOptions, "open", lambda *_arguments: two)
    assert _hints(_scored(paths)) == [hint]
    assert len(ranges) > 2


def _stop(*_arguments: object) -> None:
    raise KeyboardInterrupt


def test_who_stops_while_the_offset_is_looked_for_keeps_the_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkssim.engine.verdict.find_shift", _stop)
    with pytest.raises(InterruptedRunError, match="stopped when all of 47 frames had been scored") as raised:
        _scored(_pair(tmp_path, 13))
    assert raised.value.report is not None
    assert len(raised.value.report.frames) == 47


@pytest.mark.parametrize(("names", "hints"), [(("float_psnr", "float_ssim"), 1), (("float_psnr",), 0)])
def test_a_similarity_tells_of_a_shift(monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], hints: int) -> None:
    """A value in dB alone says little."""
    monkeypatch.setattr("vkssim.engine.verdict.find_shift", lambda *_arguments: Shift(3, 12))
    report = _low_report(*names)
    add_hint(report, Clips("a", "b"), ScoreOptions(names))
    assert len(_hints(report)) == hints


def _low_report(*names: str) -> ScoreReport:
    """A report of scores that are low."""
    report = page_report(0, 12, names)
    report.similarities = tuple(name for name in names if name != "float_psnr")
    for frame in report.frames:
        frame.metrics.update(float_psnr=20.0, float_ssim=0.5)  # type: ignore[attr-defined]
    return report


@pytest.mark.parametrize("skipped", [0, 20, 200])
def test_a_hint_decodes_few_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skipped: int) -> None:
    """Frames that are skipped are decoded as well."""
    read: list[int] = []

    def read_one(source: RawFile, numbers: Sequence[int], targets: Sequence[Any]) -> int:
        read.extend(numbers)
        return read_frames(source, numbers, targets)

    read_frames = RawFile.read
    luma = np.concatenate([CONTENT, clip(240, 48, 64, seed=3)])
    paths = _y4m(tmp_path / "ref.y4m", luma), _y4m(tmp_path / "dis.y4m", luma[13:])
    selection = Selection(skip_reference=skipped, skip_distorted=skipped)
    report = _low_report("float_ssim")
    monkeypatch.setattr(RawFile, "read", read_one)
    add_hint(report, Clips(*paths), ScoreOptions((FEATURE,), selection=selection))
    assert len(_hints(report)) == (skipped < 200)
    assert max(read, default=0) < 100
    assert len(read) <= 200


def test_only_a_pair_that_is_scored_alone_gets_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch or a ladder would read all its clips again while no worker has a task."""
    reference, late = _pair(tmp_path, -13)
    pairs = [(reference, late)]
    assert len(_hints(_scored(*pairs))) == 1
    monkeypatch.setattr("vkssim.engine.verdict.find_shift", lambda *_arguments: pytest.fail("a clip is read again"))
    for count in (1, 2):
        for scores in score_many(pairs * count, features=FEATURE, backend="cpu"):
            assert _hints(scores.scores()) == []


@pytest.mark.parametrize("offset", [13, 0])
def test_the_command_line_finds_it_says_it_and_uses_it(tmp_path: Path, offset: int) -> None:
    reference, distorted = _pair(tmp_path, offset)
    words = ["score", "-r", reference, "-d", distorted, "--feature", FEATURE, "--backend", "cpu"]
    outputs = [str(tmp_path / f"{number}.json") for number in range(2)]
    found = vkssim(*words, "--find-offset", "-o", outputs[0])
    assert found.exit_code == 0
    said = "frame i of the reference is compared with frame i+13 of" if offset else "not shifted: frame i of the reference is"
    assert said in found.stderr
    assert vkssim(*words, "--offset", str(offset), "-o", outputs[1]).exit_code == 0
    first, second = (json.loads(Path(path).read_text("utf-8")) for path in outputs)
    assert first["frames"] == second["frames"]
    assert first["scoring"]["selection"]["offset"] == offset
    assert first["scoring"]["command"] == second["scoring"]["command"]
    assert ("--offset 13" in first["scoring"]["command"]) == (offset == 13)


def test_the_command_line_refuses_times(tmp_path: Path) -> None:
    reference, distorted = _pair(tmp_path, 13)
    result = vkssim("score", "-r", reference, "-d", distorted, "--find-offset", "--sync", "pts")
    assert result.exit_code == 2
    assert "--find-offset counts frames" in result.stderr


def test_the_command_line_says_how_far_it_looks() -> None:
    assert f"within {MAX_SHIFT} frames" in " ".join(vkssim("score", "--help").stdout.split())
