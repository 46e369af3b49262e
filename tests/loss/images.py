"""Images for the losses, the same in each run, and what the float64 twin says of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from vkssim.loss.reference import value_and_gradient
from vkssim.loss.spec import Loss, Negative, Padding, Pyramid, constants

from ..support.pictures import distort, texture

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
Pair = tuple[Doubles, Doubles]


def _noise(height: int, width: int, seed: int) -> Pair:
    first, second = np.random.default_rng(seed).random((2, height, width))
    return first, 0.7 * first + 0.3 * second


def _natural(height: int, width: int, seed: int) -> Pair:
    picture = texture(height, width, seed)
    return picture, distort(picture, seed)


def _ramps(height: int, width: int, seed: int) -> Pair:
    rows, columns = np.mgrid[:height, :width] / np.array([height, width]).reshape(2, 1, 1)
    return 0.2 + 0.6 * columns, 0.2 + 0.4 * columns + 0.2 * rows + 0.01 * seed


def _flat(height: int, width: int, seed: int) -> Pair:
    return np.full((height, width), 0.5 + 0.01 * seed), np.full((height, width), 0.3)


def _identical(height: int, width: int, seed: int) -> Pair:
    picture = texture(height, width, seed)
    return picture, picture


def _anti(height: int, width: int, seed: int) -> Pair:
    picture = texture(height, width, seed)
    return picture, 1 - picture


def _bright(height: int, width: int, seed: int) -> Pair:
    rows, columns = np.mgrid[:height, :width]
    return 0.92 + 0.001 * np.sin(rows / 4 + seed), 0.92 + 0.002 * np.sin(columns / 3)


KINDS: dict[str, Callable[[int, int, int], Pair]] = {
    "noise": _noise,
    "natural": _natural,
    "ramps": _ramps,
    "flat": _flat,
    "identical": _identical,
    "anti": _anti,
    "bright": _bright,
}
"""Pairs by name. "anti": the one is the other's negative. "bright": nearly flat, so that variances are what rounding leaves."""


@lru_cache(maxsize=64)
def _pair(kind: str, height: int, width: int, seed: int) -> tuple[Floats, Floats]:
    """Return a pair of KINDS in float32, for `images` to copy: many tests take the same one, with other options."""
    first, second = (side.astype(np.float32) for side in KINDS[kind](height, width, seed))
    return first, second


def images(kind: str, *shape: int) -> tuple[Floats, Floats]:
    """A reference and a distorted (..., height, width) float32 array in 0..1; no two images of a stack are alike."""
    *stack, height, width = shape
    pairs = [_pair(kind, height, width, seed) for seed in range(math.prod(stack))]
    first, second = (np.stack(side).reshape(shape) for side in zip(*pairs, strict=True))
    return first, second


def twin(
    reference: npt.NDArray[Any],
    distorted: npt.NDArray[Any],
    *,
    data_range: float = 1.0,
    k: tuple[float, float] = (0.01, 0.03),
    weights: tuple[float, ...] = (1.0,),
    padding: Padding | str = "valid",
    pyramid: Pyramid | str = "average",
    negative: Negative | str | None = None,
) -> tuple[float, Doubles]:
    """The mean over all planes of (..., H, W) arrays by the float64 twin, and its gradient by `distorted`.

    Negative terms are kept where there is one scale and clamped where there are more, unless told otherwise.
    """
    height, width = reference.shape[-2:]
    negative = Negative(negative or ("keep" if weights == (1.0,) else "clamp"))
    options: dict[str, Any] = {**constants(data_range, k), "weights": weights}
    loss = Loss(height, width, padding=Padding(padding), pyramid=Pyramid(pyramid), negative=negative, **options)
    planes = [side.astype(np.float64).reshape(-1, height, width) for side in (reference, distorted)]
    values, gradient = value_and_gradient(loss, *planes)
    return float(values.mean()), gradient.reshape(distorted.shape) / len(values)


def relative(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> float:
    """The distance of two arrays in units of the expected one's length."""
    assert got.shape == expected.shape, f"shape {got.shape}, expected {expected.shape}"
    length = np.linalg.norm(expected.astype(np.float64))
    assert length > 0, "expected is 0 throughout; compare with 0 instead"
    return float(np.linalg.norm(got.astype(np.float64) - expected) / length)
