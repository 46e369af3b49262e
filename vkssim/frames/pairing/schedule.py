"""Choose which frames are compared."""

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
    """List every `step`-th pair from `start` to before `stop`, which is None where only reading the clips tells.

    `asked_stop` is the end that the user asked for. `expected` is where the pairs should end by what the clips say of
    themselves, and `unmatched` is the sentence to report on frames that have no partner.
    """

    pairing: Pairing
    step: int
    start: int
    stop: int | None
    asked_stop: int | None
    expected: int | None
    unmatched: str | None = None

    @property
    def pairs(self) -> int | None:
        """Return how many pairs should be compared; None for no idea."""
        return None if self.expected is None else len(range(self.start, self.expected, self.step))

    def frames(self, pair: int) -> tuple[int, int]:
        """Return the frames of a pair, which is counted from 0 without those that are left out."""
        index = self.start + pair * self.step
        alone = range(index, index + 1)
        return self.pairing.reference(alone)[0], self.pairing.distorted(alone)[0]


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
    asked = _least((last, None if selection.count is None else first + selection.count))
    known = [source.info.frames if source.concurrent else None for source, _ in skips]
    lengths = _least(_left(known, skips)) if None not in known else None
    expected = _least(_left([source.expected for source, _ in skips], skips))
    return Schedule(
        ByIndex(selection.first_reference, selection.first_distorted),
        selection.subsample,
        first,
        _least((asked, lengths)),
        asked,
        None if expected is None else _least((asked, expected)),
    )


def _by_time(selection: Selection, reference: FrameSource, distorted: FrameSource, first: int, last: int | None) -> Schedule:
    times = []
    for source in (reference, distorted):
        found = source.times()
        if found is None:
            raise InputError(f"{source.info.path} does not say when its frames are shown, so `sync=pts` is not possible")
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
            " have none in the other clip within half a frame of their time; they were not compared"
        )
    return Schedule(pairing, selection.subsample, start, stop, stop, stop, unmatched)


def _left(frames: Iterable[int | None], skips: Iterable[tuple[FrameSource, int]]) -> list[int | None]:
    return [None if count is None else max(0, count - skip) for count, (_, skip) in zip(frames, skips, strict=True)]


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _frame(name: str, position: int | str, reference: FrameSource) -> int:
    """Return the first frame of the reference that is not before a position."""
    where = parse_position(name, position)
    if isinstance(where, int):
        return where
    times = reference.times()
    if times is not None:
        return int(np.searchsorted(times, float(where) - ROUNDING))
    if reference.info.fps is None:
        raise InputError(f"{reference.info.path} does not say when its frames are shown; give `{name}` as a number of a frame")
    return math.ceil(where * reference.info.fps)
