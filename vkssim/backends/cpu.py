"""The CPU backend: the NumPy twins, which round as libvmaf does. It is slow, and the standard for the shaders."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence

import numpy as np

from ..metrics.base import FrameScorer
from ..metrics.plane_metrics import PlaneMetrics
from ..metrics.samples import ingest
from ..types import BackendInfo, Doubles, Samples
from .base import Backend, Batch, find_out_of_range

INFO = BackendInfo("cpu", platform.machine(), f"NumPy {np.__version__}")
"""The backend as reports name it."""


class CpuBackend(Backend):
    """A backend that computes frames when they are submitted."""

    def __init__(self, planes: Sequence[PlaneMetrics], slots: int = 2) -> None:
        self.planes = planes
        self._distance = max(scorer.distance for plane in planes for scorer in plane.scorers)
        self.info = INFO
        self.batches = tuple(Batch(_empty_frame(planes), _empty_frame(planes)) for _ in range(slots))

    def submit(self, batch: Batch, frames: int, after: Batch | None = None) -> None:
        """Compute the means of the frames, one after the other."""
        batch.out_of_range = find_out_of_range(self.planes, batch, frames)
        leads: Sequence[Sequence[Samples]] = [()] * len(self.planes) if after is None else after.tails
        batch.results = [
            _means(plane, [*lead, *reference[:frames]], distorted[:frames])
            for plane, reference, distorted, lead in zip(self.planes, batch.reference, batch.distorted, leads, strict=True)
        ]
        tails = zip(leads, batch.reference, strict=True)
        batch.tails = [
            [*lead, *reference[:frames].copy()][-self._distance :] if self._distance else () for lead, reference in tails
        ]

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


def _means(plane: PlaneMetrics, references: Sequence[Samples], distorteds: Samples) -> list[Doubles]:
    """Return the means of the last frames, those of `distorteds`; earlier references are only compared with."""
    first, factor = len(references) - len(distorteds), plane.format.factor
    stored = list(zip(references[first:], distorteds, strict=True))
    scaled = [(ingest(reference, factor), ingest(distorted, factor)) for reference, distorted in stored]

    def means(scorer: FrameScorer) -> Doubles:
        earlier: Iterable[Samples | None] = [None] * len(stored)
        if scorer.distance:
            earlier = ([None] * scorer.distance + [*references])[first : first + len(stored)]
        pairs = zip(stored if scorer.reads_integers else scaled, earlier, strict=True)
        return np.stack([scorer.reference_means(*pair, before) for pair, before in pairs])

    return [means(scorer) for scorer in plane.scorers]
