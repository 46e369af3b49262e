"""The same pair of frames has the same bits of scores, whatever happens beside it: nothing here is approximate."""

from __future__ import annotations

import functools
import random
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkssim
from vkssim import FrameScores, Scorer, score_files
from vkssim.backends.vulkan import VulkanBackend
from vkssim.engine import run
from vkssim.frames.options import RawDescription
from vkssim.metrics.plane_metrics import FrameMetrics
from vkssim.shaders.interface import Shape
from vkssim.types import FrameFormat

from .support.clips import raw_bytes, write
from .support.devices.geometry import use_shape
from .support.pictures import Picture, clip

pytestmark = pytest.mark.usefixtures("shared_device")

Bits = dict[str, str]
"""Scores by name, as hexadecimal floats."""

EXACT, FAST, UNIFORM, MS = (
    "float_ssim=enable_lcs=true:scale=1",
    "float_ssim=enable_lcs=true:scale=1:precision=fast",
    "float_ssim=scale=1:window=uniform8",
    "float_ms_ssim=enable_lcs=true:precision=fast",
)


def _bits(metrics: Mapping[str, float]) -> Bits:
    return {name: score.hex() for name, score in metrics.items()}


def _all_bits(scores: Sequence[FrameScores]) -> list[Bits]:
    return [_bits(frame.metrics) for frame in scores]


@functools.cache
def _pairs(height: int, width: int, count: int = 11, bits: int = 8) -> tuple[Picture, Picture]:
    """Clips in which no two pairs are alike."""
    reference = clip(count, height, width, bits)
    return reference, reference[:, ::-1] // 3 * 2 + reference // 3


