"""Which frames are compared."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ..errors import InputError, OptionError
from ..utils.facts import Differs, Fact, fact
from ..utils.limits import LARGEST_NUMBER, MOST_DIGITS, shown, whole_number
from .pairing import ROUNDING, SYNCS, ByIndex, ByTime, Pairing
from .source import FrameSource

_DIGITS = rf"\d{{1,{MOST_DIGITS}}}"
_SECONDS = re.compile(rf"({_DIGITS}(?:\.{_DIGITS})?)s")
_CLOCK = re.compile(rf"(?:({_DIGITS}):)?({_DIGITS}):({_DIGITS}(?:\.{_DIGITS})?)")


@dataclass(frozen=True)
class Schedule:
    """Every `step`-th pair from `start` to before `stop`, None where only reading tells; `asked_stop` is the user's own.

    `expected` is where they should end by what the clips say of themselves, `unmatched` what to say of frames that have no
    partner.
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


def _option(title: str, flag: str) -> dict[str, Fact]:
    """Return the metadata of an option: reports of other frames can be compared, by the frames that both have."""
    return fact(title, Differs.WARNED, flag=flag)


def _stream(title: str, flag: str) -> dict[str, Fact]:
    """Return the metadata of a stream that was asked for; comparisons look at the one that was taken (`ClipFacts.stream`)."""
    return fact(title, Differs.FREE, flag=flag)


@dataclass(frozen=True)
class Selection:
    """Which frames are compared: every `subsample`-th pair, at most `count` pairs in, after skipping some of each file.

    With an `offset` of N frame i+N of the distorted clip goes with frame i of the reference; N may be negative. `start` and
    `end` (which is not compared itself) are places in the reference: a number of a frame, or a time since its first frame as
    ``"12.5s"`` or ``"00:01:02.5"``. `stream_reference` and `stream_distorted` are which streams of containers, by their index
    in the file as ffprobe shows it; by default the first video stream with the default mark, else the first that is no cover.
    """

    skip_reference: int = field(default=0, metadata=_option("frames skipped of the reference", "--frame_skip_ref"))
    skip_distorted: int = field(default=0, metadata=_option("frames skipped of the distorted clip", "--frame_skip_dist"))
    count: int | None = field(default=None, metadata=_option("most frames", "--frame_cnt"))
    subsample: int = field(default=1, metadata=_option("subsample", "--subsample"))
    offset: int = field(default=0, metadata=_option("offset", "--offset"))
    start: int | str | None = field(default=None, metadata=_option("start", "--start"))
    end: int | str | None = field(default=None, metadata=_option("end", "--end"))
    stream_reference: int | None = field(default=None, metadata=_stream("stream of the reference", "--stream-reference"))
    stream_distorted: int | None = field(default=None, metadata=_stream("stream of the distorted clip", "--stream-distorted"))

    def __post_init__(self) -> None:
        for name, value, least in (
            ("skip_reference", self.skip_reference, 0),
            ("skip_distorted", self.skip_distorted, 0),
            ("count", self.count, 1),
            ("subsample", self.subsample, 1),
            ("stream_reference", self.stream_reference, 0),
            ("stream_distorted", self.stream_distorted, 0),
        ):
            if value is not None and not least <= value <= LARGEST_NUMBER:
                raise InputError(f"`{name}` is {shown(value)}; it must be {least} or more, and {LARGEST_NUMBER} at most")
        if abs(self.offset) > LARGEST_NUMBER:
            raise InputError(f"`offset` is {shown(self.offset)}; {LARGEST_NUMBER} is the most there can be")
        for name, place in (("start", self.start), ("end", self.end)):
            if place is not None:
                _place(name, place)

    @property
    def takes_all(self) -> bool:
        """Return True where no part of the clips is asked for: they are compared until one of them ends."""
        return self.count is None and self.start is None and self.end is None

    @property
    def streams(self) -> tuple[int | None, int | None]:
        """Return the streams of the reference and of the distorted clip, None for the one that is chosen."""
        return self.stream_reference, self.stream_distorted

    @property
    def first_reference(self) -> int:
        """Return the frame of the reference that is in the first pair."""
        return self.skip_reference + max(0, -self.offset)

    @property
    def first_distorted(self) -> int:
        """Return the frame of the distorted clip that is in the first pair."""
        return self.skip_distorted + max(0, self.offset)

    def schedule(self, reference: FrameSource, distorted: FrameSource, sync: str) -> Schedule:
        """Return the pairs of two sources, by ``"index"`` or by ``"pts"``.

        Raises InputError where a time is needed and not known.
        """
        check_sync(sync)
        first, last = (
            None if place is None else max(0, _frame(name, place, reference) - self.first_reference)
            for name, place in (("start", self.start), ("end", self.end))
        )
        return (
            self._by_index(reference, distorted, first or 0, last)
            if sync == "index"
            else self._by_time(reference, distorted, first or 0, last)
        )

    def _by_index(self, reference: FrameSource, distorted: FrameSource, first: int, last: int | None) -> Schedule:
        skips = (reference, self.first_reference), (distorted, self.first_distorted)
        asked = _least((last, None if self.count is None else first + self.count))
        known = [source.info.frames if source.concurrent else None for source, _ in skips]
        lengths = _least(_left(known, skips)) if None not in known else None
        expected = _least(_left([source.expected for source, _ in skips], skips))
        return Schedule(
            ByIndex(self.first_reference, self.first_distorted),
            self.subsample,
            first,
            _least((asked, lengths)),
            asked,
            None if expected is None else _least((asked, expected)),
        )

    def _by_time(self, reference: FrameSource, distorted: FrameSource, first: int, last: int | None) -> Schedule:
        times = []
        for source in (reference, distorted):
            found = source.times()
            if found is None:
                raise InputError(f"{source.info.path} does not say when its frames are shown, so `sync=pts` is not possible")
            times.append(found)
        pairing = ByTime(times[0], times[1], self.first_reference, self.first_distorted)
        start = pairing.pair_of(first)
        stop = min(
            len(pairing),
            len(pairing) if last is None else pairing.pair_of(last),
            len(pairing) if self.count is None else start + self.count,
        )
        unmatched = None
        left_over = pairing.left_over(start, stop)
        if any(left_over):
            unmatched = (
                f"{left_over[0]} frames of {reference.info.path} and {left_over[1]} of {distorted.info.path}"
                " have none in the other clip within half a frame of their time; they were not compared"
            )
        return Schedule(pairing, self.subsample, start, stop, stop, stop, unmatched)


