"""Mark the positions from which a stream can be read without what comes before."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt


class SeekIndex(Protocol):
    """Hold the positions of a stream's frames, in the bytes or ticks of its source. Both methods count frames from 0."""

    frames: int

    def before(self, number: int) -> int:
        """Return the last frame up to that number which needs none before it."""

    def place(self, number: int) -> int:
        """Return where a frame begins, for `FrameSource.seek`."""


class FixedSizeIndex:
    """Mark frames of one length, one after the other, each of which can be read by itself."""

    def __init__(self, frames: int, first: int, frame_bytes: int) -> None:
        self.frames = frames
        self._first = first
        self._frame_bytes = frame_bytes

    def before(self, number: int) -> int:
        """See SeekIndex."""
        return number

    def place(self, number: int) -> int:
        """See SeekIndex: the frame's first byte."""
        return self._first + number * self._frame_bytes


class KeyframeIndex:
    """Mark key frames. `ticks` are the presentation times of all frames, rising; `keys` are those of key frames."""

    def __init__(self, ticks: npt.NDArray[np.int64], keys: npt.NDArray[np.int64]) -> None:
        self.frames = len(ticks)
        self._ticks = ticks
        self._keys = np.searchsorted(ticks, keys)

    def before(self, number: int) -> int:
        """See SeekIndex."""
        place = int(np.searchsorted(self._keys, number, side="right")) - 1
        return int(self._keys[place]) if place >= 0 else 0

    def place(self, number: int) -> int:
        """See SeekIndex: when the frame is shown, in ticks of its stream."""
        return int(self._ticks[number])
