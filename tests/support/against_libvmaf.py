"""Random pairs of pictures, scored by vkssim and by libvmaf itself, and the rule by which the scores have to agree.

`tests/test_libvmaf.py` takes a few hundred pairs, and `tests/stress/precision` as many as it has time for. A draw is made from
its number alone, so a number in a message is enough to repeat it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from vkssim.backends.open import open_backend
from vkssim.backends.sessions import Session
from vkssim.metrics import with_options
from vkssim.metrics.plane_metrics import FrameMetrics
from vkssim.shaders.constants import ALPHA, BETA, GAMMA, SCALES, SMALLEST_SIDE

from . import differences, libvmaf
from .hard_pictures import DEPTHS, KINDS, HardPair, hard_pair
from .libvmaf import Scores, libvmaf_scores
from .tolerances import LIBVMAF_SCORE, LIBVMAF_SIGN, LIBVMAF_SMALL_MEAN, LIBVMAF_TERM, Tolerance

BOTH = ("float_ms_ssim", "float_ssim")

SMALL_MEAN = 1e-4
"""The mean below which a power magnifies the error of a mean to more than the sixth decimal of a score."""

_SMALL_DRAWS = 500
"""The first draws, which scripts/test compares some of. The sides of later ones are twice and three times as long."""

_SAMPLES = 220_000
"""Samples of the pictures of a draw together, or one pair that has more."""


@dataclass(frozen=True)
class Draw:
    """Pairs of one size and one depth, and the metrics that score them.

    `scale` is the downscale of float_ssim; 0 is the automatic one.
    """

    number: int
    pairs: tuple[HardPair, ...]
    features: tuple[str, ...]
    scale: int

    def __str__(self) -> str:
        return f"draw {self.number}" + (f" with scale={self.scale}" if self.scale else "")

    def vkssim_scores(self, backend: str, *, precision: str = "exact", device: Session | None = None) -> list[Scores]:
        """Return the scores of each pair by a backend of vkssim, with luminance, contrast and structure."""
        options = [{"scale": self.scale} if feature == "float_ssim" else {} for feature in self.features]
        features = [
            with_options(feature, enable_lcs=True, precision=precision, **further)
            for feature, further in zip(self.features, options, strict=True)
        ]
        metrics = FrameMetrics(features, [self.pairs[0].frame])
        scores = []
        with open_backend(backend, metrics.planes, device=device, batch=1, slots=1) as engine:
            batch = engine.batches[0]
            for pair in self.pairs:
                batch.reference[0][0], batch.distorted[0][0] = pair.reference, pair.distorted
                engine.submit(batch, 1)
                finished = metrics.finish(engine.collect(batch))
                scores.append({name: _or_none(float(column[0])) for name, column in finished.items()})
        return scores

    def libvmaf_scores(self) -> list[Scores]:
        """Return libvmaf's scores of each pair."""
        held = self.pairs[0].bits or 16
        bits = next(depth for depth in libvmaf.DEPTHS if depth >= held)
        return libvmaf_scores([pair.with_bits(bits) for pair in self.pairs], bits, self.features, self.scale)


def disagreements(drawn: Draw) -> list[str]:
    """Return a sentence for each score of Vulkan that disagrees with libvmaf's, and for each of NumPy's of the first pair."""
    wrong = []
    expected = drawn.libvmaf_scores()
    for backend, part in (("vulkan", drawn), ("cpu", replace(drawn, pairs=drawn.pairs[:1]))):
        for pair, got, right in zip(part.pairs, part.vkssim_scores(backend), expected, strict=False):
            found = list(compare(f"{drawn}: {pair}, {backend}", got, right))
            differences.add((it.tolerance.name, backend, it.difference, it.allowed, f"{it.pair}, {it.name}") for it in found)
            wrong += [str(it) for it in found if not it.is_allowed]
    return wrong


