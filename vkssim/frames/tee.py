"""Share one source among several readers, so that each frame is decoded once."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from copy import copy

import numpy as np
import numpy.typing as npt

from ..types import Planes
from .clip_facts import ClipFacts, VideoPackets
from .source import FrameSource

_MOST_FRAMES = 8  # the most frames that the quickest reader may be ahead of the slowest


class Tee:
    """Give the frames of a source that is not concurrent to several readers in step, each on a thread of its own.

    All readers have to ask for the same frames. A reader that stops early has to be closed, or the others wait for it. The
    reader that comes first reads the source, and the owner of the source closes it. At most `_MOST_FRAMES` frames are kept.
    """

    def __init__(self, source: FrameSource, readers: int) -> None:
        self._source = source
        self._changed = threading.Condition()
        self._reading = False
        self._frames: dict[int, Planes] = {}
        self._spare: list[Planes] = []
        self._end: int | None = None
        self._failure: BaseException | None = None
        self._packets: VideoPackets | None = None
        self._packets_known = False
        self._packets_lock = threading.Lock()
        self.readers = tuple(_TeeReader(self, source) for _ in range(readers))
        self._wanted: dict[FrameSource, int] = dict.fromkeys(self.readers, 0)

    def take(self, reader: FrameSource, number: int, target: Planes) -> bool:
        """Copy a frame to a reader's target; False where the source has ended."""
        frame = self._frame(number, target)
        if frame is None:
            return False
        _copy(frame, target)
        with self._changed:
            self._wanted[reader] = number + 1
            self._let_go()
        return True

    def leave(self, reader: FrameSource) -> None:
        """Wait for that reader no longer."""
        with self._changed:
            self._wanted.pop(reader, None)
            self._let_go()

    def packets(self) -> VideoPackets | None:
        """See FrameSource.packets; found once for all readers."""
        with self._packets_lock:
            if not self._packets_known:
                self._packets, self._packets_known = self._source.packets(), True
            return self._packets

    def _frame(self, number: int, like: Planes) -> Planes | None:
        with self._changed:
            self._changed.wait_for(lambda: number in self._frames or self._is_over(number) or self._may_read())
            if number in self._frames:
                return self._frames[number]
            if self._failure is not None:
                raise copy(self._failure)  # each run attaches its own report to its error
            if self._is_over(number):
                return None
            self._reading = True
            frame = self._spare.pop() if self._spare else _blank(like)
        found = 0
        failure: BaseException | None = None
        try:
            found = self._source.read([number], [frame])
        except BaseException as error:  # interruptions count too: the others must not take one for the end
            failure = error
            raise
        finally:
            with self._changed:
                self._reading, self._failure = False, failure
                if found:
                    self._frames[number] = frame
                else:
                    self._end = number
                self._changed.notify_all()
        return frame if found else None

    def _may_read(self) -> bool:
        return not self._reading and len(self._frames) < _MOST_FRAMES

    def _is_over(self, number: int) -> bool:
        return self._end is not None and number >= self._end

    def _let_go(self) -> None:
        slowest = min(self._wanted.values(), default=None)
        for number in [number for number in self._frames if slowest is None or number < slowest]:
            self._spare.append(self._frames.pop(number))
        self._changed.notify_all()


class _TeeReader(FrameSource):
    """Give one reader its view of the source."""

    def __init__(self, tee: Tee, source: FrameSource) -> None:
        self._tee = tee
        self._source = source
        self.info = source.info
        self.stream = source.stream
        self.opened = source.opened

    @property
    def damage(self) -> Mapping[int, str]:  # type: ignore[override] # which others have as an attribute
        """See FrameSource.damage."""
        return self._source.damage

    @property
    def remarks(self) -> Sequence[tuple[int, str]]:  # type: ignore[override]
        """See FrameSource.remarks."""
        return self._source.remarks

    @property
    def expected(self) -> int | None:
        """See FrameSource.expected."""
        return self._source.expected

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """See FrameSource.read."""
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            if not self._tee.take(self, number, target):
                # Each reader gets a problem of its own, as with failures.
                self.problem, self.length = copy(self._source.problem), self._source.length
                return count
        return len(numbers)

    def time(self, number: int) -> float | None:
        """See FrameSource.time."""
        return self._source.time(number)

    def times(self) -> npt.NDArray[np.float64] | None:
        """See FrameSource.times."""
        return self._source.times()

    def clip_facts(self) -> ClipFacts:
        """See FrameSource.clip_facts."""
        return self._source.clip_facts()

    def packets(self) -> VideoPackets | None:
        """See FrameSource.packets."""
        return self._tee.packets()

    def close(self) -> None:
        """Leave the others to themselves; a second call does nothing."""
        self._tee.leave(self)


def _blank(like: Planes) -> Planes:
    return tuple(np.empty(plane.shape, plane.dtype) for plane in like)


def _copy(frame: Planes, target: Planes) -> None:
    for source, place in zip(frame, target, strict=True):
        np.copyto(place, source)
