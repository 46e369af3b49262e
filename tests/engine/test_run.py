"""The loop over the batches of a range: reading, the device and the scores overlap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from vkssim.backends.base import Batch
from vkssim.backends.cpu import CpuBackend
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.run import score_range
from vkssim.frames.open import open_file
from vkssim.frames.options import RawDescription
from vkssim.frames.source import WrappedSource
from vkssim.metrics.plane_metrics import PlaneMetrics
from vkssim.types import Samples

from ..support.clips import write, y4m_bytes
from ..support.pictures import clip

FRAMES = 6


def test_decoders_always_have_a_batch(tmp_path: Path) -> None:
    """A GPU with two batches, each of one frame: one is collected while the frame of the other is still being decoded."""
    collected = [Event() for _ in range(FRAMES)]

    class Gpu(CpuBackend):
        frames = 0

        def __init__(self, planes: Sequence[PlaneMetrics]) -> None:
            super().__init__(planes)
            for batch in self.batches:
                batch.external = _frames(batch.reference), _frames(batch.distorted)

        def is_done(self, _batch: Batch) -> bool:
            return False

        def collect(self, batch: Batch) -> Any:
            collected[self.frames].set()
            self.frames += 1
            return super().collect(batch)

    class AfterTheFrameBefore(WrappedSource):
        def read_external(self, numbers: Sequence[int], targets: Any) -> int:
            assert all(collected[number - 1].wait(30) for number in numbers if 0 < number < FRAMES)
            return self.source.read(numbers, targets)

    luma = clip(FRAMES)
    paths = [write(tmp_path / f"{name}.y4m", y4m_bytes(np.roll(luma, step, axis=2))) for name, step in (("r", 0), ("d", 1))]
    with open_file(paths[0], RawDescription()) as reference, open_file(paths[1], RawDescription()) as distorted:
        sources = AfterTheFrameBefore(reference), AfterTheFrameBefore(distorted)
        scores = score_range(sources, Clips(paths[0], paths[1]), Gpu, ScoreOptions(("float_ssim=scale=1",)))
    assert [frame.index for frame in scores.report.frames] == list(range(FRAMES))


def _frames(planes: Sequence[Samples]) -> Any:
    """Return the frames of a batch as a decoder gets them, which are arrays in place of addresses here."""
    return list(zip(*planes, strict=True))
