"""The types that signatures share: arrays of samples, the format of a frame's samples with their scale, names of backends."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import DepthWarning, FrameError, OptionError
from .shaders.interface import SampleCode
from .utils.limits import LARGEST_SIDE, MAX_PIXELS, abbreviated, real_number

FloatPlane = npt.NDArray[np.float32]
"""(H, W) float32 on the 0..255 scale."""

DoublePlane = npt.NDArray[np.float64]

Doubles = npt.NDArray[np.float64]

Samples = npt.NDArray[Any]
"""(H, W) luma in its original type: uint8, uint16, float32 or float64."""

Planes = tuple[Samples, ...]
"""A frame: (y,) or (y, cb, cr), each (H, W)."""


@dataclass(frozen=True)
class BackendInfo:
    """A backend, its device and its driver, by name."""

    backend: str
    device: str
    driver: str

    def __str__(self) -> str:
        return f"{self.backend}: {self.device} ({self.driver})"


class Rows(NamedTuple):
    """Rows of samples in memory: the address of the first row, and the bytes from one row to the next.

    The address of memory `on_device` is the one in the API that writes it, such as a CUDA device pointer.
    """

    address: int
    pitch: int
    on_device: bool = True


@dataclass(frozen=True)
class ExternalPlane:
    """The place of a plane in memory of the GPU, which the host cannot write: `height` rows of `row_bytes`.

    Integers lie `shift` bits higher in their type.
    """

    rows: Rows
    height: int
    row_bytes: int
    shift: int = 0


ExternalFrame = tuple[ExternalPlane, ...]
"""A frame in memory of the GPU: (luma,) or (luma, chroma). A row of chroma has Cb and Cr of each sample side by side."""

SampleType = np.dtype[np.uint8] | np.dtype[np.uint16] | np.dtype[np.float32]

_DTYPES: dict[SampleCode, SampleType] = {
    SampleCode.UINT8: np.dtype(np.uint8),
    SampleCode.UINT16: np.dtype(np.uint16),
    SampleCode.FLOAT32: np.dtype(np.float32),
}

CHROMA_STEPS = {
    "400": None,
    "410": (4, 4),
    "411": (1, 4),
    "420": (2, 2),
    "422": (1, 2),
    "440": (2, 1),
    "444": (1, 1),
}
"""The steps between samples of Cb and Cr, in rows and columns of luma, for each chroma format; None without chroma."""

PIXEL_FORMATS = (*CHROMA_STEPS, "444alpha")
"""The pixel formats of raw files."""

_PEAK_OF_BYTES = 255
_SMALLER_DEPTHS = 8, 10, 12, 14
_RANGES = 1e-30, 1e30
"""The ranges of samples whose factor to the 0..255 scale float32 can hold, with room for samples far below the largest."""


def size_problem(width: int, height: int) -> str | None:
    """Return why a frame cannot have that size; None if it can."""
    if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE):
        return f"a frame of {abbreviated(width)}x{abbreviated(height)}; each side must be 1 to {LARGEST_SIDE}"
    if width * height > MAX_PIXELS:
        return f"a frame of {width}x{height} has {width * height} pixels; the limit is {MAX_PIXELS}"
    return None


def has_colours_last(shape: Sequence[int]) -> bool:
    """Return whether an array of this shape is (H, W, 3) or (N, H, W, 3), or has 4 colours, as most image readers return it."""
    return len(shape) in (3, 4) and shape[-1] in (3, 4) and min(shape[-3:-1]) > 4


def plane_shapes(width: int, height: int, chroma: str) -> list[tuple[int, int]]:
    """Return the shapes (H, W) of Y, and of Cb and Cr if they exist; odd sizes round chroma up."""
    steps = CHROMA_STEPS[chroma]
    return [(height, width)] + ([] if steps is None else [(-(-height // steps[0]), -(-width // steps[1]))] * 2)


def check_not_masked(name: str, array: npt.ArrayLike) -> None:
    """Raise FrameError for a masked array, or a sequence with one: `np.asarray` would silently drop its mask."""
    parts = (array, *array) if isinstance(array, list | tuple) else (array,)
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise FrameError(
            f"{name} is a masked array, and no metric supports masks. Crop it, fill the masked samples of both"
            " images alike with `.filled(value)`, or take `.data` where the mask does not matter"
        )


def alike_arrays(reference: npt.ArrayLike, distorted: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return both as arrays. Raises FrameError if one is masked, or if they differ in shape or type."""
    check_not_masked("reference", reference)
    check_not_masked("distorted", distorted)
    first, second = np.asarray(reference), np.asarray(distorted)
    if first.shape != second.shape or first.dtype != second.dtype:
        raise FrameError(
            f"reference is {first.shape} {first.dtype}, distorted {second.shape} {second.dtype}; they must be alike"
        )
    return first, second


