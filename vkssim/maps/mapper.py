"""Compute SSIM of pairs of frames together with their maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..backends.open import open_backend, open_with_warnings
from ..backends.sessions import Session
from ..metrics.float_ssim import SsimMapScorer
from ..metrics.options import OptionValue
from ..metrics.plane_metrics import PlaneMetrics
from ..types import Doubles, FrameFormat
from ..utils.thread_pool import Closable

FloatMaps = npt.NDArray[np.float32]
"""(N, H', W') float32: SSIM of every window, at most 1."""


class SsimMapper(Closable):
    """A backend that computes float_ssim and its map for frames of one format. The other arguments and errors are `Scorer`'s.

    The device of a session stays open.
    """

    def __init__(
        self,
        frame: FrameFormat,
        options: Mapping[str, OptionValue],
        *,
        backend: str = "vulkan",
        device: str | int | Session | None = None,
        batch: int | None = None,
    ) -> None:
        planes = [PlaneMetrics("y", frame, (SsimMapScorer(frame, options),))]
        self._backend = open_with_warnings(open_backend(backend, planes, device=device, batch=batch))
        (scorer,) = self._backend.planes[0].scorers  # it may be that of an earlier mapper, which the backend has kept
        assert isinstance(scorer, SsimMapScorer)
        self._scorer = scorer

    def run(
        self, references: npt.NDArray[Any], distorteds: npt.NDArray[Any], weights: Doubles | None = None
    ) -> tuple[Doubles, FloatMaps]:
        """Return (N,) scores and (N, H', W') maps of two (N, H, W) stacks of samples, with any strides.

        With `weights`, (N, H', W'), the scores are of the weighted means of the maps. Raises FrameError if a sample is larger
        than the format allows.
        """
        self._backend.check_process()
        self._scorer.maps.clear()  # those of a run that failed
        scores = np.empty(len(references), np.float64)
        maps = np.empty((len(references), *self._scorer.map_shape), np.float32)
        batch, size = self._backend.batches[0], self._backend.batch_size
        for start in range(0, len(references), size):
            span = slice(start, min(start + size, len(references)))
            frames = span.stop - start
            np.copyto(batch.reference[0][:frames], references[span], "same_kind")
            np.copyto(batch.distorted[0][:frames], distorteds[span], "same_kind")
            self._backend.submit(batch, frames)
            ((means,),) = self._backend.collect(batch)
            if batch.out_of_range is not None:
                raise batch.out_of_range.error(start + batch.out_of_range.frame)
            maps[span] = self._scorer.maps
            if weights is not None:
                counted = np.where(weights[span] > 0, maps[span], 0)  # a window that does not count may be NaN
                sums = np.einsum("nij,nij->n", counted, weights[span], dtype=np.float64)
                means = np.broadcast_to((sums / weights[span].sum(axis=(1, 2)))[:, None], np.shape(means))
            scores[span] = self._scorer.finish(means)[self._scorer.name]
            self._scorer.maps.clear()
        return scores, maps

    def close(self) -> None:
        """Close the device; a second call does nothing."""
        self._backend.close()
