"""Scoring files from Python: which frames are compared, what is known of the run, what goes wrong."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from vkssim import Scorer, ScoreReport, score_files, score_many
from vkssim.errors import InputError, OptionError, ReadError, ThresholdError
from vkssim.frames import raw
from vkssim.frames.options import PictureOptions, RawDescription, Selection
from vkssim.report.results import FrameScores
from vkssim.utils.progress import ProgressBar

from .frames.encoding import encode_frames, moving_frames
from .support.clips import raw_bytes, write, y4m_bytes
from .support.commands import python_process
from .support.pictures import Picture, clip

pytestmark = pytest.mark.usefixtures("shared_device")

LUMA = clip(12)
DISTORTED = np.roll(LUMA, 1, axis=2)
RAW = RawDescription(32, 24, "420", 8)
NOTHING_SAID = RawDescription()
KINDS: dict[str, tuple[Callable[[Picture], bytes], RawDescription]] = {
    "raw": (raw_bytes, RAW),
    "y4m": (y4m_bytes, NOTHING_SAID),
}
"""Files of known length, read at random, and those that only reading to the end can tell the length of."""

every_kind = pytest.mark.parametrize("kind", KINDS)

FEATURE = "float_ssim=scale=1"


def _score(folder: Path, kind: str, reference: Picture, distorted: Picture, **options: Any) -> ScoreReport:
    """Score two clips as files of a kind, on the CPU if nothing else is said."""
    make, raw = KINDS[kind]
    paths = [write(folder / name, make(luma)) for name, luma in (("ref", reference), ("dis", distorted))]
    return score_files(*paths, **{"features": FEATURE, "raw": raw, "backend": "cpu", **options})


def _expected(reference: Picture, distorted: Picture) -> list[float]:
    with Scorer(32, 24, bits=8, features=FEATURE, backend="cpu") as scorer:
        return [scores.metrics["float_ssim"] for scores in scorer.score(zip(reference, distorted, strict=True))]


@every_kind
@pytest.mark.parametrize("backend", ["vulkan", "cpu"])
def test_every_frame_is_scored_once(tmp_path: Path, kind: str, backend: str) -> None:
    report = _score(tmp_path, kind, LUMA, DISTORTED, backend=backend)
    assert [frame.index for frame in report.frames] == list(range(12))
    np.testing.assert_allclose(report.column("float_ssim"), _expected(LUMA, DISTORTED), atol=5e-5)
    assert (report.width, report.height, report.bits, report.names) == (32, 24, 8, ("float_ssim",))
    assert report.backend.backend == backend
    assert report.warnings == []
    assert report.fps > 0


@every_kind
@pytest.mark.parametrize(
    ("selection", "reference", "distorted"),
    [
        (Selection(count=5), slice(0, 5), slice(0, 5)),
        (Selection(count=500), slice(0, 12), slice(0, 12)),
        (Selection(subsample=5), slice(0, 12, 5), slice(0, 12, 5)),
        (Selection(subsample=3, count=7), slice(0, 7, 3), slice(0, 7, 3)),
        (Selection(2, 2), slice(2, 12), slice(2, 12)),
        (Selection(3, 1, count=4), slice(3, 7), slice(1, 5)),
        (Selection(0, 4, count=8, subsample=2), slice(0, 8, 2), slice(4, 12, 2)),
    ],
)
def test_selection(tmp_path: Path, kind: str, selection: Selection, reference: slice, distorted: slice) -> None:
    report = _score(tmp_path, kind, LUMA, DISTORTED, selection=selection)
    np.testing.assert_array_equal(report.column("float_ssim"), _expected(LUMA[reference], DISTORTED[distorted]))
    step = selection.subsample
    assert [frame.index for frame in report.frames] == list(range(0, step * len(report.frames), step)), (
        "numbers are those of the pairs"
    )
    assert report.warnings == []


@pytest.mark.parametrize("values", [{"count": 0}, {"subsample": 0}, {"skip_reference": -1}, {"skip_distorted": -1}])
def test_impossible_selection(values: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"`\w+` is -?\d; it must be \d or more"):
        Selection(**values)


@every_kind
@pytest.mark.parametrize("subsample", [1, 4])
@pytest.mark.parametrize(("reference", "distorted"), [(9, 12), (12, 9)])
def test_shorter_file(tmp_path: Path, kind: str, reference: int, distorted: int, subsample: int) -> None:
    """The overlap is scored; a warning says so, and `strict` makes it an error that still has the scores."""
    arguments = tmp_path, kind, LUMA[:reference], DISTORTED[:distorted]
    selection = Selection(subsample=subsample)
    report = _score(*arguments, selection=selection)
    assert [frame.index for frame in report.frames] == list(range(0, 9, subsample))
    (warning,) = report.warnings
    assert str(tmp_path / ("ref" if reference == 9 else "dis")) in warning
    with pytest.raises(ThresholdError, match="`strict`") as caught:
        _score(*arguments, strict=True, selection=selection)
    assert len(caught.value.report.frames) == len(report.frames)


@every_kind
@pytest.mark.parametrize(("distorted", "count"), [(12, None), (9, 9)])
def test_strict_is_content_with_what_is_cut_off_on_purpose(
    tmp_path: Path, kind: str, distorted: int, count: int | None
) -> None:
    report = _score(tmp_path, kind, LUMA, DISTORTED[:distorted], selection=Selection(count=count), strict=True)
    assert len(report.frames) == distorted


@every_kind
@pytest.mark.parametrize("selection", [Selection(skip_reference=12), Selection(skip_distorted=40)])
def test_all_frames_skipped(tmp_path: Path, kind: str, selection: Selection) -> None:
    with pytest.raises(InputError, match=r"no frame to score: --frame_skip_\w+ \d+ leaves none of .*ref"):
        _score(tmp_path, kind, LUMA, DISTORTED, selection=selection)


def test_kinds_may_differ(tmp_path: Path) -> None:
    paths = (
        write(tmp_path / "ref.yuv", raw_bytes(LUMA, "444")),
        write(tmp_path / "dis.y4m", y4m_bytes(DISTORTED, "mono", "400")),
    )
    report = score_files(*paths, features="float_ssim", raw=RawDescription(32, 24, "444", 8), backend="cpu")
    np.testing.assert_array_equal(report.column("float_ssim"), _expected(LUMA, DISTORTED))


def test_both_from_standard_input_is_refused() -> None:
    with pytest.raises(InputError, match="both standard input"):
        score_files("-", "-", raw=RAW)


def test_null_scores_are_warned_of_by_frame(tmp_path: Path) -> None:
    luma = clip(3, 180, 180)
    distorted = luma.copy()
    distorted[1] = 255 - luma[1]
    raw = RawDescription(180, 180, "420", 8)
    report = _score(tmp_path, "raw", luma, distorted, raw=raw, features="float_ms_ssim")
    assert np.isnan(report.column("float_ms_ssim")).tolist() == [False, True, False]
    assert report.warnings[0].startswith("float_ms_ssim is null in 1 frame (1)")
    assert np.isnan(report.pooled()["float_ms_ssim"]["mean"])


@every_kind
def test_progress_is_told_to_the_last_frame(tmp_path: Path, kind: str) -> None:
    told: list[tuple[int, int | None]] = []
    _score(tmp_path, kind, LUMA, DISTORTED, progress=lambda *numbers: told.append(numbers))
    assert told[-1] == (12, 12)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_bar_counts_frames_and_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int | None] | str] = []
    monkeypatch.setattr(ProgressBar, "__call__", lambda _self, done, total: told.append((done, total)))
    monkeypatch.setattr(ProgressBar, "close", lambda _self: told.append("closed"))
    _score(tmp_path, "raw", LUMA, DISTORTED, progress=True)
    _score(tmp_path, "raw", LUMA, DISTORTED, progress=False)
    assert told[-2:] == [(12, 12), "closed"]
    assert told.count("closed") == 1


class _Stopped(Exception):  # noqa: N818 - no error of vkssim
    """As if the process ended there."""


@every_kind
@pytest.mark.parametrize("subsample", [1, 3])
def test_a_run_that_was_cut_off_is_resumed(tmp_path: Path, kind: str, subsample: int) -> None:
    """By a path beside which the frames lie until all are scored; nothing is left then. The last frame done is scored again."""
    make, raw = KINDS[kind]
    paths = [write(tmp_path / name, make(luma)) for name, luma in (("ref", LUMA), ("dis", DISTORTED))]
    store = tmp_path / "store" / "run"
    store.parent.mkdir()
    selection = Selection(skip_reference=1, subsample=subsample)
    score = partial(score_files, *paths, features=FEATURE, raw=raw, backend="cpu", selection=selection)
    whole = score()

    def stop(frames: Sequence[FrameScores]) -> None:
        if frames[-1] == whole.frames[2]:
            raise _Stopped

    with pytest.raises(_Stopped):
        score(resume=store, on_frames=stop)
    assert [path.name for path in store.parent.iterdir()] == ["run.journal"]
    with pytest.raises(OptionError, match="belongs to another run: selection of frames differ"):
        score(resume=store, selection=Selection(count=3))
    with pytest.raises(OptionError, match="belongs to another run: changes of pictures differ"):
        score(resume=store, pictures=PictureOptions(film_grain="off"))
    told: list[FrameScores] = []
    resumed = score(resume=str(store), on_frames=told.extend)
    assert resumed.frames == whole.frames
    assert (resumed.resumed, told) == (2, whole.frames[3:])
    assert list(store.parent.iterdir()) == []


@pytest.mark.parametrize("hook", ["progress", "on_frames"])
def test_an_exception_of_a_function_of_the_caller_cancels_the_run(tmp_path: Path, hook: str) -> None:
    """The caller gets the same exception, no further frame is scored, and the next run is as any other."""
    luma = clip(40, 32, 32)
    paths = [write(tmp_path / name, raw_bytes(planes)) for name, planes in (("ref.yuv", luma), ("dis.yuv", luma // 2))]
    score = partial(score_files, *paths, features=FEATURE, raw=RawDescription(32, 32, "420", 8), backend="cpu")
    raised, calls = _Stopped("cancelled"), []

    def cancel(*told: object) -> None:
        calls.append(told)
        raise raised

    with pytest.raises(_Stopped) as caught:
        score(**{hook: cancel})  # type: ignore[arg-type]
    assert caught.value is raised
    assert len(calls) == 1
    assert len(score().frames) == 40


def test_neither_a_pipe_nor_a_url_is_resumed(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot be read a second time"):
        score_files("-", "dis.yuv", raw=RAW, resume=tmp_path / "run")
    with pytest.raises(OptionError, match="is a URL"):
        score_files("ref.yuv", "dis.yuv", raw=RAW, resume="s3://bucket/run")


@every_kind
def test_a_disk_that_fails_keeps_what_was_scored(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0

    def counted(read: Callable[..., int]) -> Callable[..., int]:
        def read_or_fail(*arguments: Any) -> int:
            nonlocal reads
            reads += 1
            if reads > 30:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return read(*arguments)

        return read_or_fail

    monkeypatch.setattr(raw, "_read_at", counted(raw._read_at))
    monkeypatch.setattr(raw.PlanarStream, "_fill", counted(raw.PlanarStream._fill))
    many = np.concatenate([LUMA] * 4)
    with pytest.raises(ReadError, match="cannot be read on: Input/output error") as caught:
        _score(tmp_path, kind, many, many)
    assert 0 < len(caught.value.report.frames) < 48
    monkeypatch.undo()
    assert caught.value.report.frames == _score(tmp_path, kind, many, many).frames[: len(caught.value.report.frames)]


def test_profile_has_reading_and_every_stage(tmp_path: Path) -> None:
    report = _score(tmp_path, "raw", LUMA, DISTORTED, profile=True, backend="vulkan")
    assert {"read", "upload", "ssim"} <= set(report.stage_seconds)
    assert _score(tmp_path, "raw", LUMA, DISTORTED).stage_seconds == {}


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two clips of H.264 with B frames, 48 frames of 160x96."""
    folder, frames = tmp_path_factory.mktemp("coded"), moving_frames(48, 96, 160)
    reference, distorted = (
        encode_frames(folder / f"{crf}.mp4", frames, "libx264", options={"crf": crf, "g": "48"}) for crf in ("10", "25")
    )
    return reference, distorted


