"""Pairs of pictures on which rounding shows most, beside pairs of every other kind: numbered, random and reproducible.

libvmaf rounds means of squares to float32, whose steps are 2^-8 for white. In a bright window whose variance is of that size, a
step changes the contrast and the structure, and in a periodic picture it does so in every window alike (docs/adr/0001). If a
mean of luminance, contrast or structure is near 0, its power in float_ms_ssim magnifies its error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vkssim.types import FrameFormat

from .pictures import Picture, texture

Plane = npt.NDArray[np.floating[Any]]
Planes = tuple[Plane, Plane]
"""A reference and a distorted plane on the 0..255 scale; samples beyond it are clipped."""

DEPTHS = (8, 8, 9, 10, 12, 14, 16, None)
"""Bits of the samples, by how often a random pair has them; None stands for float32, in multiples of 1/256."""


@dataclass(frozen=True)
class HardPair:
    """A pair of pictures, how to make it again, and the bits of its samples."""

    name: str
    bits: int | None
    reference: Picture
    distorted: Picture

    def __str__(self) -> str:
        height, width = self.reference.shape
        return f"{self.name}, {'float32' if self.bits is None else f'{self.bits} bit'} {width}x{height}"

    @property
    def kind(self) -> str:
        """Return the kind, which its name begins with."""
        return self.name.rpartition(" ")[0]

    @property
    def frame(self) -> FrameFormat:
        """Return the format of both pictures."""
        height, width = self.reference.shape
        if self.bits is None:
            return FrameFormat.of_array(width, height, np.float32, 255.0)
        return FrameFormat.of_bits(width, height, self.bits)

    def with_bits(self, bits: int) -> tuple[Picture, Picture]:
        """Return the same pictures as samples of more bits, which have the same scores: a sample is divided by 2^(bits - 8)."""
        factor = 2 ** (bits - (8 if self.bits is None else self.bits))
        dtype = np.uint8 if bits == 8 else np.uint16
        reference, distorted = ((picture * factor).astype(dtype) for picture in (self.reference, self.distorted))
        return reference, distorted


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


def _natural(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    """Waves of many lengths and grain, with noise, or in steps as after a coarse quantisation."""
    reference = 255 * _texture(random, rows)
    step = random.choice([6.0, 16.0, 40.0])
    noisy = reference + random.normal(0, random.uniform(0.5, 20), rows.shape)
    return reference, noisy if random.integers(0, 2) else np.round(reference / step) * step


def _blur(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    reference = 255 * _texture(random, rows)
    distorted, reach = reference, int(random.integers(1, 9))
    for axis in (0, 1):
        distorted = np.mean([np.roll(distorted, step, axis) for step in range(-reach, reach + 1)], axis=0)
    return reference, distorted


def _shift(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    reference = 255 * _texture(random, rows)
    return reference, np.roll(reference, tuple(random.integers(-6, 7, 2)), axis=(0, 1))


def _full_noise(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    """Noise beside other noise, or beside itself with more of it: the mean structure is near 0, of either sign."""
    first, second = (random.uniform(0, 255, rows.shape) for _ in "ab")
    return first, second if random.integers(0, 2) else first + random.uniform(0.1, 1) * (second - 127)


def _faint_likeness(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    """Two noises on one soft texture: the mean structure is near 0 on the fine scales, and is not on the coarse ones.

    It is 0 if the noises are so much unlike each other that this makes up for the constant C3.
    """
    soft = 128 + random.uniform(2, 4) * np.sin(2 * np.pi * (rows / random.uniform(50, 90) + columns / random.uniform(50, 90)))
    side = int(random.integers(1, 4))
    coarse = [random.normal(0, 30, tuple(length // side + 1 for length in rows.shape)) for _ in "ab"]
    first, second = (np.kron(noise, np.ones((side, side)))[: rows.shape[0], : rows.shape[1]] for noise in coarse)
    return soft + first, soft + second - random.uniform(0.027, 0.037) * first


def _dark(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    """Samples of a few levels above black."""
    reference = random.uniform(1, 12) * _texture(random, rows)
    return reference, reference + random.normal(0, random.uniform(0.1, 3), rows.shape)


def _against_black(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    """Black beside a level, or beside a texture on it: means of luminance, contrast or structure near 0."""
    level = random.choice([1.0, 16.0, 128.0, 235.0, 255.0])
    lifted = level + random.choice([0, 0.2, 1]) * (255 - level) * _texture(random, rows)
    black = random.choice([0, 0, 0.5, 2]) * random.random(rows.shape)
    pair = black, lifted
    return pair if random.integers(0, 2) else pair[::-1]


def _strong_checkerboard(random: np.random.Generator, rows: Plane, columns: Plane) -> Planes:
    """A checkerboard beside grey, beside another one, or beside itself moved by a sample."""
    sides = random.integers(1, 9, 2)
    reference, other = (255.0 * ((columns // side + rows // side) % 2) for side in sides)
    grey = np.full(rows.shape, random.uniform(60, 200)) + random.choice([0, 2]) * random.random(rows.shape)
    return reference, (grey, other, np.roll(reference, 1, axis=1))[random.integers(0, 3)]


def _texture(random: np.random.Generator, rows: Plane) -> Plane:
    height, width = rows.shape
    return texture(height, width, int(random.integers(0, 2**31)))


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
    "natural": _natural,
    "blur": _blur,
    "shift": _shift,
    "noise": _full_noise,
    "faint likeness": _faint_likeness,
    "dark": _dark,
    "against black": _against_black,
    "strong checkerboard": _strong_checkerboard,
}


def hard_pair(kind: str, seed: int, size: tuple[int, int], bits: int | None) -> HardPair:
    """Return the pair of a kind and a seed with random contents, in that width and height and that depth."""
    random = np.random.default_rng([seed, *kind.encode()])
    width, height = size
    rows, columns = (plane.astype(np.float64) for plane in np.mgrid[:height, :width])
    return _stored(f"{kind} {seed}", bits, KINDS[kind](random, rows, columns))


def grating(period: int, base: float, amplitude: float, levels: int) -> HardPair:
    """Return a diagonal grating with that many levels in one step of 8 bits, and a strong one across it, in 16 bits."""
    rows, columns = np.mgrid[:180, :180]
    reference = np.round((base + amplitude * np.sin(2 * np.pi * (rows + columns) / period)) * levels) / levels
    distorted = np.round(128 + 60 * np.sin(2 * np.pi * rows / 7))
    return _stored(f"grating of {period} at {base:g}", 16, (reference, distorted))


def _stored(name: str, bits: int | None, planes: Planes) -> HardPair:
    clipped = [np.clip(plane, 0, 255) for plane in planes]
    if bits is None:
        return HardPair(name, bits, *((np.round(plane * 256) / 256).astype(np.float32) for plane in clipped))
    dtype = np.uint8 if bits == 8 else np.uint16
    stored = [np.clip(np.round(plane * 2.0 ** (bits - 8)), 0, 2**bits - 1).astype(dtype) for plane in clipped]
    return HardPair(name, bits, *stored)
