"""What every source of frames offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from ..errors import InputError
from ..types import Samples


@dataclass(frozen=True)
class VideoInfo:
    """What is known of a stream when it is opened. `frames` is None where only reading to the end can tell."""

    path: str
    kind: str
    width: int
    height: int
    bits: int
    frames: int | None = None
    fps: Fraction | None = None


class FrameSource(ABC):
    """A stream of luma planes; use with `with`.

    `concurrent` sources may be read from several threads at once and in any order; the others in order, by one thread.
    """

    info: VideoInfo
    concurrent = False
    problem: InputError | None = None
    """Why the stream ended before its time, once that is known; the frames before are good."""
    length: int | None = None
    """How many frames there are, once that is known: at the start, or when reading has met the end."""

    @property
    def expected(self) -> int | None:
        """How many frames there should be, going by what the stream says of itself or by its size; None for no idea."""
        return self.info.frames

    @abstractmethod
    def read(self, numbers: Sequence[int], targets: Sequence[Samples]) -> int:
        """Read the luma of the frames of these numbers, counted from 0 and rising, into (H, W) arrays.

        Returns how many there were: less than asked for at the end of the stream.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the file; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class SequentialSource(FrameSource):
    """A source that has only a next frame: the numbers between are skipped."""

    def __init__(self) -> None:
        self._position = 0

    @abstractmethod
    def _next(self, target: Samples | None) -> bool:
        """Read the next frame, or pass over it where there is no target; False at the end. May set `problem`."""

    def read(self, numbers: Sequence[int], targets: Sequence[Samples]) -> int:
        """See FrameSource.read."""
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            while self._position <= number:
                if not self._next(target if self._position == number else None):
                    self.length = self._position
                    return count
                self._position += 1
        return len(numbers)
