"""Sources that wrap a source: they have all of its attributes that they do not define, and may apply a step to its frames."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from ..types import Planes, largest_beyond
from .info import VideoInfo
from .source import FrameSource, sample_problem

_PLANES = ("y", "cb", "cr")


class _Forwarded:
    """An attribute or a method that a wrapper takes from its source, unless one was set on the wrapper."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, wrapper: WrappedSource | None, owner: type[WrappedSource]) -> Any:
        return self if wrapper is None else getattr(wrapper.source, self._name)


class WrappedSource(FrameSource):
    """A source with the current attributes of the wrapped `source`, except for those that a subclass defines."""

    def __init__(self, source: FrameSource) -> None:
        self.source = source

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """See FrameSource.read."""
        return self.source.read(numbers, targets)

    def close(self) -> None:
        """Close the source."""
        self.source.close()


ATTRIBUTES = frozenset(name for name in (*vars(FrameSource), *FrameSource.__annotations__) if not name.startswith("_"))
"""The names of all attributes and methods of a source."""

for _name in ATTRIBUTES - vars(WrappedSource).keys():
    setattr(WrappedSource, _name, _Forwarded(_name))


class Step(Protocol):
    """A change of each frame of a source. It may be called from several threads at once."""

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return the facts about the stream after the step, with a note on the step."""

    def __call__(self, planes: Planes) -> Planes:
        """Return the planes after the step, possibly as views of the given planes."""


class ProcessedSource(WrappedSource):
    """A source whose frames are those of `source` after a step. Closing it closes `source`."""

    # `oriented` applies the first two before any other step, and steps run on the processor.
    aperture = None
    orientation = None
    external = False
    read_external, decoded_frame = FrameSource.read_external, FrameSource.decoded_frame

    def __init__(self, source: FrameSource, step: Step) -> None:
        super().__init__(source)
        self._step = step
        self._described = source.info, step.info(source.info)
        self._lock = threading.Lock()
        self._first_beyond: int | None = None

    @property
    def info(self) -> VideoInfo:  # type: ignore[override] # an attribute of other sources
        """Return the facts about the stream after the step. The source may add facts while it is read."""
        before, after = self._described
        if before is not self.source.info:
            before = self.source.info
            after = self._step.info(before)
            self._described = before, after
        return after

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """See FrameSource.read."""
        planes = self.source.info.new_planes(len(targets[0]) if targets else 0)
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            if not self.source.read([number], [planes]):
                return count
            if self._is_beyond(number, planes):
                return count
            for memory, plane in zip(target, self._step(planes), strict=True):
                memory[:] = plane
        return len(numbers)

    def _is_beyond(self, number: int, planes: Planes) -> bool:
        """Return whether a sample is larger than its depth allows, which could not be noticed after the step."""
        info = self.source.info
        for name, plane in zip(_PLANES, planes, strict=False):
            largest = largest_beyond(plane, 2**info.bits - 1)
            if largest is not None:
                with self._lock:  # several threads read: the first such frame counts
                    if self._first_beyond is None or number < self._first_beyond:
                        self.problem, self._first_beyond = sample_problem(info, number, name, largest), number
                return True
        return False

    def sample(self, count: int) -> Iterator[Planes]:
        """See FrameSource.sample."""
        return map(self._step, self.source.sample(count))