def largest_out_of_range(plane: npt.NDArray[Any], peak: float) -> int | None:
    """Return the largest of the integer samples if it is larger than `peak`, else None."""
    if peak >= 2 ** (8 * plane.itemsize) - 1:
        return None
    largest = int(plane.max(initial=0))
    return largest if largest > peak else None


class DepthCheck:
    """A check of whether the integer samples of a clip stay within a quarter of their range, as those of a smaller depth do.

    `peak` is the largest sample that their depth or data_range allows. `largest` is the largest sample so far. As soon as a
    sample exceeds the quarter, the check `is_over` and looks at no further samples.
    """

    def __init__(self, peak: float) -> None:
        self._quarter = int(peak) // 4 if peak > _PEAK_OF_BYTES else -1
        self.largest = 0

    @property
    def is_over(self) -> bool:
        """Return True if no further sample can change the result."""
        return self.largest > self._quarter

    def look(self, samples: npt.NDArray[Any]) -> None:
        """Look at some samples of the clip."""
        if not self.is_over:
            self.largest = max(self.largest, int(samples.max(initial=0)))

    @property
    def smaller_depth(self) -> int | None:
        """Return the depth in bits that the samples seem to have; None if they use their range, or are all 0."""
        if self.is_over or not self.largest:
            return None
        return next(bits for bits in _SMALLER_DEPTHS if self.largest < 2**bits)

    def warn(self, name: str, cure: Literal["bits", "data_range"]) -> None:
        """Issue a DepthWarning about the frames of that name if they seem to have a smaller depth; `cure` is a parameter."""
        depth = self.smaller_depth
        if depth is None:
            return
        right = f"bits={depth}" if cure == "bits" and depth > 8 else f"data_range={2**depth - 1}"
        warnings.warn(
            f"no sample of {name} exceeds {2**depth - 1}, a quarter of the range or less; if the samples have {depth} bits,"
            f" give {right}",
            DepthWarning,
            stacklevel=2,
        )


def default_range(reference: npt.NDArray[Any], distorted: npt.NDArray[Any]) -> float | None:
    """Return the range of arrays of one type if none is given: the largest of an integer type, None for floats.

    Issues a DepthWarning for an array whose samples stay within a quarter of it.
    """
    if reference.dtype.kind != "u":
        return None
    peak = float(np.iinfo(reference.dtype).max)
    for name, array in (("reference", reference), ("distorted", distorted)):
        check = DepthCheck(peak)
        for part in array:  # images, or the rows of one
            if check.is_over:
                break
            check.look(part)
        check.warn(name, "data_range")
    return peak


def _checked_range(data_range: float) -> float:
    """Return the range of samples as a float. Raises OptionError if it is no number, or too small or too large for float32."""
    smallest, largest = _RANGES
    number = float(real_number("data_range", data_range))
    if not smallest <= number <= largest:
        raise OptionError(
            f"data_range is {abbreviated(data_range)}; it must be the largest possible sample, a number from {smallest:g} to"
            f" {largest:g}"
        )
    return number


