"""Test properties of similarities that hold for every picture: any size, depth, type and stride."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vkssim import Scorer
from vkssim.metrics import with_options

from .support.differences import check_number, check_scores
from .support.metrics import SIMILARITIES
from .support.pictures import Picture, quantise, texture
from .support.tolerances import BACKENDS, RANGE, SYMMETRY

pytestmark = [
    pytest.mark.usefixtures("shared_device"),
    pytest.mark.filterwarnings("ignore::vkssim.errors.DepthWarning"),  # some of the pictures are dark
]

FEATURES = tuple(with_options(name, enable_lcs=True) for name in SIMILARITIES)
SIDES = st.integers(176, 450)

few = settings(deadline=None, max_examples=8)


@dataclass(frozen=True)
class Sample:
    """A pair of pictures and what a scorer has to know of them."""

    reference: Picture
    distorted: Picture
    opened_for: dict[str, Any]

    def __repr__(self) -> str:
        height, width = self.reference.shape
        return f"{width}x{height} {self.opened_for}, strides {self.reference.strides}"

    def scores(self, backend: str = "vulkan", swap: bool = False) -> dict[str, float]:
        """All scores of the pair."""
        pair = (self.distorted, self.reference) if swap else (self.reference, self.distorted)
        return score(self, [pair], backend)[0]


def score(sample: Sample, pairs: list[tuple[Picture, Picture]], backend: str = "vulkan") -> list[dict[str, float]]:
    """All scores of some pairs, in order."""
    height, width = sample.reference.shape
    with Scorer(width, height, features=FEATURES, backend=backend, **sample.opened_for) as scorer:
        return [dict(scores.metrics) for scores in scorer.score(pairs)]


@st.composite
def pictures(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A reference and a distorted picture in 0..1, from low to full contrast, noisy, blurred or shifted."""
    reference = texture(draw(SIDES), draw(SIDES), seed=draw(st.integers(0, 1000)))
    contrast, brightness = draw(st.sampled_from([1.0, 0.5, 0.25])), draw(st.sampled_from([0.0, 0.3]))
    reference = np.clip(contrast * reference + brightness, 0, 1)
    noise = np.random.default_rng(1).normal(0, draw(st.sampled_from([0.003, 0.03, 0.2])), reference.shape)
    distorted = {
        "noise": reference + noise,
        "shift": np.roll(reference, 1, axis=1),
        "blur": (reference + np.roll(reference, 1, axis=0)) / 2,
        "dark": 0.9 * reference,
    }[draw(st.sampled_from(["noise", "shift", "blur", "dark"]))]
    return reference, np.clip(distorted, 0, 1)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Pictures as integers of 8 to 16 bits or floats, in memory of any layout."""
    pair = draw(pictures())
    kind = draw(st.sampled_from(["bits", "bits", "float32", "float64"]))
    opened_for: dict[str, Any]
    if kind == "bits":
        bits = draw(st.integers(8, 16))
        made, opened_for = [quantise(picture, bits) for picture in pair], {"bits": bits}
    else:
        data_range = draw(st.sampled_from([1.0, 255.0, 0.37]))
        made = [(picture * data_range).astype(kind) for picture in pair]
        opened_for = {"dtype": kind, "data_range": data_range}
    layout = draw(st.sampled_from(sorted(LAYOUTS)))
    return _laid_out(layout, made, opened_for)


def _every_second(picture: Picture) -> Picture:
    spread = np.zeros((2 * picture.shape[0], 3 * picture.shape[1]), picture.dtype)
    spread[1::2, ::3] = picture
    return spread[1::2, ::3]


LAYOUTS: dict[str, Callable[[Picture], Picture]] = {
    "plain": lambda picture: picture,
    "transposed": lambda picture: picture.T.copy().T,
    "upside down": lambda picture: picture[::-1].copy()[::-1],
    "mirrored": lambda picture: picture[:, ::-1].copy()[:, ::-1],
    "spread out": _every_second,
    "read-only": lambda picture: np.frombuffer(picture.tobytes(), picture.dtype).reshape(picture.shape),
}
"""The same samples in memory of another layout."""


def _laid_out(layout: str, pair: Sequence[Picture], opened_for: dict[str, Any]) -> Sample:
    """Return a pair of pictures in memory of that layout."""
    reference, distorted = map(LAYOUTS[layout], pair)
    return Sample(reference, distorted, opened_for)


@few
@given(samples())
def test_identical_pictures_score_exactly_one(sample: Sample) -> None:
    for backend in ("vulkan", "cpu"):
        scores = Sample(sample.reference, sample.reference, sample.opened_for).scores(backend)
        assert scores == dict.fromkeys(scores, 1.0), f"{backend}, {sample}"


@few
@given(samples())
def test_backends_agree(sample: Sample) -> None:
    check_scores(BACKENDS, repr(sample), sample.scores(), sample.scores("cpu"))


@few
@given(samples())
def test_swapping_the_clips_changes_nothing(sample: Sample) -> None:
    for backend in ("vulkan", "cpu"):
        check_scores(SYMMETRY, f"{backend}, {sample!r}", sample.scores(backend, swap=True), sample.scores(backend))


@pytest.mark.parametrize("layout", sorted(set(LAYOUTS) - {"plain"}))
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_layout_in_memory_does_not_matter(layout: str, dtype: str) -> None:
    peak = 255 if dtype == "uint8" else 1023 if dtype == "uint16" else 1.0
    made = [(texture(177, 201, seed) * peak).astype(dtype) for seed in range(2)]
    opened_for = {"dtype": dtype, "data_range": peak}
    plain = Sample(made[0], made[1], opened_for)
    other = _laid_out(layout, made, opened_for)
    for backend in ("vulkan", "cpu"):
        np.testing.assert_equal(other.scores(backend), plain.scores(backend))


@few
@given(pictures())
def test_range_is_a_matter_of_scale(pair: tuple[np.ndarray, np.ndarray]) -> None:
    """Floats in 0..1 of range 1 are the same, to the bit, as their products with 255 of range 255.

    Doubles are rounded to float32 before the product with 255 here and after it there: the scores hardly move.
    """
    for dtype in (np.float32, np.float64):
        ones = [picture.astype(dtype) for picture in pair]
        one = Sample(ones[0], ones[1], {"dtype": dtype, "data_range": 1.0})
        many = Sample(255 * ones[0], 255 * ones[1], {"dtype": dtype, "data_range": 255.0})
        for backend in ("vulkan", "cpu"):
            got, expected = many.scores(backend), one.scores(backend)
            if dtype is np.float32:
                np.testing.assert_equal(got, expected)
            for name in SIMILARITIES:
                check_number(RANGE, name, f"{backend}, {ones[0].shape}", got[name], expected[name])


def test_backends_agree_on_bright_noise_of_the_smallest_size() -> None:
    """The variance of the coarsest scale is what rounding leaves of two squares near 60000, and its root magnifies that.

    libvmaf rounds both to float32, by 0.004; only its own order of roundings gives its own numbers there. Plain float32 is off
    by 6e-4 in float_ms_ssim, 6e-3 in its s of scale 4, which is why frames as small as these are exact by default.
    """
    noise = 10 * np.random.default_rng(0).standard_normal((48, 2, 176, 176))
    first, second = (np.clip(245 + picture, 0, 255).astype(np.uint8) for picture in (noise[:, 0], noise.sum(axis=1)))
    pairs = list(zip(first, second, strict=True))
    sample = Sample(first[0], second[0], {"bits": 8})
    got, expected = ([scores["float_ms_ssim"] for scores in score(sample, pairs, backend)] for backend in ("vulkan", "cpu"))
    np.testing.assert_allclose(got, expected, rtol=0, atol=BACKENDS.value)
