"""Pairs of pictures on which the rounding of sums shows most: bright and nearly flat ones, beside every kind of other picture.

libvmaf rounds means of squares to float32, whose steps are 2^-8 for white. In a window whose variance is of that size, a step
changes the contrast and the structure, and in a periodic picture it does so in every window alike (docs/adr/0034).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vkssim.backends.open import open_backend
from vkssim.features import with_options
from vkssim.features.plane_metrics import FrameMetrics
from vkssim.types import FrameFormat

from .pictures import Picture

Plane = npt.NDArray[np.floating[Any]]
Planes = tuple[Plane, Plane]
"""A reference and a distorted plane on the 0..255 scale; samples beyond it are clipped."""

FEATURES = ("float_ms_ssim=enable_lcs=true:negative=clamp", "float_ssim=enable_lcs=true:scale=1")

DEPTHS = (8, 8, 9, 10, 12, 14, 16, None)
"""Bits of the samples, by how often a random pair has them; None stands for float32."""


@dataclass(frozen=True)
class HardPair:
    """A pair of pictures with their format, and how to make it again."""

    name: str
    frame: FrameFormat
    reference: Picture
    distorted: Picture

    def __str__(self) -> str:
        depth = "float32" if self.reference.dtype == np.float32 else f"{int(self.frame.peak + 1).bit_length() - 1} bit"
        return f"{self.name}, {depth} {self.frame.width}x{self.frame.height}"


def _strong(random: np.random.Generator, rows: Plane, columns: Plane) -> Plane:
    """A texture of high contrast, which repeats itself or does not."""
    kind = random.integers(0, 4)
    if kind == 0:
        phases = 2 * np.pi / random.integers(2, 9) * (rows + random.integers(0, 2) * columns)
        waves: Plane = random.uniform(60, 200) + random.choice([20, 60, 100]) * np.sin(phases)
        return waves
    if kind == 1:
        blocks: Plane = 255.0 * ((rows // random.integers(1, 4) + columns // random.integers(1, 4)) % 2)
        return blocks
    return random.integers(0, 256, rows.shape).astype(np.float64) if kind == 2 else 255.0 * random.integers(0, 2, rows.shape)


def _base(random: np.random.Generator) -> float:
    return float(random.choice([random.uniform(40, 254.9), random.uniform(180, 254.9), 255.0, 235.0]))


def _noise(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    base, levels = _base(random), random.integers(1, 3)
    first, second = (base + random.integers(-levels, levels + 1, rows.shape) / random.choice([1, 4]) for _ in range(2))
    return first, second


def _ramp(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    base, slope = _base(random), random.uniform(-0.15, 0.15)
    reference = base + slope * columns + random.uniform(-0.05, 0.05) * rows
    return reference, reference + random.uniform(-0.6, 0.6) + random.integers(0, 2) * slope * rows / 3


def _checkerboard(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    base, sides = _base(random), random.integers(1, 5, 4)
    reference = base - random.uniform(0.2, 2) * ((columns // sides[0] + rows // sides[1]) % 2)
    return reference, base - random.uniform(0.2, 2) * ((columns // sides[2] + rows // sides[3]) % 2)


def _gradient(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    """From black to white, so that every brightness has windows, with noise of one level."""
    length = (columns / columns.max(), rows / rows.max(), (rows + columns) / (rows + columns).max())[random.integers(0, 3)]
    return 255 * length, 255 * length + random.integers(0, 2, rows.shape)


def _half_black(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    """A step beside which the picture is flat, or nearly so."""
    edge = random.integers(1, 160)
    reference = np.where((rows if random.integers(0, 2) else columns) < edge, random.choice([0.0, 3.0]), _base(random))
    return reference, reference + random.uniform(-1, 1) * (random.random(rows.shape) < random.choice([0.01, 0.5]))


def _specks(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    base = _base(random)
    first, second = (base - random.choice([1, base]) * (random.random(rows.shape) < random.choice([0.001, 0.02])) for _ in "ab")
    return first, second


def _blocks(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    """Black and white, so that the low-pass overshoots."""
    side = int(random.integers(1, 25))
    coarse = random.integers(0, 2, tuple(length // side + 1 for length in rows.shape)).astype(np.float64)
    reference = 255 * np.kron(coarse, np.ones((side, side)))[: rows.shape[0], : rows.shape[1]]
    return reference, (255 - reference) if random.integers(0, 2) else np.roll(reference, 1, axis=1)


def _flat(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    base = _base(random)
    return np.full(rows.shape, base), np.full(rows.shape, base - random.choice([0.004, 0.25, 1, 100]))


def _grating(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    """A faint grating, whose variance is near the least that libvmaf tells from none, beside a texture of high contrast."""
    base = random.uniform(40, 254.9)
    way = (columns, rows, rows + columns)[random.integers(0, 3)]
    period = random.choice([2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32])
    faint = base + random.uniform(0.002, 0.012) * base * np.sin(2 * np.pi * way / period + random.uniform(0, 6.3))
    pair = faint, _strong(random, rows, columns)
    return pair if random.integers(0, 2) else pair[::-1]


KINDS: dict[str, Callable[[np.random.Generator, Plane, Plane], Planes]] = {
    "noise of a level": _noise,
    "ramp": _ramp,
    "checkerboard": _checkerboard,
    "gradient": _gradient,
    "half black": _half_black,
    "specks": _specks,
    "black and white blocks": _blocks,
    "flat": _flat,
    "grating": _grating,
}


def hard_pair(kind: str, seed: int, size: tuple[int, int] | None = None) -> HardPair:
    """Return the pair of a kind and a seed. Its depth and contents are random.

    `size` is its width and height; without it they are random as well, 176 to 259 samples.
    """
    random = np.random.default_rng([seed, *kind.encode()])
    height, width = (int(side) for side in random.integers(176, 260, 2))
    width, height = size or (width, height)
    rows, columns = (plane.astype(np.float64) for plane in np.mgrid[:height, :width])
    bits = DEPTHS[random.integers(0, len(DEPTHS))]
    return _stored(f"{kind} {seed}", bits, KINDS[kind](random, rows, columns))


def grating(period: int, base: float, amplitude: float, levels: int) -> HardPair:
    """Return a diagonal grating with that many levels in one step of 8 bits, and a strong one across it, in 16 bits."""
    rows, columns = np.mgrid[:180, :180]
    reference = np.round((base + amplitude * np.sin(2 * np.pi * (rows + columns) / period)) * levels) / levels
    distorted = np.round(128 + 60 * np.sin(2 * np.pi * rows / 7))
    return _stored(f"grating of {period} at {base:g}", 16, (reference, distorted))


def all_scores(pair: HardPair, backend: str, precision: str = "exact", device: str | None = None) -> dict[str, float]:
    """Return all scores of a pair by name."""
    metrics = FrameMetrics([with_options(feature, precision=precision) for feature in FEATURES], [pair.frame])
    with open_backend(backend, metrics.planes, device=device) as engine:
        batch = engine.batches[0]
        batch.reference[0][0], batch.distorted[0][0] = pair.reference, pair.distorted
        engine.submit(batch, 1)
        return {name: float(column[0]) for name, column in metrics.finish(engine.collect(batch)).items()}


def _stored(name: str, bits: int | None, planes: Planes) -> HardPair:
    height, width = planes[0].shape
    clipped = [np.clip(plane, 0, 255) for plane in planes]
    if bits is None:
        stored = [plane.astype(np.float32) for plane in clipped]
        return HardPair(name, FrameFormat.of_array(width, height, np.float32, 255.0), *stored)
    dtype = np.uint8 if bits == 8 else np.uint16
    stored = [np.clip(np.round(plane * 2.0 ** (bits - 8)), 0, 2**bits - 1).astype(dtype) for plane in clipped]
    return HardPair(name, FrameFormat.of_bits(width, height, bits), *stored)