def check_sync(sync: str) -> None:
    """Raise OptionError where pairs cannot be made that way."""
    if sync not in SYNCS:
        raise OptionError(f"sync is {sync!r}; {' or '.join(SYNCS)} is possible")


def _left(frames: Iterable[int | None], skips: Iterable[tuple[FrameSource, int]]) -> list[int | None]:
    return [None if count is None else max(0, count - skip) for count, (_, skip) in zip(frames, skips, strict=True)]


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _place(name: str, place: int | str) -> int | Fraction:
    """Return a frame's number, or seconds. Raises OptionError."""
    text = str(place)
    number = whole_number(text)
    if number is not None:
        return number
    if match := _SECONDS.fullmatch(text):
        return Fraction(match[1])
    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds = match.groups()
        return (int(hours or 0) * 60 + int(minutes)) * 60 + Fraction(seconds)
    raise OptionError(f"`{name}` is {shown(text)}; a number of a frame, or a time such as 12.5s or 00:01:02.5, is possible")


def _frame(name: str, place: int | str, reference: FrameSource) -> int:
    """Return the first frame of the reference that is not before a place."""
    where = _place(name, place)
    if isinstance(where, int):
        return where
    times = reference.times()
    if times is not None:
        return int(np.searchsorted(times, float(where) - ROUNDING))
    if reference.info.fps is None:
        raise InputError(f"{reference.info.path} does not say when its frames are shown; give `{name}` as a number of a frame")
    return math.ceil(where * reference.info.fps)
