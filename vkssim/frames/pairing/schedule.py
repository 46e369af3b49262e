"""Choose the pairs of frames to compare."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ..options import Selection, check_sync, parse_position
from ..source import FrameSource
from .pairing import ROUNDING, ByIndex, ByTime, Pairing


@dataclass(frozen=True)
class Schedule:
    """Every `step`-th pair from `start` to before `stop`, which is None if only reading the clips tells.

    `selected_stop` is the end that the user selected, and `expected` the end by the lengths that the clips state. `unmatched`
    is the warning on frames without a partner.
    """

    pairing: Pairing
    step: int
    start: int
    stop: int | None
    selected_stop: int | None
    expected: int | None
    unmatched: str | None = None

    @property
    def pairs(self) -> int | None:
        """Return the expected number of pairs; None if it is unknown."""
        return None if self.expected is None else len(range(self.start, self.expected, self.step))

    def frames(self, pair: int) -> tuple[int, int]:
        """Return the frames of a pair. Pairs are counted from 0, without those that are left out."""
        index = self.start + pair * self.step
        only = range(index, index + 1)
        return self.pairing.reference(only)[0], self.pairing.distorted(only)[0]


def schedule_pairs(selection: Selection, reference: FrameSource, distorted: FrameSource, sync: str) -> Schedule:
    """Return the pairs of two sources that are selected, from the first pair to the last.

    `sync` is ``"index"`` to pair frames by their number, or ``"pts"`` to pair them by their presentation time. Raises
    InputError if a time is needed and not known, and OptionError for another `sync`.
    """
    check_sync(sync)
    first, last = (
        None if position is None else max(0, _frame(name, position, reference) - selection.first_reference)
        for name, position in (("start", selection.start), ("end", selection.end))
    )
    make = _by_index if sync == "index" else _by_time
    return make(selection, reference, distorted, first or 0, last)


def _by_index(selection: Selection, reference: FrameSource, distorted: FrameSource, first: int, last: int | None) -> Schedule:
    skips = (reference, selection.first_reference), (distorted, selection.first_distorted)
    selected = _least((last, None if selection.count is None else first + selection.count))
    known = [source.info.frames if source.concurrent else None for source, _ in skips]
    lengths = _least(_left(known, skips)) if None not in known else None
    expected = _least(_left([source.expected for source, _ in skips], skips))
    return Schedule(
        ByIndex(selection.first_reference, selection.first_distorted),
        selection.subsample,
        first,
        _least((selected, lengths)),
        selected,
        None if expected is None else _least((selected, expected)),
    )


def _by_time(selection: Selection, reference: FrameSource, distorted: FrameSource, first: int, last: int | None) -> Schedule:
    times = []
    for source in (reference, distorted):
        found = source.times()
        if found is None:
            raise InputError(f"{source.info.path} has no presentation times, so `sync=pts` is not possible; use `sync=index`")
        times.append(found)
    pairing = ByTime(times[0], times[1], selection.first_reference, selection.first_distorted)
    start = pairing.pair_of(first)
    stop = min(
        len(pairing),
        len(pairing) if last is None else pairing.pair_of(last),
        len(pairing) if selection.count is None else start + selection.count,
    )
    unmatched = None
    left_over = pairing.left_over(start, stop)
    if any(left_over):
        unmatched = (
            f"{left_over[0]} frames of {reference.info.path} and {left_over[1]} of {distorted.info.path}"
            " have no partner in the other clip within half a frame of their time; they were not compared"
        )
    return Schedule(pairing, selection.subsample, start, stop, stop, stop, unmatched)


def _left(frames: Iterable[int | None], skips: Iterable[tuple[FrameSource, int]]) -> list[int | None]:
    return [None if count is None else max(0, count - skip) for count, (_, skip) in zip(frames, skips, strict=True)]


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _frame(name: str, position: int | str, reference: FrameSource) -> int:
    """Return the first frame of the reference that is not before a position."""
    parsed = parse_position(name, position)
    if isinstance(parsed, int):
        return parsed
    times = reference.times()
    if times is not None:
        return int(np.searchsorted(times, float(parsed) - ROUNDING))
    if reference.info.fps is None:
        raise InputError(f"{reference.info.path} has no presentation times; give `{name}` as the number of a frame")
    return math.ceil(parsed * reference.info.fps)
