"""Share one source among several readers, so that each frame is decoded once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from ...types import ExternalFrame, Planes
from ..pixels import DecodedFrame
from ..source import FrameSource, WrappedSource

_MAX_FRAMES = 8  # the most frames that the quickest reader may be ahead of the slowest
_MAX_SURFACES = 4  # the same if a hardware decoder owns the frames, of which it has few


class Tee:
    """A source that is not concurrent, for several readers in step, each on a thread of its own.

    All readers have to ask for the same frames. A reader that stops early has to be closed, or the other readers wait for it.
    The reader that comes first reads the source, and the owner of the source closes it. At most `_MAX_FRAMES` frames are kept.

    Of an `external` source, at most `_MAX_SURFACES` frames are kept, in the decoder's memory. Each reader copies them from
    there to its own memory of the GPU. Readers on the host share one copy.
    """

    def __init__(self, source: FrameSource, readers: int) -> None:
        self._source = source
        self._most = _MAX_SURFACES if source.external else _MAX_FRAMES
        self._changed = threading.Condition()
        self._reading = False
        self._frames: dict[int, _Frame] = {}
        self._spare: list[Planes] = []
        self._end: int | None = None
        self._failure: BaseException | None = None
        self.readers = tuple(_TeeReader(self, source) for _ in range(readers))
        self._next_of: dict[FrameSource, int] = dict.fromkeys(self.readers, 0)

    def take(self, reader: FrameSource, number: int, planes: int, use: Callable[[_Frame], None]) -> bool:
        """Have a reader use a frame, of which its first planes are needed; return False if the source has ended."""
        if reader not in self._next_of:
            return False
        frame = self._frame(number, planes)
        if frame is None:
            return False
        try:
            use(frame)
        except BaseException:
            # The next batch may be asked for before the run has ended. Frames that other readers still need must not be
            # skipped.
            self.leave(reader)
            raise
        del frame  # the decoder gets a surface back as soon as the last reader has copied it
        with self._changed:
            if reader in self._next_of:
                self._next_of[reader] = number + 1
            self._let_go()
        return True

    def memory(self, planes: int) -> Planes:
        """Return memory for a frame: that of a frame which all readers have taken, or else new memory."""
        with self._changed:
            return self._spare.pop() if self._spare else self._source.info.new_planes(planes)

    def leave(self, reader: FrameSource) -> None:
        """Stop waiting for a reader, which gets no more frames."""
        with self._changed:
            self._next_of.pop(reader, None)
            self._let_go()

    def _frame(self, number: int, planes: int) -> _Frame | None:
        with self._changed:
            self._changed.wait_for(lambda: number in self._frames or self._is_over(number) or self._may_read())
            if number in self._frames:
                return self._frames[number]
            if self._failure is not None:
                raise copy(self._failure)  # each run attaches its own report to its error
            if self._is_over(number):
                return None
            self._reading = True
        frame: _Frame | None = None
        failure: BaseException | None = None
        try:
            frame = self._read(number, planes)
        except BaseException as error:  # interruptions count too: other readers must not take one for the end
            failure = error
            raise
        finally:
            with self._changed:
                self._reading, self._failure = False, failure
                if frame is not None:
                    self._frames[number] = frame
                else:
                    self._end = number
                self._changed.notify_all()
        return frame

    def _read(self, number: int, count: int) -> _Frame | None:
        if self._source.external:
            decoded = self._source.decoded_frame(number)
            return None if decoded is None else _Frame(self, decoded=decoded)
        planes = self._source.read_any_size(number, self.memory(count))
        return None if planes is None else _Frame(self, planes)

    def _may_read(self) -> bool:
        return not self._reading and len(self._frames) < self._most

    def _is_over(self, number: int) -> bool:
        return self._end is not None and number >= self._end

    def _let_go(self) -> None:
        info = self._source.info
        slowest = min(self._next_of.values(), default=None)
        done = [number for number in self._frames if slowest is None or number < slowest]
        for number in done:
            planes = self._frames.pop(number).planes
            if planes is not None and planes[0].shape == (info.height, info.width):
                self._spare.append(planes)
        if done:
            self._changed.notify_all()


class _Frame:
    """A frame that readers take: in `planes` of the host, as a GPU's decoder gave it, or both."""

    def __init__(self, tee: Tee, planes: Planes | None = None, decoded: DecodedFrame | None = None) -> None:
        self._tee = tee
        self.planes = planes
        self._decoded = decoded
        self._copying = threading.Lock()

    def copy(self, target: Planes) -> None:
        """Copy it to memory of the host. The first reader on the host copies a decoder's frame for all of them."""
        with self._copying:
            if self.planes is None:
                assert self._decoded is not None
                planes = self._tee.memory(len(target))
                self._decoded.copy(planes)
                self.planes = planes
        for plane, place in zip(self.planes, target, strict=True):
            np.copyto(place, plane)

    def copy_any_size(self, memory: Planes) -> Planes:
        """Return a copy of a frame on the host, in `memory` if it fits."""
        assert self.planes is not None
        target = memory if self.planes[0].shape == memory[0].shape else tuple(map(np.empty_like, self.planes))
        self.copy(target)
        return target

    def write(self, target: ExternalFrame) -> None:
        assert self._decoded is not None
        self._decoded.write(target)


class _TeeReader(WrappedSource):
    """A reader's view of the source. Attributes that would read the shared source, or seek in it, are those of any source."""

    at_start = FrameSource.at_start
    seek_index, seek, verify_boundary = FrameSource.seek_index, FrameSource.seek, FrameSource.verify_boundary
    sample, decoded_frame, give_up = FrameSource.sample, FrameSource.decoded_frame, FrameSource.give_up

    def __init__(self, tee: Tee, source: FrameSource) -> None:
        super().__init__(source)
        self._tee = tee
        self.problem, self.length = None, None  # known when this reader has met the end

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        return self._take(_Frame.copy, numbers, targets)

    def read_any_size(self, number: int, memory: Planes) -> Planes | None:
        if not self.any_size:
            return super().read_any_size(number, memory)
        copies: list[Planes] = []
        self._take(lambda frame, target: copies.append(frame.copy_any_size(target)), [number], [memory])
        return copies[0] if copies else None

    def read_external(self, numbers: Sequence[int], targets: Sequence[ExternalFrame]) -> int:
        return self._take(_Frame.write, numbers, targets)

    def _take(self, use: Callable[..., None], numbers: Sequence[int], targets: Sequence[Any]) -> int:
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            if not self._tee.take(self, number, len(target), partial(use, target=target)):
                # Each reader gets a problem of its own, as with failures.
                self.problem, self.length = copy(self.source.problem), self.source.length
                return count
        return len(numbers)

    def close(self) -> None:
        """Let the other readers go on without this one; a second call does nothing."""
        self._tee.leave(self)
