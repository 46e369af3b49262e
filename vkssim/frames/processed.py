"""Apply a step of preprocessing to the frames of a source: turn, scale, deepen or crop them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..types import Planes, largest_beyond
from .clip_facts import ClipFacts, VideoPackets
from .info import VideoInfo
from .marks import Marks
from .source import FrameSource, sample_problem

_PLANES = ("y", "cb", "cr")


class Step(Protocol):
    """Change each frame of a source. It may be called from several threads at once."""

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return what is known of the stream after the step, with a note of what it did."""

    def __call__(self, planes: Planes) -> Planes:
        """Return the planes after the step; may be views of those before."""


class ProcessedSource(FrameSource):
    """Apply a step to another source; closing this source closes that one."""

    def __init__(self, source: FrameSource, step: Step) -> None:
        self._source = source
        self._step = step
        self.info = step.info(source.info)
        self.concurrent = source.concurrent
        self.stream = source.stream
        self.opened = source.opened
        self._lock = threading.Lock()
        self._first_beyond: int | None = None
        self._take_over()

    def _take_over(self) -> None:
        self.problem, self.length = self._source.problem, self._source.length

    @property
    def damage(self) -> Mapping[int, str]:  # type: ignore[override] # which others have as an attribute
        """See FrameSource.damage."""
        return self._source.damage

    @property
    def remarks(self) -> Sequence[tuple[int, str]]:  # type: ignore[override]
        """See FrameSource.remarks."""
        return self._source.remarks

    @property
    def bytes_read(self) -> int:  # type: ignore[override] # which others count themselves
        """See FrameSource.bytes_read."""
        return self._source.bytes_read

    @property
    def expected(self) -> int | None:
        """See FrameSource.expected."""
        return self._source.expected

    @property
    def at_start(self) -> bool:
        """See FrameSource.at_start."""
        return self._source.at_start

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """See FrameSource.read."""
        planes = self._source.info.new_planes(len(targets[0]) if targets else 0)
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            if not self._source.read([number], [planes]):
                self._take_over()
                return count
            if self._is_beyond(number, planes):
                return count
            for place, plane in zip(target, self._step(planes), strict=True):
                place[:] = plane
        return len(numbers)

    def _is_beyond(self, number: int, planes: Planes) -> bool:
        """Return whether a sample is larger than its depth allows, which nobody could see any more after the step."""
        info = self._source.info
        for name, plane in zip(_PLANES, planes, strict=False):
            largest = largest_beyond(plane, 2**info.bits - 1)
            if largest is not None:
                with self._lock:  # several threads read: the first such frame counts
                    if self._first_beyond is None or number < self._first_beyond:
                        self.problem, self._first_beyond = sample_problem(info, number, name, largest), number
                return True
        return False

    def time(self, number: int) -> float | None:
        """See FrameSource.time."""
        return self._source.time(number)

    def times(self) -> npt.NDArray[np.float64] | None:
        """See FrameSource.times."""
        return self._source.times()

    def marks(self) -> Marks | None:
        """See FrameSource.marks."""
        return self._source.marks()

    def go_to(self, number: int, place: int) -> int | None:
        """See FrameSource.go_to."""
        return self._source.go_to(number, place)

    def check_passed(self, number: int, last: int) -> int | None:
        """See FrameSource.check_passed."""
        return self._source.check_passed(number, last)

    def clip_facts(self) -> ClipFacts:
        """See FrameSource.clip_facts."""
        return self._source.clip_facts()

    def packets(self) -> VideoPackets | None:
        """See FrameSource.packets."""
        return self._source.packets()

    def sample(self, count: int) -> Iterator[Planes]:
        """See FrameSource.sample."""
        return map(self._step, self._source.sample(count))

    def give_up(self) -> None:
        """See FrameSource.give_up."""
        self._source.give_up()

    def close(self) -> None:
        """Close the source."""
        self._source.close()