def test_container_cut_off_says_how_much_was_there(tmp_path: Path, coded: tuple[str, str]) -> None:
    """A container cut off in transfer is scored up to the frame that is cut, which the error names.

    Where the cut is between two frames it just ends; what it says of itself gives it away.
    """
    reference, distorted = coded
    whole = tmp_path / "whole.mp4"
    with av.open(str(distorted)) as source, av.open(str(whole), "w", options={"movflags": "faststart"}) as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    data = whole.read_bytes()
    half = len(data) // 2
    cut = write(tmp_path / "cut.mp4", data[:half])
    with pytest.raises(InputError, match=rf"{cut}: frame \d+ cannot be decoded \(Invalid data") as caught:
        score_files(reference, cut, features=["float_psnr"])
    scored = caught.value.report.frames
    assert f"frame {len(scored)} cannot" in str(caught.value)
    assert 0 < len(scored) < 48
    with av.open(str(whole)) as source:
        ends = [packet.pos + packet.size for packet in source.demux(video=0) if packet.pos is not None]
    cut = write(tmp_path / "cut.mp4", data[: max(end for end in ends if end <= half)])
    report = score_files(reference, cut, features=["float_psnr"])
    assert 0 < len(report.frames) < 48
    short = f"{cut} says that it has 48 frames; only {len(report.frames)}"
    assert any(short in warning for warning in report.warnings)
    with pytest.raises(ThresholdError, match=rf"{short} could be decoded \(`strict`\)"):
        score_files(cut, cut, features=["float_psnr"], strict=True)


