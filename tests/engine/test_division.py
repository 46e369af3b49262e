"""Where clips are divided, and raw ones in ranges: the same bytes as in one go, whatever is selected of them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vkssim.engine import ranges as division
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.ranges import Event, FrameRange, RangeScores, Unfinished, divide_pairs
from vkssim.engine.task import Division, Part, Task
from vkssim.engine.worker import Worker, workers_on
from vkssim.errors import RangeError
from vkssim.frames.info import VideoPackets
from vkssim.frames.open import planar_layout
from vkssim.frames.options import PictureOptions, RawDescription, Selection
from vkssim.frames.pairing.schedule import schedule_pairs
from vkssim.frames.raw import RawFile

from ..frames.reading import NOTHING_SAID, describe, open_source
from ..ladder.ladders import encode
from ..support.clips import raw_bytes, write, y4m_bytes
from ..support.pictures import Picture, clip
from .in_ranges import CPU, FEATURES, same_in_ranges, small_ranges

FRAMES = 25
KINDS = "raw", "raw 10", "y4m", "mp4"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reference and a distorted clip of each kind; the latter has two frames more."""
    folder = tmp_path_factory.mktemp("clips")
    for name, seed, frames in (("ref", 0, FRAMES), ("dis", 1, FRAMES + 2)):
        luma, deep = clip(frames, seed=seed), clip(frames, bits=10, seed=seed)
        write(folder / f"{name}.raw", raw_bytes(luma))
        write(folder / f"{name}.raw 10", raw_bytes(deep))
        write(folder / f"{name}.y4m", y4m_bytes(luma))
        encode(folder / f"{name}.mp4", luma, **{"x264-params": f"keyint={4 + seed}:min-keyint={4 + seed}:scenecut=0"})
    return folder


@pytest.fixture
def threes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges have three pairs."""
    small_ranges(monkeypatch)


def _clips(folder: Path, kind: str) -> tuple[str, str, RawDescription]:
    bits = 10 if kind.endswith("10") else 8
    raw = describe(clip(1), bits=bits) if kind.startswith("raw") else NOTHING_SAID
    return str(folder / f"ref.{kind}"), str(folder / f"dis.{kind}"), raw


# -- where ------------------------------------------------------------------------------------------------------------


def _ranges(folder: Path, kind: str, max_pairs: int, workers: int = 1, **selection: Any) -> list[FrameRange]:
    reference, distorted, raw = _clips(folder, kind)
    with open_source(reference, raw) as first, open_source(distorted, raw) as second:
        return divide_pairs((first, second), schedule_pairs(Selection(**selection), first, second, "index"), max_pairs, workers)


def test_ranges_are_of_the_size_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _ranges(folder, "raw", 5) == [FrameRange()], "fewer would only wait"
    monkeypatch.setattr(division, "MIN_PAIRS", 1)
    limits = [(frame_range.first, frame_range.stop) for frame_range in _ranges(folder, "raw", 10)]
    assert limits == [(0, 10), (10, 20), (20, None)]
    assert [frame_range.first for frame_range in _ranges(folder, "raw", 100, workers=3)] == [0, 9, 15, 19, 21, 23, 24]
    assert [frame_range.first for frame_range in _ranges(folder, "raw", 4, subsample=3, skip_reference=1)] == [0, 4]


def test_ranges_begin_with_key_frames(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference has one every four frames, the distorted clip every five: the one that is further back counts."""
    monkeypatch.setattr(division, "MIN_PAIRS", 1)
    assert [frame_range.first for frame_range in _ranges(folder, "mp4", 6)] == [0, 4, 10, 15, 20]


def test_how_clips_were_divided_is_found_again(folder: Path, threes: None) -> None:
    ranges = _ranges(folder, "mp4", 5)
    assert len(ranges) > 2
    for packets in (None, (VideoPackets(5678, 1.25), None)):
        found, written = Unfinished(), list[dict[str, Any]]()
        Unfinished(write=written.append).divide(ranges, packets)
        found.read_entry(json.loads(json.dumps(*written)))
        assert (found.ranges, found.packets) == (ranges, packets)


