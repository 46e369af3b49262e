"""The CPU backend: the NumPy twins, which round as libvmaf does. It is slow, and the standard for the shaders."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import numpy as np

from ..metrics.plane_metrics import PlaneMetrics
from ..metrics.samples import ingest
from ..types import BackendInfo, Doubles, Samples
from .base import Backend, Batch, find_beyond

INFO = BackendInfo("cpu", platform.machine(), f"NumPy {np.__version__}")
"""The backend as reports name it."""


class CpuBackend(Backend):
    """A backend that computes frames when they are submitted."""

    def __init__(self, planes: Sequence[PlaneMetrics], slots: int = 2) -> None:
        self.planes = planes
        self._looks_around = any(scorer.looks_around for plane in planes for scorer in plane.scorers)
        self.info = INFO
        self.batches = tuple(Batch(_empty_frame(planes), _empty_frame(planes)) for _ in range(slots))

    def submit(self, batch: Batch, frames: int, after: Batch | None = None) -> None:
        """Compute the means of the frames, one after the other."""
        batch.beyond = find_beyond(self.planes, batch, frames)
        leads = after.tails if after is not None and self._looks_around else [None] * len(self.planes)
        batch.results = [
            _means(plane, reference[:frames], distorted[:frames], lead)
            for plane, reference, distorted, lead in zip(self.planes, batch.reference, batch.distorted, leads, strict=True)
        ]
        if self._looks_around:
            batch.tails = [reference[frames - 1].copy() for reference in batch.reference]

    def is_done(self, batch: Batch) -> bool:
        """Return True, because `submit` has computed the batch."""
        return True

    def collect(self, batch: Batch) -> list[list[Doubles]]:
        """Return the means that `submit` computed."""
        return batch.results

    def close(self) -> None:
        """Do nothing: there is no device to close."""


def _empty_frame(planes: Sequence[PlaneMetrics]) -> tuple[Samples, ...]:
    return tuple(np.empty((1, plane.format.height, plane.format.width), plane.format.dtype) for plane in planes)


def _means(plane: PlaneMetrics, references: Samples, distorteds: Samples, lead: Samples | None) -> list[Doubles]:
    stored = list(zip(references, distorteds, [lead, *references[:-1]], strict=True))
    factor = plane.format.factor
    scaled = [(ingest(reference, factor), ingest(distorted, factor), None) for reference, distorted, _ in stored]
    return [
        np.stack(
            [
                scorer.reference_means(reference, distorted, before)
                for reference, distorted, before in (stored if scorer.reads_integers else scaled)
            ]
        )
        for scorer in plane.scorers
    ]
