"""vif: visual information fidelity over four scales, in integers like libvmaf's extractor of this name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt

from ..host.plan import BufferSpec, Dispatch, Role
from ..shaders.constants import STRIP_COLUMNS, VIF_FILTERS, VIF_WORKGROUP
from ..shaders.interface import SCALE_CONSTANT, SampleCode, Shape
from ..types import DoublePlane, Doubles, FrameFormat, Samples
from ..utils.values import Value, values_of
from .base import FeaturePlan, IntegerScorer, sum_groups
from .dispatches import KernelShape, PlaneLayout, PlanePair, WindowWalk, aligned, ceil_div, dispatch, partials, strip_rows
from .options import OptionValue
from .vif import GAIN_LIMIT, VIF_SCALES, check_size, log_table, vif_scores, vif_sums
from .vmaf_model import output_name

MAX_GAIN = int(GAIN_LIMIT)


_DIGITS = np.array(
    [
        [1, 2**16, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 2**16, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 2**16, 2**32, 0],
        [0, 0, 0, 0, 0, 0, 0, 1],
    ],
    np.float64,
)
"""The weights of a workgroup's eight sums in the four numbers of `VifSums`; see shaders/vif.comp."""

_SUMS = len(_DIGITS[0])

_ROWS = 128  # of a workgroup of the staged shape
_STEPS = 120  # of a workgroup of the strip shape: each filters STRIP_COLUMNS columns
_OUTPUTS = {Shape.STRIP: 8, Shape.STAGED: 4}  # that a thread of vif_decimate.comp makes
_LOGARITHMS = "vif.logarithms"


class VifOptions(TypedDict, total=False):
    """The options of vif."""

    vif_enhn_gain_limit: Annotated[
        int,
        Value(
            default=MAX_GAIN,
            help="the largest gain of contrast that counts; 1 for none, as in the NEG models",
            choices=range(1, MAX_GAIN + 1),
        ),
    ]


class VifScorer(IntegerScorer):
    """vif for frames of one format, as in libvmaf's integer_vif.c.

    A scale has one score, num / den, the quotient of two float32: the information that the distorted plane keeps of the
    reference's. Raises FrameError for samples that are no integers of 8 to 16 bits, and below 16x16.
    """

    name = "vif"
    options = values_of(VifOptions)

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        check_size(frame.width, frame.height)
        super().__init__(frame, options)
        self._limit: int = self._options["vif_enhn_gain_limit"]
        self.names = tuple(output_name(f"integer_vif_scale{scale}", self._options) for scale in range(VIF_SCALES))

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return the dispatches of four scales: in each step, the next scale is made while this one is summed."""
        scales = [_Scale(0, planes, self._frame.shift, self._bits, 2 * (self._bits - 8))]
        scales += [_Scale(scale, level, 0, 16, 16) for scale, level in enumerate(_levels(planes), 1)]
        walks = [_walk(shape, scale) for scale in scales]
        groups = tuple(walk.count for walk in walks)
        target = partials("vif.partials", _SUMS * sum(groups))
        table = BufferSpec(_LOGARITHMS, Role.TABLE, 1 << 16, log_table()[1 << 15 :].astype("<u2").tobytes())

        steps: list[tuple[Dispatch, ...]] = []
        for scale, walk in zip(scales, walks, strict=True):
            first = _SUMS * sum(groups[: scale.number])
            step = [_sum_windows(shape, scale, walk, target, first, self._limit)]
            if scale.number + 1 < VIF_SCALES:
                step.insert(0, _decimate(shape, scale, scales[scale.number + 1].planes))
            steps.append(tuple(step))
        buffers = *(scale.planes.spec(Role.WORK) for scale in scales[1:]), table, target
        return FeaturePlan(buffers, tuple(steps), target, groups)

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return (frames, 16) numbers: those of `VifSums` of each scale, which are whole."""
        sums: Doubles = sum_groups(partial_sums, plan.groups, _SUMS) @ _DIGITS.T
        return sums.reshape(len(partial_sums), -1)

    def reference_means(self, reference: Samples, distorted: Samples, before: object = None) -> DoublePlane:
        """Return (16,) numbers of a frame, computed by NumPy."""
        return np.array(vif_sums(reference, distorted, self._bits, gain_limit=self._limit), np.float64).reshape(-1)

    def scores(self, means: Doubles) -> Doubles:
        """Return the scores of the scales."""
        return vif_scores(means.reshape(len(means), VIF_SCALES, -1)).astype(np.float64)


# -- dispatches -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scale:
    """The planes of a scale, and the shifts of their samples and of the sums of their columns."""

    number: int
    planes: PlaneLayout
    sample_shift: int
    mean_shift: int
    square_shift: int


def _levels(planes: PlanePair) -> Iterator[PlanePair]:
    """Yield the layouts of the planes of all scales but the first."""
    width, height = planes.width, planes.height
    for scale in range(1, VIF_SCALES):
        width, height = width // 2, height // 2
        yield PlanePair(f"vif.scale{scale}", width, height, SampleCode.UINT16, aligned(2 * width))


def _walk(shape: KernelShape, scale: _Scale) -> WindowWalk:
    planes = scale.planes
    if shape.shape is Shape.STAGED:
        columns = VIF_WORKGROUP - len(VIF_FILTERS[scale.number]) + 1
        strip = strip_rows(_ROWS, planes.height, ceil_div(planes.width, columns))
        return WindowWalk((ceil_div(planes.width, columns), ceil_div(planes.height, strip)), strip)
    groups_y = ceil_div(planes.height, shape.workgroup)
    strip = STRIP_COLUMNS * strip_rows(_STEPS, ceil_div(planes.width, STRIP_COLUMNS), groups_y)
    return WindowWalk((ceil_div(planes.width, strip), groups_y), strip)


def _decimate(shape: KernelShape, scale: _Scale, target: PlaneLayout) -> Dispatch:
    groups = ceil_div(ceil_div(target.width, _OUTPUTS[shape.shape]), shape.workgroup), target.height
    return dispatch(
        shape,
        "vif_decimate",
        scale.planes,
        target,
        groups,
        scale.planes.count,
        label=f"vif decimate to scale {scale.number + 1}",
        constants={SCALE_CONSTANT: scale.number + 1},
        mean_shift=scale.mean_shift,
        sample_shift=scale.sample_shift,
    )


def _sum_windows(shape: KernelShape, scale: _Scale, walk: WindowWalk, target: BufferSpec, first: int, limit: int) -> Dispatch:
    return dispatch(
        shape,
        "vif",
        scale.planes,
        scale.planes,
        walk.groups,
        label=f"vif scale {scale.number}",
        sources=(scale.planes.buffer, _LOGARITHMS),
        targets=(target.name,),
        constants={SCALE_CONSTANT: scale.number},
        strip=walk.strip,
        first_partial=first,
        frame_partials=target.frame_bytes // 4,
        sample_shift=scale.sample_shift,
        mean_shift=scale.mean_shift,
        square_shift=scale.square_shift,
        gain_limit=limit,
    )