# -- what comes of them -----------------------------------------------------------------------------------------------


SELECTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"subsample": 3},
    {"skip_reference": 5, "skip_distorted": 2},
    {"offset": -4, "subsample": 2},
    {"start": 7, "end": 20},
    {"count": 11, "offset": 3},
    {"start": "0.2s", "end": "0.6s"},
)


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda it: " ".join(map(str, it.items())))
@pytest.mark.parametrize("kind", KINDS)
def test_selections(folder: Path, threes: None, kind: str, selection: dict[str, Any]) -> None:
    ranges = same_in_ranges(*_clips(folder, kind), selection=Selection(**selection))
    if not (kind.startswith("raw") and "0.2s" in selection.values()):  # raw clips know no time: the error is the same
        assert ranges > 1


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_selected_is_the_same_error(folder: Path, threes: None, kind: str) -> None:
    assert same_in_ranges(*_clips(folder, kind), selection=Selection(skip_reference=FRAMES)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_shorter_clip_may_be_either(folder: Path, threes: None, kind: str) -> None:
    reference, distorted, raw = _clips(folder, kind)
    for strict in (False, True):
        assert same_in_ranges(reference, distorted, raw, strict=strict) > 1
        assert same_in_ranges(distorted, reference, raw, strict=strict) > 1


@pytest.mark.parametrize(("first", "second"), [("raw", "y4m"), ("y4m", "mp4"), ("mp4", "raw")])
def test_clips_of_two_kinds(folder: Path, threes: None, first: str, second: str) -> None:
    """Lengths are known of some, met by reading of others."""
    raw = describe(clip(1))
    assert same_in_ranges(folder / f"ref.{first}", folder / f"dis.{second}", raw) > 1
    assert same_in_ranges(folder / f"dis.{first}", folder / f"ref.{second}", raw) > 1


@pytest.mark.parametrize(
    "pictures",
    [PictureOptions(crop="26x24+2+0"), PictureOptions(crop="auto"), PictureOptions(scale="40x30")],
    ids=["crop", "auto", "scale"],
)
@pytest.mark.parametrize("kind", ["raw", "y4m", "mp4"])
def test_pictures_and_planes(folder: Path, threes: None, kind: str, pictures: PictureOptions) -> None:
    assert same_in_ranges(*_clips(folder, kind), pictures=pictures, planes="all") > 1


@pytest.mark.parametrize("kind", ["raw", "raw 10", "y4m"])
def test_a_truncated_clip_is_one_range(folder: Path, tmp_path: Path, threes: None, kind: str) -> None:
    """Its end is an error, with the scores before it."""
    reference, distorted, raw = _clips(folder, kind)
    raw = replace(raw, allow_partial=True)
    data = Path(distorted).read_bytes()
    short = write(tmp_path / f"dis.{kind}", data[: len(data) // 2 + 7])
    assert same_in_ranges(reference, short, raw) == 1
    assert same_in_ranges(short, reference, raw) == 1


def test_frame_lines_with_parameters(tmp_path: Path, threes: None) -> None:
    """Where frames of a Y4M clip begin is not known then."""
    reference, distorted = (
        write(tmp_path / f"{seed}.y4m", y4m_bytes(clip(9, seed=seed), frame_header=b"FRAME Ip\n")) for seed in range(2)
    )
    assert same_in_ranges(reference, distorted) == 1


def test_frame_lines_of_other_lengths(tmp_path: Path, threes: None) -> None:
    """The length of the file is as if no frame had parameters; where the first frame with some was expected is another."""
    data = y4m_bytes(clip(12))
    frame = (len(data) - data.index(b"FRAME")) // 12
    at = data.index(b"FRAME") + 4 * frame
    longer = data[:at] + b"FRAME " + b"X" * (frame - 1) + b"\n" + data[at + 6 :]
    assert len(longer) - len(data) == frame
    distorted = write(tmp_path / "dis.y4m", y4m_bytes(clip(14, seed=1)))
    assert same_in_ranges(write(tmp_path / "ref.y4m", longer), distorted) == 1


def _task(clips: Clips, frame_range: FrameRange | None = None) -> Task:
    """Ask for the division of clips, or for the scores of a range."""
    part = Part(0, clips, frame_range=frame_range or FrameRange())
    return Task((part,), ScoreOptions(FEATURES), Division(5, 15.0) if frame_range is None else None)


def _no_event(_job: int, event: Event) -> None:
    pytest.fail(f"{event} of a task that only divides")


def test_a_file_cut_while_it_is_scored(folder: Path, tmp_path: Path, threes: None) -> None:
    """A range that is not there any more is refused."""
    reference, distorted, raw = _clips(folder, "raw")
    path = tmp_path / "dis.raw"
    path.write_bytes(Path(distorted).read_bytes())
    with Worker(CPU) as worker:
        clips = Clips(reference, str(path), raw)
        ranges = worker.do(_task(clips), _no_event).ranges
        path.write_bytes(Path(distorted).read_bytes()[: 12 * planar_layout(raw, "").frame_bytes])
        assert worker.do(_task(clips, ranges[0]), lambda _job, _event: None).frames == ranges[0].stop
        with pytest.raises(RangeError, match="end before pair"):
            worker.do(_task(clips, ranges[-2]), lambda _job, _event: None)


@pytest.mark.parametrize("one_machine", [True, False])
def test_several_workers_of_a_device_divide_for_other_machines(folder: Path, threes: None, one_machine: bool) -> None:
    """If no hardware decodes a clip, the cores of one machine decode it as quickly for one worker as for several."""
    with ExitStack() as stack:
        worker, _ = map(stack.enter_context, workers_on(replace(CPU, workers=2), one_machine=one_machine))
        ranges = worker.do(_task(Clips(*_clips(folder, "raw"))), lambda _job, _event: None).ranges
    assert (len(ranges) > 1) is not one_machine


def test_a_raw_range_reads_its_own_frames_alone(folder: Path, threes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    reference, distorted, raw = _clips(folder, "raw")
    asked: set[int] = set()
    events: list[Event] = []
    read = RawFile.read

    def note(self: RawFile, numbers: Any, targets: Any) -> int:
        asked.update(numbers)
        return read(self, numbers, targets)

    monkeypatch.setattr(RawFile, "read", note)
    with Worker(CPU) as worker:
        clips = Clips(reference, distorted, raw)
        ranges = worker.do(_task(clips), _no_event).ranges
        done = worker.do(_task(clips, ranges[2]), lambda _job, event: events.append(event))
    assert asked == set(range(ranges[2].first, ranges[2].stop or 0))
    assert isinstance(events[-1], RangeScores)
    assert [frame.index for frame in events[-1].report.frames] == sorted(asked)
    assert done.bytes == 2 * len(asked) * 24 * 32


@settings(deadline=None)
@given(
    clips=st.tuples(*[st.tuples(st.integers(1, 14), st.sampled_from([".yuv", ".y4m"]))] * 2),
    selection=st.builds(
        Selection,
        skip_reference=st.integers(0, 5),
        skip_distorted=st.integers(0, 5),
        subsample=st.integers(1, 4),
        count=st.none() | st.integers(1, 12),
        offset=st.integers(-3, 3),
        start=st.none() | st.integers(0, 12),
        end=st.none() | st.integers(0, 14),
    ),
    pairs=st.integers(1, 5),
)
def test_any_selection_of_clips_of_any_length(
    tmp_path_factory: pytest.TempPathFactory, clips: tuple[tuple[int, str], ...], selection: Selection, pairs: int
) -> None:
    paths = []
    for seed, (frames, ending) in enumerate(clips):
        luma: Picture = clip(frames, 12, 16, seed=seed)
        path = tmp_path_factory.getbasetemp() / f"any {frames} {seed}{ending}"
        paths.append(write(path, y4m_bytes(luma) if ending == ".y4m" else raw_bytes(luma)))
    with pytest.MonkeyPatch.context() as patch:
        small_ranges(patch, pairs)
        same_in_ranges(paths[0], paths[1], describe(clip(1, 12, 16)), selection=selection)
