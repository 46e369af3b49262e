"""Pictures to score: a texture and a distorted copy, the same for the same seed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[Any]


_MAX_KEPT = 100 * 100
"""Samples of the largest textures that are kept: clips of tests are small, and have the same ones again and again."""


def texture(height: int, width: int, seed: int = 0) -> npt.NDArray[np.float64]:
    """(height, width) in 0..1: grain, and waves of lengths from 5 to 100 samples, so that every scale of a pyramid has some."""
    return _kept_texture(height, width, seed).copy() if height * width <= _MAX_KEPT else _texture(height, width, seed)


def _texture(height: int, width: int, seed: int) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:height, :width]
    picture = rng.normal(0.5, 0.03, (height, width))
    for length, angle, phase in zip((5, 10, 20, 40, 70, 100), rng.uniform(0, 6.3, 6), rng.uniform(0, 6.3, 6), strict=True):
        picture += 0.08 * np.sin(2 * np.pi / length * (columns * np.cos(angle) + rows * np.sin(angle)) + phase)
    return np.clip(picture, 0, 1)


_kept_texture = lru_cache(maxsize=500)(_texture)


def distort(picture: npt.NDArray[np.float64], seed: int = 0, noise: float = 0.05) -> npt.NDArray[np.float64]:
    """A darker copy with noise on it, in 0..1."""
    rng = np.random.default_rng(seed + 1)
    return np.clip(0.95 * picture + rng.normal(0, noise, picture.shape), 0, 1)


def quantise(picture: npt.NDArray[np.float64], bits: int) -> Picture:
    """0..1 as integer samples of that many bits."""
    samples: Picture = np.round(picture * (2**bits - 1)).astype(np.uint8 if bits == 8 else np.uint16)
    return samples


def pair(height: int, width: int, bits: int = 8, seed: int = 0) -> tuple[Picture, Picture]:
    """A reference and a distorted picture of integer samples."""
    reference = texture(height, width, seed)
    return quantise(reference, bits), quantise(distort(reference, seed), bits)


def clip(frames: int, height: int = 24, width: int = 32, bits: int = 8, seed: int = 0) -> Picture:
    """(frames, height, width) samples; no two frames are alike."""
    return np.stack([quantise(texture(height, width, 100 * seed + number), bits) for number in range(frames)])
