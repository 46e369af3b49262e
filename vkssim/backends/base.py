"""What a backend offers to whoever feeds it frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ..features.base import Doubles
from ..types import Samples


@dataclass(frozen=True)
class BackendInfo:
    """Which backend, on which device, with which driver."""

    backend: str
    device: str
    driver: str

    def __str__(self) -> str:
        return f"{self.backend}: {self.device} ({self.driver})"


@dataclass(eq=False)
class Batch:
    """Memory for some frames on their way to the device.

    `reference` and `distorted` have a (batch, H, W) view to be written for each plane; rows may be padded, so that they need
    not be contiguous.
    """

    reference: tuple[Samples, ...]
    distorted: tuple[Samples, ...]
    slot: Any = None
    results: list[list[Doubles]] = field(default_factory=list)


class Backend(ABC):
    """Takes batches of frames and gives the means of each metric; use with `with`.

    A batch goes round: `free` gives it, its owner fills the first `frames` of its planes, `submit` starts them, `collect`
    waits for their means and frees it. Batches finish in the order of their submission.
    """

    info: BackendInfo
    batches: tuple[Batch, ...]
    warnings: tuple[str, ...] = ()
    """What the user should know of how it was opened."""

    @property
    def batch_size(self) -> int:
        """Frames of a batch."""
        return len(self.batches[0].reference[0])

    def check_process(self) -> None:
        """Raise ForkError where the batches' memory is that of another process; called before they are written to."""
        return

    @abstractmethod
    def submit(self, batch: Batch, frames: int) -> None:
        """Start the first `frames` frames of a filled batch."""

    @abstractmethod
    def is_done(self, batch: Batch) -> bool:
        """True where `collect` would not wait."""

    @abstractmethod
    def collect(self, batch: Batch) -> list[list[Doubles]]:
        """Wait for a submitted batch: for each plane, for each of its metrics, (frames, terms) means."""

    def stage_seconds(self) -> Mapping[str, float]:
        """Seconds spent in each stage so far, where the backend was asked to take them."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Let go of the device; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def empty_planes(frames: int, height: int, width: int, dtype: np.dtype[Any]) -> Samples:
    """(frames, height, width) samples in ordinary memory."""
    return np.empty((frames, height, width), dtype)