def test_an_edit_list_that_hides_frames(tmp_path: Path, coded: tuple[str, str]) -> None:
    """As where a clip is cut without encoding it: those before the cut are decoded, since others refer to them."""
    reference, distorted = coded
    cut = tmp_path / "cut.mp4"
    with av.open(str(distorted)) as source, av.open(str(cut), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None and packet.pts is not None:
                packet.stream = stream
                begins = 13 * 512
                packet.pts, packet.dts = packet.pts - begins, packet.dts - begins
                target.mux(packet)
    report = score_files(reference, cut, features=["float_psnr"])
    warning = f"{cut}: its edit list hides 13 frames of 48; the 35 that a player shows were scored"
    assert warning in report.warnings
    assert score_files(cut, cut, features=["float_psnr"], strict=True).warnings == [warning]
    for pictures in PictureOptions(crop="64x48"), PictureOptions(scale="80x48"):
        report = score_files(cut, cut, features=["float_psnr"], pictures=pictures)
        assert [text for text in report.warnings if "edit list" in text or "decoded" in text] == [warning]
    in_step = list(score_many([(cut, distorted), (cut, cut)], features=["float_psnr"], pictures=PictureOptions(crop="64x48")))
    assert all(warning in outcome.scores().warnings for outcome in in_step)


WAITING = """
import os, signal, sys, threading
import vkssim
fifo = sys.argv[1]
writer = os.open(fifo, os.O_RDWR)
os.write(writer, bytes(32 * 24 * 3 // 2))  # a frame, and no end
def interrupt(done, total):  # once the first frame is scored, and the run waits for the second
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
raw = vkssim.RawDescription(32, 24, "420", 8)
try:
    vkssim.score_files(fifo, sys.argv[2], features="float_ssim=scale=1", backend="cpu", raw=raw, progress=interrupt)
except vkssim.errors.InterruptedRunError as error:
    print(error)
"""


def test_ctrl_c_while_a_pipe_says_nothing(tmp_path: Path) -> None:
    """In a program of somebody's own, where signals are Python's."""
    os.mkfifo(tmp_path / "reference.yuv")
    process = python_process("-c", WAITING, str(tmp_path / "reference.yuv"), write(tmp_path / "distorted.yuv", raw_bytes(LUMA)))
    assert process.returncode == 0, process.stderr.decode()
    assert process.stdout.startswith(b"stopped after 1 frame;")