def draw(number: int) -> Draw:
    """Return a draw of random size, depth and downscale, whose pairs are of different kinds."""
    random = np.random.default_rng(number)
    growth = 1 + min(number // _SMALL_DRAWS, 2)
    width, height = (growth * side for side in _size(random))
    scale = int(random.integers(1, 11)) if random.random() < 0.2 else 0
    if min(width, height) < 12 * scale:
        scale = 0
    return sized_draw(number, (width, height), DEPTHS[random.integers(0, len(DEPTHS))], scale)


def sized_draw(number: int, size: tuple[int, int], bits: int | None, scale: int = 0) -> Draw:
    """Return a draw of that width and height, that depth and that downscale."""
    count = max(1, min(len(KINDS), _SAMPLES // (size[0] * size[1])))
    kinds = np.random.default_rng([number, 1]).permutation(list(KINDS))[:count]
    features = BOTH if min(size) >= SMALLEST_SIDE else ("float_ssim",)
    return Draw(number, tuple(hard_pair(kind, number, size, bits) for kind in kinds), features, scale)


def _size(random: np.random.Generator) -> tuple[int, int]:
    """Return a width and a height: small, any, long, or beside a multiple of 64 or on it."""
    kind = random.choice(["small", "any", "any", "long", "multiples", "beside"])
    if kind == "small":
        sides = random.integers(11, SMALLEST_SIDE, 2)
    elif kind == "any":
        sides = random.integers(SMALLEST_SIDE, 300, 2)
    elif kind == "long":
        sides = random.permutation([random.integers(SMALLEST_SIDE, 220), random.integers(500, 1000)])
    else:
        sides = 64 * random.integers(3, 7, 2) + (random.integers(-1, 2, 2) if kind == "beside" else 0)
    return int(sides[0]), int(sides[1])


@dataclass(frozen=True)
class Difference:
    """A score of a pair by vkssim and by libvmaf, their difference, and the largest that the tolerances allow."""

    pair: str
    name: str
    vkssim: float | None
    libvmaf: float | None
    difference: float
    allowed: float
    tolerance: Tolerance

    @property
    def is_allowed(self) -> bool:
        """Return whether the scores agree."""
        return self.difference <= self.allowed

    def __str__(self) -> str:
        return (
            f"{self.pair}, {self.name}: vkssim {self.vkssim!r}, libvmaf {self.libvmaf!r},"
            f" {self.difference:.3g} apart, {self.allowed:.3g} allowed"
        )


def compare(pair: str, got: Scores, expected: Scores) -> Iterator[Difference]:
    """Return the difference of each score of a pair. If only one side has a score, the difference is infinite.

    If a mean that float_ms_ssim raises to a power is below SMALL_MEAN, the error that LIBVMAF_SMALL_MEAN allows for each mean
    is carried into the score. If a mean structure is so near to 0 that its sign is open, the score may exist on one side only.
    """
    assert got.keys() == expected.keys(), f"{pair}: scores differ: {sorted(got.keys() ^ expected.keys())}"
    for name, value in expected.items():
        tolerance = LIBVMAF_SCORE if name in ("float_ssim", "float_ms_ssim") else LIBVMAF_TERM
        allowed = tolerance.value
        difference = _apart(got[name], value)
        if name == "float_ms_ssim":
            if math.isinf(difference) and _sign_is_open(expected):
                continue
            factors = list(_factors(expected))
            if value is not None and min(mean for mean, _ in factors) < SMALL_MEAN:
                tolerance = LIBVMAF_SMALL_MEAN
                error = tolerance.value
                allowed += value * (1 - math.prod((1 - error / max(mean, error)) ** power for mean, power in factors))
        yield Difference(pair, name, got[name], value, difference, allowed, tolerance)


def _factors(scores: Scores) -> Iterator[tuple[float, float]]:
    """Return the means of which float_ms_ssim is the product, each with its power."""
    for term, powers in (("l", ALPHA), ("c", BETA), ("s", GAMMA)):
        for scale in range(SCALES):
            mean = scores[f"float_ms_ssim_{term}_scale{scale}"]
            assert mean is not None
            if powers[scale]:
                yield mean, powers[scale]


def _sign_is_open(scores: Scores) -> bool:
    means = (scores[f"float_ms_ssim_s_scale{scale}"] for scale in range(SCALES))
    return any(mean is not None and abs(mean) < LIBVMAF_SIGN.value for mean in means)


def _apart(first: float | None, second: float | None) -> float:
    if first is None or second is None:
        return 0.0 if first is second else math.inf
    return abs(first - second)


def _or_none(score: float) -> float | None:
    return None if math.isnan(score) else score
