"""The CPU backend: the NumPy twins, rounding as libvmaf does. Slow; made to be trusted."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import numpy as np

from ..features.base import Doubles, FrameScorer
from ..formats import FrameFormat
from ..reference.ingest import ingest
from .base import Backend, BackendInfo, Batch, empty_planes


class CpuBackend(Backend):
    """Computes every frame when it is submitted."""

    def __init__(self, frame: FrameFormat, scorers: Sequence[FrameScorer], slots: int = 2) -> None:
        self._frame = frame
        self._scorers = scorers
        self.info = BackendInfo("cpu", platform.processor() or platform.machine(), f"NumPy {np.__version__}")
        size = 1, frame.height, frame.width, frame.dtype
        self.batches = tuple(Batch(empty_planes(*size), empty_planes(*size)) for _ in range(slots))

    def submit(self, batch: Batch, frames: int) -> None:
        """Compute the means of the frames, one after the other."""
        pairs = [
            (ingest(batch.reference[i], self._frame.factor), ingest(batch.distorted[i], self._frame.factor))
            for i in range(frames)
        ]
        batch.results = [np.stack([scorer.reference_means(*pair) for pair in pairs]) for scorer in self._scorers]

    def is_done(self, batch: Batch) -> bool:
        """Always."""
        return True

    def collect(self, batch: Batch) -> list[Doubles]:
        """The means computed by `submit`."""
        return batch.results

    def close(self) -> None:
        """Nothing to let go of."""
