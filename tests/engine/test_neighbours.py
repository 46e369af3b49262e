"""Ranges and runs that go on, of metrics whose scores depend on the frames before and after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vkssim.backends.cpu import CpuBackend
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.ranges import BatchScored, Event, FrameRange, divide_pairs
from vkssim.engine.run import score_range
from vkssim.engine.source_cache import Sources, open_sources
from vkssim.frames.options import RawDescription, Selection
from vkssim.frames.pairing.schedule import schedule_pairs
from vkssim.report.results import FrameScores

from ..frames.encoding import encode_frames, moving_frames
from ..support.clips import write, y4m_bytes
from ..support.pictures import clip
from .in_ranges import same_in_ranges, small_ranges

OPTIONS = ScoreOptions(("motion", "float_psnr"), backend="cpu")
WIDE = replace(OPTIONS, features=("motion=motion_five_frame_window=true:motion_moving_average=true",))
"""Scores depend on four frames before and two after."""
FRAMES = 20


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory) -> Clips:
    folder = tmp_path_factory.mktemp("neighbours")
    options = {"crf": "25", "x264-params": "keyint=7:min-keyint=7:scenecut=0:bframes=2"}
    reference, distorted = (
        encode_frames(folder / f"{name}.mp4", moving_frames(FRAMES), "libx264", options={**options, "crf": crf})
        for name, crf in (("reference", "20"), ("distorted", "38"))
    )
    return Clips(str(reference), str(distorted))


@contextmanager
def _opened(clips: Clips) -> Iterator[Sources]:
    with ExitStack() as stack:
        yield open_sources(stack, clips, OPTIONS)


def _scored(
    clips: Clips, frame_range: FrameRange, earlier: int = 0, step: int = 1, options: ScoreOptions = OPTIONS
) -> list[FrameScores]:
    """Return the frames of a range, of which some were scored before."""
    options = replace(options, selection=Selection(subsample=step))
    with _opened(clips) as sources:
        whole = score_range(sources, clips, CpuBackend, options, frame_range)
    if not earlier:
        return whole.report.frames
    before = [(frame, None, whole.report.backend) for frame in whole.report.frames[:earlier]]
    with _opened(clips) as sources:
        return score_range(sources, clips, CpuBackend, options, frame_range, before).report.frames


def _ranges(clips: Clips, step: int = 1, lead: int = 1) -> list[FrameRange]:
    with _opened(clips) as sources:
        schedule = schedule_pairs(Selection(subsample=step), *sources, OPTIONS.sync)
        return divide_pairs(sources, schedule, max(1, 5 // step), 1, lead=lead)


def test_ranges_together_are_the_whole_clip(coded: Clips, monkeypatch: pytest.MonkeyPatch) -> None:
    small_ranges(monkeypatch)
    whole, ranges = _scored(coded, FrameRange()), _ranges(coded)
    assert [frame_range.first for frame_range in ranges] == [0, 8, 15], "one pair after a key frame"
    assert [frame for frame_range in ranges for frame in _scored(coded, frame_range)] == whole
    assert len({frame.metrics["integer_motion2"] for frame in whole}) > FRAMES / 2


@pytest.mark.parametrize("step", [1, 2])
def test_ranges_of_a_wide_window(coded: Clips, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """The last range may have fewer frames than those before it wait for."""
    small_ranges(monkeypatch, 1)
    whole, ranges = _scored(coded, FrameRange(), options=WIDE), _ranges(coded, step, lead=4)
    assert len(ranges) > 1
    together = [frame for frame_range in ranges for frame in _scored(coded, frame_range, step=step, options=WIDE)]
    assert together == whole[::step]


def test_a_range_before_the_last_frame(coded: Clips, monkeypatch: pytest.MonkeyPatch) -> None:
    """The range waits for two frames, of which the clip has one."""
    small_ranges(monkeypatch)
    whole, (first, *_) = _scored(coded, FrameRange(), options=WIDE), _ranges(coded, lead=4)
    with _opened(coded) as sources:
        index = [source.seek_index() for source in sources]
    reference, distorted = (clip.position(FRAMES - 2) for clip in index if clip is not None)
    assert first.end is not None
    end = replace(first.end, pairs=FRAMES - 1, lead=0, last=(reference, distorted))
    assert _scored(coded, FrameRange(None, end), options=WIDE) == whole[:-1]


@pytest.mark.parametrize("earlier", [1, 3, 6])
def test_a_range_of_a_wide_window_that_goes_on(coded: Clips, monkeypatch: pytest.MonkeyPatch, earlier: int) -> None:
    small_ranges(monkeypatch, 1)
    frame_range = _ranges(coded, lead=4)[1]
    assert _scored(coded, frame_range, earlier, options=WIDE) == _scored(coded, frame_range, options=WIDE)


@pytest.mark.parametrize("step", [2, 3, 4])
def test_ranges_of_every_nth_frame(coded: Clips, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    small_ranges(monkeypatch, 1)
    ranges = _ranges(coded, step)
    assert len(ranges) > 1
    together = [frame for frame_range in ranges for frame in _scored(coded, frame_range, step=step)]
    assert together == _scored(coded, FrameRange())[::step]


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("earlier", [1, 2, 3, FRAMES])
def test_a_run_that_goes_on(coded: Clips, earlier: int, step: int) -> None:
    """The last frame that was scored is scored again, with the frame before it."""
    assert _scored(coded, FrameRange(), earlier, step) == _scored(coded, FrameRange())[::step]


@pytest.mark.parametrize("earlier", [1, 2, 6])
def test_a_range_that_goes_on(coded: Clips, monkeypatch: pytest.MonkeyPatch, earlier: int) -> None:
    small_ranges(monkeypatch)
    frame_range = _ranges(coded)[1]
    assert _scored(coded, frame_range, earlier) == _scored(coded, frame_range)


def test_events_have_each_frame_once_and_settled(coded: Clips) -> None:
    events: list[Event] = []
    with _opened(coded) as sources:
        scores = score_range(sources, coded, CpuBackend, OPTIONS, on_event=events.append, live=True)
    batches = [event for event in events if isinstance(event, BatchScored)]
    assert [frame for batch in batches for frame in batch.frames] == scores.report.frames
    assert [batch.first for batch in batches] == list(range(FRAMES))


@pytest.mark.parametrize("form", ["y4m", "yuv"])
def test_files_that_are_read_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    small_ranges(monkeypatch)
    luma = clip(13, 48, 64)
    contents = [y4m_bytes(frames) if form == "y4m" else frames.tobytes() for frames in (luma, np.roll(luma, 1, axis=2))]
    reference, distorted = (write(tmp_path / f"{number}.{form}", content) for number, content in enumerate(contents))
    raw = RawDescription(64, 48, "400", 8) if form == "yuv" else RawDescription()
    assert same_in_ranges(reference, distorted, raw, features=("motion",)) > 2