@dataclass(frozen=True)
class FrameFormat:
    """The size and the samples of a luma plane.

    `factor` converts a sample to the 0..255 scale. For integers of 8 to 16 bits it is 2^(8-bits), as in libvmaf. For floats,
    and for integers whose range is not that of a bit depth, it is 255/range. `peak` is the largest sample, for `clip_db`.

    Integers may lie `shift` bits higher in their type, as in the surfaces of hardware decoders (P010): the lower bits are 0.
    Frames of an `external` format are written by another API of the GPU, see `ExternalPlane`.
    """

    width: int
    height: int
    code: SampleCode
    factor: float
    peak: float
    shift: int = 0
    external: bool = False

    @classmethod
    def of_bits(cls, width: int, height: int, bits: int) -> FrameFormat:
        """Return the format of integer samples of 8 bits (one byte) or 9 to 16 bits (two bytes, little-endian)."""
        if bits not in range(8, 17):
            raise FrameError(f"samples have {bits} bits; 8 to 16 are possible")
        code = SampleCode.UINT8 if bits == 8 else SampleCode.UINT16
        return cls._checked(width, height, code, 2.0 ** (8 - bits), 2.0**bits - 1)

    @classmethod
    def of_array(cls, width: int, height: int, dtype: npt.DTypeLike, data_range: float | None) -> FrameFormat:
        """Return the format of samples of a NumPy type: uint8, uint16, float32 or float64 (computed in float32).

        `data_range` is the largest possible sample, 1e-30 to 1e30; the default is the largest of the integer type. Floats have
        no default.
        """
        kind = np.dtype(dtype)
        data_range = None if data_range is None else _checked_range(data_range)
        if kind in (np.dtype(np.uint8), np.dtype(np.uint16)):
            code = SampleCode.UINT8 if kind.itemsize == 1 else SampleCode.UINT16
            peak = data_range if data_range is not None else float(np.iinfo(kind).max)
            bits = int(peak + 1).bit_length() - 1
            if peak == 2.0**bits - 1 and 8 <= bits <= 8 * kind.itemsize:
                return cls._checked(width, height, code, 2.0 ** (8 - bits), peak)
            return cls._checked(width, height, code, 255.0 / peak, peak)
        if kind in (np.dtype(np.float32), np.dtype(np.float64)):
            if data_range is None:
                raise FrameError("float samples have no default range: give data_range, 1.0 or 255.0 for instance")
            return cls._checked(width, height, SampleCode.FLOAT32, 255.0 / data_range, data_range)
        raise FrameError(f"samples are {kind}; uint8, uint16, float32 and float64 are possible")

    def in_surfaces(self) -> FrameFormat:
        """Return the format of the same samples in a hardware decoder's surfaces, where 9 to 16 bits are the upper ones."""
        bits = int(self.peak).bit_length()
        return replace(self, shift=0 if bits == 8 else 16 - bits, external=True)

    @classmethod
    def _checked(cls, width: int, height: int, code: SampleCode, factor: float, peak: float) -> FrameFormat:
        if problem := size_problem(width, height):
            raise FrameError(problem)
        return cls(int(width), int(height), code, factor, peak)

    @property
    def dtype(self) -> SampleType:
        """Return the NumPy type of the samples."""
        return _DTYPES[self.code]

    @property
    def row_bytes(self) -> int:
        """Return the bytes of a row without padding."""
        return self.width * self.dtype.itemsize

    def check_samples(self, name: str, plane: npt.NDArray[Any]) -> None:
        """Raise FrameError if an integer sample is larger than `peak`; `name` is the name of the plane in the message."""
        largest = largest_out_of_range(plane, self.peak) if plane.dtype.kind == "u" else None
        if largest is not None:
            raise FrameError(
                f"{name} has a sample of {largest}, but {self.peak:g} is the largest that its depth or data_range allows; give"
                " the right one"
            )

    @property
    def may_be_exceeded(self) -> bool:
        """Return True if the type of the samples can hold values above `peak`."""
        return self.code is not SampleCode.FLOAT32 and (self.peak + 1) * 2**self.shift < 2 ** (8 * self.dtype.itemsize)

    @property
    def stored_factor(self) -> float:
        """Return the factor that converts a sample as it is stored, with its shift, to the 0..255 scale."""
        return self.factor * 2.0**-self.shift

    @property
    def needs_ingest(self) -> bool:
        """Return True if a pass must convert the samples first: floats, and integers with a range of their own."""
        if self.code is SampleCode.FLOAT32:
            return True
        bits = 8.0 - float(np.log2(self.stored_factor))
        return not (bits.is_integer() and (self.code is SampleCode.UINT16 or bits == 8))
