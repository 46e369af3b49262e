"""Divide the pairs of two clips into ranges that can be read by themselves."""

from __future__ import annotations

from collections.abc import Iterator

from ..frames.options import Selection
from ..frames.pairing.schedule import Schedule, schedule_pairs
from ..frames.source import FrameSource, SeekIndex
from ..scoring.ranges import Cut, FrameRange

_LEAST_PAIRS = 32  # with fewer in a range, a device waits longer for its first and last pair than it computes


def divided(
    sources: tuple[FrameSource, FrameSource], selection: Selection, sync: str, pairs: int, least: int
) -> list[FrameRange]:
    """Return ranges of about `pairs` pairs each, which begin at key frames or soon after one.

    There are at least `least` ranges if the clips have enough pairs, and only one if the clips cannot be read in ranges.
    """
    if sync != "index" or any(source.problem is not None for source in sources):
        return [FrameRange()]
    schedule = schedule_pairs(selection, *sources, sync)
    if schedule.pairs is None:
        return [FrameRange()]
    pairs = max(_LEAST_PAIRS, min(pairs, -(-schedule.pairs // least)))
    if schedule.pairs <= pairs:
        return [FrameRange()]
    marks = [source.seek_index() for source in sources]
    reference, distorted = marks
    if reference is None or distorted is None:
        return [FrameRange()]
    cuts = list(_cuts(schedule, (reference, distorted), pairs))
    return [FrameRange(start, end) for start, end in zip([None, *cuts], [*cuts, None], strict=True)]


def _cuts(schedule: Schedule, marks: tuple[SeekIndex, SeekIndex], pairs: int) -> Iterator[Cut]:
    """Yield cuts at or just behind a key frame of the clip that has fewer of them. The other clip is decoded up to a cut."""
    total = schedule.pairs
    assert total is not None
    reference, distorted = marks
    before = 0
    for wanted in range(pairs, total, pairs):
        first, second = schedule.frames(wanted)
        if max(first - reference.frames, second - distorted.frames) >= 0:
            return
        back = max(first - reference.before(first), second - distorted.before(second))
        at = wanted - back // schedule.step
        if at > before:
            first, second = schedule.frames(at)
            places = [
                (mark.position(number - 1), mark.position(number)) for mark, number in zip(marks, (first, second), strict=True)
            ]
            (last, following), (other_last, other_following) = places
            yield Cut(at, (last, other_last), (following, other_following))
            before = at
