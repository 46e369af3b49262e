"""Choose the pairs of frames to compare."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...utils.choices import SYNC
from ..options import Selection, parse_position
from ..source import FrameSource

_ROUNDING = 1e-6  # seconds: times are sums of rounded ticks


class Pairing:
    """The frames of each pair: first with first and second with second, after the skipped frames of each clip.

    All pairs are counted from 0, also those left out. `skips` are the skipped frames of both clips.
    """

    def __init__(self, skip_reference: int, skip_distorted: int) -> None:
        self.skips = skip_reference, skip_distorted
        self._clips: list[Sequence[int]] = [range(skip, sys.maxsize) for skip in self.skips]

    def reference(self, pairs: range) -> Sequence[int]:
        """Return the numbers of the reference's frames."""
        return self._clips[0][pairs.start : pairs.stop : pairs.step]

    def distorted(self, pairs: range) -> Sequence[int]:
        """Return the numbers of the distorted clip's frames."""
        return self._clips[1][pairs.start : pairs.stop : pairs.step]

    def indices(self, pairs: range) -> list[int]:
        """Return the numbers that the pairs have in a report: those of the reference's frames, without the skipped ones."""
        return [frame - self.skips[0] for frame in self.reference(pairs)]

    def pair_of(self, index: int) -> int:
        """Return the first pair whose number in a report is at least `index`."""
        return bisect_left(self._clips[0], index + self.skips[0])


class ByTime(Pairing):
    """Pairs by presentation time, counted from the first frame of each clip that is not skipped.

    A frame of the reference forms a pair with the nearest frame of the distorted clip that is less than half its duration away.
    A frame is in one pair at most. Times are (frames,) seconds, rising.
    """

    def __init__(
        self, reference: npt.NDArray[np.float64], distorted: npt.NDArray[np.float64], skip_reference: int, skip_distorted: int
    ) -> None:
        super().__init__(skip_reference, skip_distorted)
        first, second = reference[skip_reference:], distorted[skip_distorted:]
        self._lengths = len(first), len(second)
        self._pairs = np.empty((0, 2), int)
        if len(first) and len(second):
            first, second = first - first[0], second - second[0]
            partner = _nearest(second, first)
            mutual = _nearest(first, second)[partner] == np.arange(len(first))
            close = np.abs(second[partner] - first) < _durations(first) / 2 - _ROUNDING
            (matched,) = (mutual & close).nonzero()
            self._pairs = np.stack([matched, partner[matched]], axis=1)
        self._clips = (self._pairs + self.skips).T.tolist()

    def __len__(self) -> int:
        return len(self._pairs)

    def left_over(self, start: int = 0, stop: int | None = None) -> tuple[int, int]:
        """Return the number of frames of each clip without a partner, from pair `start` to before `stop`.

        Frames before the first of all pairs count as part of it, and frames after the last pair count as part of that.
        """
        pairs = self._pairs[start:stop]
        begins = pairs[0] if start > 0 and len(pairs) else (0, 0)
        ends = self._lengths if stop is None or stop >= len(self) or not len(pairs) else pairs[-1] + 1
        first, second = (int(end - begin) - len(pairs) for begin, end in zip(begins, ends, strict=True))
        return first, second


def _nearest(times: npt.NDArray[np.float64], to: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return the index of the nearest of `times` for each of `to`; if two are equally near, the earlier one."""
    after = np.clip(np.searchsorted(times, to), 1, max(1, len(times) - 1))
    before = after - 1
    after = np.minimum(after, len(times) - 1)
    return np.where(times[after] - to < to - times[before], after, before)


def _durations(times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the duration of each frame, which ends at the next frame. The last frame lasts as long as the one before it."""
    if len(times) == 1:
        return np.array([np.inf])
    durations = np.diff(times)
    return np.append(durations, durations[-1])


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

    def index(self, pair: int) -> int:
        """Return the number of a pair among all pairs, from its number without those that are left out."""
        return self.start + pair * self.step

    def frames(self, pair: int) -> tuple[int, int]:
        """Return the frames of a pair. Pairs are counted from 0, without those that are left out."""
        index = self.index(pair)
        only = range(index, index + 1)
        return self.pairing.reference(only)[0], self.pairing.distorted(only)[0]


def schedule_pairs(selection: Selection, reference: FrameSource, distorted: FrameSource, sync: str) -> Schedule:
    """Return the pairs of two sources that are selected, from the first pair to the last.

    `sync` is ``"index"`` to pair frames by their number, or ``"pts"`` to pair them by their presentation time. Raises
    InputError if a time is needed and not known, and OptionError for another `sync`.
    """
    SYNC.check(sync)
    first, last = (
        None if position is None else max(0, _frame(name, position, reference) - selection.first_reference)
        for name, position in (("start", selection.start), ("end", selection.end))
    )
    make = _by_index if sync == "index" else _by_time
    return make(selection, reference, distorted, first or 0, last)


def _by_index(selection: Selection, reference: FrameSource, distorted: FrameSource, first: int, last: int | None) -> Schedule:
    pairing = Pairing(selection.first_reference, selection.first_distorted)
    clips = tuple(zip((reference, distorted), pairing.skips, strict=True))
    selected = _least((last, None if selection.count is None else first + selection.count))
    lengths = [
        max(0, source.info.frames - skip) for source, skip in clips if source.concurrent and source.info.frames is not None
    ]
    stated = [max(0, source.expected - skip) for source, skip in clips if source.expected is not None]
    stop = _least((selected, *lengths)) if len(lengths) == 2 else selected
    return Schedule(pairing, selection.subsample, first, stop, selected, _least((selected, *stated)) if stated else None)


def _by_time(selection: Selection, reference: FrameSource, distorted: FrameSource, first: int, last: int | None) -> Schedule:
    times = []
    for source in (reference, distorted):
        of_frames = source.times()
        if of_frames is None:
            raise InputError(f"{source.info.path} has no presentation times, so `sync=pts` is not possible; use `sync=index`")
        times.append(of_frames)
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


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _frame(name: str, position: int | str, reference: FrameSource) -> int:
    """Return the first frame of the reference that is not before a position."""
    parsed = parse_position(name, position)
    if isinstance(parsed, int):
        return parsed
    times = reference.times()
    if times is not None:
        return int(np.searchsorted(times, float(parsed) - _ROUNDING))
    if reference.info.fps is None:
        raise InputError(f"{reference.info.path} has no presentation times; give `{name}` as the number of a frame")
    return math.ceil(parsed * reference.info.fps)