@pytest.fixture(params=Shape, ids=lambda shape: shape.value)
def shape(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Shape:
    """Give the device kernels of this shape."""
    chosen: Shape = request.param
    use_shape(monkeypatch, chosen)
    return chosen


def _scored(pairs: tuple[Picture, Picture], feature: str, order: Sequence[int], **options: Any) -> list[Bits]:
    """Scores of the pairs in that order through a Scorer."""
    height, width = pairs[0].shape[1:]
    bits = 8 if pairs[0].dtype == np.uint8 else 10
    with Scorer(width, height, bits=bits, features=feature, **options) as scorer:
        return _all_bits(list(scorer.score((pairs[0][number], pairs[1][number]) for number in order)))


@pytest.mark.usefixtures("shape")
@pytest.mark.parametrize(("feature", "side"), [(EXACT, 45), (FAST, 45), (UNIFORM, 45), (MS, 177)])
def test_batches_positions_and_neighbours(feature: str, side: int) -> None:
    """Each pair alone in a batch of one, then in batches of several sizes, at other places, between other pairs."""
    pairs = _pairs(side, side + 2)
    alone = _scored(pairs, feature, range(11), batch=1)
    assert len({tuple(bits.values()) for bits in alone}) == 11, "a mix-up of frames would be seen"
    shuffle = random.Random(3)
    for batch in (3, 12):
        order = [shuffle.randrange(11) for _ in range(2 * batch + 1)]
        assert _scored(pairs, feature, order, batch=batch) == [alone[number] for number in order]


def _run(
    backend: VulkanBackend, metrics: FrameMetrics, pairs: tuple[Picture, Picture], parts: Sequence[Sequence[int]]
) -> list[Bits]:
    """Scores of the pairs of each part, which is one submission; as many on their way as there are slots."""
    free, on_way, found = deque(backend.batches), deque[Any](), list[Bits]()

    def collect() -> None:
        batch = on_way.popleft()
        columns = metrics.finish(backend.collect(batch))
        found.extend(_bits(dict(zip(columns, row, strict=True))) for row in np.stack(list(columns.values()), 1).tolist())
        free.append(batch)

    for part in parts:
        if not free:
            collect()
        batch = free.popleft()
        for place, number in enumerate(part):
            batch.reference[0][place], batch.distorted[0][place] = pairs[0][number], pairs[1][number]
        backend.submit(batch, len(part))
        on_way.append(batch)
    while on_way:
        collect()
    return found


@pytest.mark.parametrize("precision", ["exact", "fast"])
def test_random_sizes_slots_and_partly_filled_batches(precision: str) -> None:
    """Twenty-five runs, of 1 to 4 slots, profiled or not: submissions of 1 to 8 pairs in any order."""
    chance = random.Random(precision)
    for _ in range(5):
        height, width, slots = chance.randrange(11, 90), chance.randrange(11, 90), chance.randrange(1, 5)
        pairs = _pairs(height, width, 9, chance.choice((8, 10)))
        bits = 8 if pairs[0].dtype == np.uint8 else 10
        metrics = FrameMetrics(f"float_ssim=scale=1:precision={precision}", [FrameFormat.of_bits(width, height, bits)])
        with VulkanBackend(metrics.planes, batch=8, slots=slots, profile=chance.random() < 0.5) as backend:
            alone = _run(backend, metrics, pairs, [[number] for number in range(9)])
            for _ in range(5):
                parts = [chance.choices(range(9), k=chance.randrange(1, 9)) for _ in range(6)]
                assert _run(backend, metrics, pairs, parts) == [alone[number] for part in parts for number in part]


def test_planes_and_metrics_beside() -> None:
    """The luma's scores are the same if chroma and another metric are scored as well."""
    luma = _pairs(180, 190, 4)
    first, second = ([(luma[side][n], luma[1 - side][n], luma[side][3 - n]) for n in range(4)] for side in (0, 1))
    frames = list(zip(first, second, strict=True))
    alone = [a | b for a, b in zip(*(_scored(luma, feature, range(4)) for feature in (MS, EXACT)), strict=True)]
    with Scorer(190, 180, bits=8, features=(EXACT, MS), planes="all", chroma="444") as scorer:
        beside = _all_bits(list(scorer.score(frames)))
    assert [{name: bits[name] for name in alone[0]} for bits in beside] == alone


@pytest.fixture
def raw(tmp_path: Path) -> tuple[str, str]:
    """Two raw clips of 11 frames of 50x45."""
    first, second = (
        write(tmp_path / name, raw_bytes(luma)) for name, luma in zip(("r.yuv", "d.yuv"), _pairs(45, 50), strict=True)
    )
    return first, second


DESCRIPTION = RawDescription(50, 45, "420", 8)


def _of_files(paths: tuple[str, str], feature: str = UNIFORM, **options: Any) -> list[Bits]:
    return _all_bits(score_files(*paths, raw=DESCRIPTION, features=feature, **options).frames)


def test_files_scorer_and_array_functions_agree(raw: tuple[str, str]) -> None:
    pairs = _pairs(45, 50)
    by_files = _of_files(raw)
    assert by_files == _scored(pairs, UNIFORM, range(11))
    scores = vkssim.ssim(*pairs, window="uniform8")
    assert isinstance(scores, np.ndarray)
    assert [score.hex() for score in scores.tolist()] == [bits["float_ssim"] for bits in by_files]


def test_runs_and_ways_of_running_agree(raw: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run again, frame by frame as they come, profiled, a part of the clip, with other numbers of reading threads."""
    first = _of_files(raw)
    live: list[FrameScores] = []
    assert _of_files(raw) == first
    assert _of_files(raw, on_frames=live.extend) == first
    assert _all_bits(live) == first
    assert _of_files(raw, profile=True) == first
    assert _of_files(raw, selection=vkssim.Selection(subsample=3)) == first[::3]
    for readers in (1, 3):
        monkeypatch.setattr(run, "_MAX_READERS", readers)
        monkeypatch.setattr("vkssim.engine.run.os.cpu_count", lambda: 4)
        assert _of_files(raw) == first
