"""adm: losses of detail over four scales, in integers like libvmaf's extractor of this name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt

from ..host.plan import BufferSpec, Dispatch, Role
from ..shaders.constants import ADM_SCALES, ADM_WORKGROUP, STRIP_COLUMNS
from ..shaders.interface import AIM_CONSTANT, SCALE_CONSTANT, SampleCode, Shape
from ..types import DoublePlane, Doubles, FrameFormat, Samples
from ..utils.values import Value, values_of
from .adm import (
    ACROSS_SHIFTS,
    DLM_WEIGHT,
    GAIN_LIMIT,
    NOISE_WEIGHT,
    Int64s,
    Window,
    adm_scores,
    adm_sums,
    band_shifts,
    check_size,
    mask_shifts,
    terms_of_sums,
    window,
)
from .adm_csf import NORM_VIEW_DIST, REF_DISPLAY_HEIGHT, WATSON, Viewing, band_weights
from .base import FeaturePlan, IntegerScorer, sum_groups
from .dispatches import KernelShape, PlaneLayout, PlanePair, aligned, ceil_div, dispatch, partials, strip_rows
from .options import OptionValue
from .vmaf_model import output_name

MAX_GAIN = int(GAIN_LIMIT)

_BANDS = 3
_DIGITS = 4  # of a sum, to the base 2^16; see shaders/adm_rows.comp
_HALF = 32  # bits of a sum in each of the two numbers that hold it

_LAST_KERNEL = 2  # that of scale 3 too: a kernel takes lavapipe 3 s to compile

_ROWS = {Shape.STRIP: 48, Shape.STAGED: 32}
_ROW_BYTES = 32  # words of eight columns


class AdmOptions(TypedDict, total=False):
    """The options of adm."""

    adm_enhn_gain_limit: Annotated[
        int,
        Value(
            default=MAX_GAIN,
            help="the largest gain of contrast that counts as restored; 1 for none, as in the NEG models",
            choices=range(1, MAX_GAIN + 1),
        ),
    ]
    adm_csf_mode: Annotated[
        int,
        Value(
            default=WATSON,
            help="the weights of bands: 0 by Watson, 1 by Barten, 2 and 3 libvmaf's blends of both, for some distances",
            choices=range(4),
        ),
    ]
    adm_norm_view_dist: Annotated[
        float, Value(default=NORM_VIEW_DIST, help="the distance of the viewer, in heights of the display", bounds=(0.75, 24.0))
    ]
    adm_ref_display_height: Annotated[
        int, Value(default=REF_DISPLAY_HEIGHT, help="the height of the display in samples", choices=range(1, 4321))
    ]
    adm_noise_weight: Annotated[
        float, Value(default=NOISE_WEIGHT, help="the noise of a sample, which scores of flat frames need", bounds=(0.0, 1500.0))
    ]
    adm_skip_aim: Annotated[
        bool,
        Value(
            default=True,
            help="leave out aim, the additions, and adm3, a mean of adm2 and 1 - aim, which take a quarter longer",
            adds=True,
        ),
    ]
    adm_dlm_weight: Annotated[float, Value(default=DLM_WEIGHT, help="the weight of adm2 in adm3", bounds=(0.0, 1.0))]
    adm_min_val: Annotated[float, Value(default=0.0, help="the smallest adm3", bounds=(0.0, 1.0))]


class AdmScorer(IntegerScorer):
    """adm for frames of one format, as in libvmaf's integer_adm.c.

    A scale has one score, num / den: the detail of the reference that the distorted plane keeps above the masking threshold.
    adm2 is the quotient of the sums of all scales. aim is the same of its additions, and adm3 has both. Raises
    FrameError for samples that are no integers of 8 to 16 bits, and below 33x33, and OptionError as `band_weights`.
    """

    name = "adm"
    options = values_of(AdmOptions)

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        check_size(frame.width, frame.height)
        super().__init__(frame, options)
        self._limit: int = self._options["adm_enhn_gain_limit"]
        self._skip_aim: bool = self._options["adm_skip_aim"]
        self._noise_weight: float = self._options["adm_noise_weight"]
        self._viewing = Viewing(*(self._options[f"adm_{name}"] for name in Viewing._fields[:3]))
        for scale in range(ADM_SCALES):
            band_weights(scale, self._viewing)
        outputs = "adm2", *(() if self._skip_aim else ("aim", "adm3")), *(f"adm_scale{scale}" for scale in range(ADM_SCALES))
        self.names = tuple(output_name(f"integer_{output}", self._options) for output in outputs)

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return the dispatches of four scales, one after the other, and of their rows.

        planes ──► adm ──► approximations ──► adm ──► ... ──► approximations ──► adm
                    │                          │                                  │
                    └──► sums of rows ──► adm_rows ◄──────────────────────────────┘
        """
        scales = _scales(shape, planes, self._bits, self._frame.shift, kinds=2 if self._skip_aim else 3)
        groups = tuple(scale.row_groups(shape) for scale in scales for _ in range(scale.kinds))
        of_group = _BANDS * _DIGITS
        target = partials("adm.partials", of_group * sum(groups))
        buffers = (target, *(scale.approximations for scale in scales), *(scale.row_sums for scale in scales))
        steps = [(_sum_rows(shape, scale, self._limit, self._viewing),) for scale in scales]
        firsts = [of_group * sum(groups[: number * scale.kinds]) for number, scale in enumerate(scales)]
        rows = (_add_rows(shape, scale, first, target) for scale, first in zip(scales, firsts, strict=True))
        return FeaturePlan(buffers, (*steps, tuple(rows)), target, groups)

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return (frames, 48 or 72) numbers: the lower 32 bits and the rest of each sum of `adm_sums`, which are whole."""
        digits = sum_groups(partial_sums, plan.groups, _BANDS * _DIGITS).astype(np.int64)
        return _split((digits.reshape(len(digits), -1, _DIGITS) << np.arange(0, 64, 16)).sum(axis=2))

    def reference_means(self, reference: Samples, distorted: Samples, before: object = None) -> DoublePlane:
        """Return (48,) numbers of a frame, or (72,) with aim, computed by NumPy."""
        limit, viewing = self._limit, self._viewing
        sums = adm_sums(reference, distorted, self._bits, gain_limit=limit, viewing=viewing, skip_aim=self._skip_aim)
        return _split(sums.reshape(1, -1)).ravel()

    def scores(self, means: Doubles) -> Doubles:
        """Return adm2, aim and adm3, and the scores of the scales."""
        height, width = self._frame.height, self._frame.width
        sums = _joined(means).reshape(len(means), ADM_SCALES, -1, 3)
        terms = terms_of_sums(sums, height, width, noise_weight=self._noise_weight, viewing=self._viewing)
        weight, smallest = self._options["adm_dlm_weight"], self._options["adm_min_val"]
        found = adm_scores(terms, height * width, dlm_weight=weight, min_val=smallest)
        return np.column_stack([found.adm2, *(() if self._skip_aim else (found.aim, found.adm3)), found.scales])


def _split(sums: Int64s) -> Doubles:
    """Return (frames, 2 n) numbers that float64 holds, from (frames, n) sums of up to 63 bits."""
    return np.stack([sums & ((1 << _HALF) - 1), sums >> _HALF], axis=2).reshape(len(sums), -1).astype(np.float64)


def _joined(means: Doubles) -> Int64s:
    """Return (frames, n) sums from the numbers of `_split`."""
    halves = means.astype(np.int64).reshape(len(means), -1, 2)
    return halves[..., 0] + (halves[..., 1] << _HALF)


# -- dispatches -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scale:
    """The planes from which a scale is made, its approximations, and the workgroups that make and sum it.

    `strip` is the rows that a workgroup makes, and `parts` is the number of parts of a row with sums of their own. The sums
    are of the masked bands, of the bands of the reference, and of the masked additions if there are three `kinds`.
    """

    number: int
    source: PlaneLayout
    planes: PlaneLayout
    sample_shift: int
    bits: int
    groups: tuple[int, int]
    strip: int
    parts: int
    kinds: int

    @property
    def approximations(self) -> BufferSpec:
        """Return the buffer of the approximations. A word of scale 0 has both planes."""
        return BufferSpec(self.planes.buffer, Role.WORK, (2 if self.number else 1) * self.planes.plane_bytes)

    @property
    def window(self) -> Window:
        """Return the part of the bands that counts."""
        return window(self.planes.height, self.planes.width)

    @property
    def rows(self) -> int:
        """Return the number of rows that count."""
        return self.planes.height - 2 * int(self.window.rows.start)

    @property
    def row_sums(self) -> BufferSpec:
        """Return the buffer of the sums of rows, 64 bits each."""
        return BufferSpec(f"adm.rows{self.number}", Role.WORK, aligned(8 * _BANDS * self.kinds * self.parts * self.rows))

    def row_groups(self, shape: KernelShape) -> int:
        """Return the workgroups that add the rows."""
        return ceil_div(self.rows, shape.workgroup if shape.shape is Shape.STRIP else ADM_WORKGROUP)


def _scales(shape: KernelShape, planes: PlanePair, bits: int, sample_shift: int, kinds: int) -> list[_Scale]:
    columns = STRIP_COLUMNS * shape.workgroup if shape.shape is Shape.STRIP else ADM_WORKGROUP - 2
    scales = []
    source: PlaneLayout = planes
    for number in range(ADM_SCALES):
        width, height = (source.width + 1) // 2, (source.height + 1) // 2
        target = PlaneLayout(f"adm.scale{number}", width, height, SampleCode.FLOAT32, _ROW_BYTES * ceil_div(width, 8))
        groups_x = ceil_div(width, columns)
        strip = strip_rows(_ROWS[shape.shape], height, groups_x)
        inner = window(height, width).columns
        parts = (inner.stop - 1) // columns + 1 - inner.start // columns
        groups = groups_x, ceil_div(height, strip)
        scales.append(_Scale(number, source, target, sample_shift, bits, groups, strip, parts, kinds))
        source = target
    return scales


def _sum_rows(shape: KernelShape, scale: _Scale, limit: int, viewing: Viewing) -> Dispatch:
    edge, _, diagonal = band_weights(scale.number, viewing).integers
    height, width = scale.planes.height, scale.planes.width
    return dispatch(
        shape,
        "adm",
        scale.source,
        scale.planes,
        scale.groups,
        label=f"adm scale {scale.number}",
        targets=(scale.planes.buffer, scale.row_sums.name),
        constants={SCALE_CONSTANT: min(scale.number, _LAST_KERNEL), AIM_CONSTANT: int(scale.kinds > 2)},
        strip=scale.strip,
        top=scale.window.rows.start,
        left=scale.window.columns.start,
        bits=ACROSS_SHIFTS[scale.number] if scale.number else scale.bits,
        sample_shift=scale.sample_shift,
        gain_limit=limit,
        edge_weight=_signed(edge),
        diagonal_weight=_signed(diagonal),
        mask_shift=mask_shifts(height, width, scale.number).cubes[0],
        band_shift=band_shifts(height, width, scale.number).cubes[0],
    )


def _signed(word: int) -> int:
    """Return 32 bits as a push constant has them; the kernel takes them for unsigned."""
    return word - ((word >> 31) << 32)


def _add_rows(shape: KernelShape, scale: _Scale, first: int, target: BufferSpec) -> Dispatch:
    height, width = scale.planes.height, scale.planes.width
    return dispatch(
        shape,
        "adm_rows",
        scale.planes,
        scale.planes,
        (scale.row_groups(shape), scale.kinds),
        label=f"adm rows of scale {scale.number}",
        sources=(scale.row_sums.name,),
        targets=(target.name,),
        rows=scale.rows,
        parts=scale.parts,
        kinds=scale.kinds,
        mask_shift=mask_shifts(height, width, scale.number).rows,
        band_shift=band_shifts(height, width, scale.number).rows,
        first_partial=first,
        frame_partials=target.frame_bytes // 4,
    )
