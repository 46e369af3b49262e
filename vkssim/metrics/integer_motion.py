"""motion: how much the reference changes from frame to frame, in integers like libvmaf's extractor of this name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt

from ..host.plan import BufferSpec, Role
from ..shaders.constants import MOTION_WORKGROUP, STRIP_COLUMNS
from ..shaders.interface import Shape
from ..types import DoublePlane, Doubles, FrameFormat, Samples
from ..utils.values import Value, values_of
from .base import FeaturePlan, IntegerScorer, sum_groups
from .dispatches import SAMPLES, KernelShape, PlanePair, WindowWalk, ceil_div, dispatch, partials
from .motion import MotionOptions, check_size, motion_scores, motion_sum
from .options import OptionValue
from .vmaf_model import output_name

_DIGITS = np.array([1.0, 2.0**16])
"""The weights of a workgroup's two sums; see shaders/motion.comp."""

_ROWS = {Shape.STRIP: 64, Shape.STAGED: 64}
_LEAD = "motion.lead"


class IntegerMotionOptions(TypedDict, total=False):
    """The options of motion."""

    motion_force_zero: Annotated[bool, Value(default=False, help="give 0 for every frame, as models without motion need")]
    motion_max_val: Annotated[float, Value(default=10000.0, help="the largest score", bounds=(0.0, 10000.0))]
    motion_fps_weight: Annotated[float, Value(default=1.0, help="multiply scores, for other frame rates", bounds=(0.0, 5.0))]
    motion_blend_factor: Annotated[
        float, Value(default=1.0, help="multiply what motion3 has above motion_blend_offset", bounds=(0.0, 1.0))
    ]
    motion_blend_offset: Annotated[float, Value(default=40.0, help="see motion_blend_factor", bounds=(0.0, 1000.0))]
    motion_five_frame_window: Annotated[
        bool, Value(default=False, help="compare frames that are two apart, for about 50 or 60 frames per second")
    ]
    motion_moving_average: Annotated[bool, Value(default=False, help="motion3 is the mean of a frame's and the one before's")]


class MotionScorer(IntegerScorer):
    """motion for frames of one format, as in libvmaf's integer_motion.c.

    The distorted clip does not matter, and larger scores are no better. motion2 is the smaller of a frame's change and the next
    one's, in units of 8 bits, and 0 for the first frame; motion3 is motion2 blended, and that of
    the second for the first frame. Raises FrameError for samples that are no integers of 8 to 16 bits, and below 3x3.
    """

    name = "motion"
    options = values_of(IntegerMotionOptions)

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        check_size(frame.width, frame.height)
        super().__init__(frame, options)
        self._settings = settings = MotionOptions(
            **{name.removeprefix(f"{self.name}_"): value for name, value in self._options.items()}
        )
        self.distance = settings.distance
        self.frames_before, self.frames_after = settings.frames_before, settings.frames_after
        self.names = tuple(output_name(f"integer_{output}", self._options) for output in ("motion2", "motion3"))

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return one dispatch, which reads each reference and an earlier one."""
        columns = STRIP_COLUMNS * shape.workgroup if shape.shape is Shape.STRIP else MOTION_WORKGROUP - 4
        walk = WindowWalk.in_strips(shape, ceil_div(planes.width, columns), planes.height, _ROWS)
        lead = BufferSpec(_LEAD, Role.LEAD, planes.plane_bytes, of=SAMPLES, frames=self.distance)
        target = partials("motion.partials", len(_DIGITS) * walk.count)
        step = dispatch(
            shape,
            "motion",
            planes,
            planes,
            walk.groups,
            sources=(planes.buffer, _LEAD),
            targets=(target.name,),
            strip=walk.strip,
            first_partial=0,
            frame_partials=target.frame_bytes // 4,
            bits=self._bits,
            sample_shift=self._frame.shift,
            distance=self.distance,
        )
        return FeaturePlan((lead, target), ((step,),), target, (walk.count,))

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return (frames, 1) sums of magnitudes, which are whole."""
        sums: Doubles = sum_groups(partial_sums, plan.groups, len(_DIGITS)) @ _DIGITS
        return sums

    def reference_means(self, reference: Samples, distorted: Samples, before: Samples | None = None) -> DoublePlane:
        """Return (1,) sum of a frame, computed by NumPy."""
        return np.array([0.0 if before is None else motion_sum(before, reference, self._bits)])

    def scores(self, means: Doubles) -> Doubles:
        """Return motion2 and motion3 of consecutive frames."""
        sums = means[:, 0].astype(np.int64).tolist()
        found = motion_scores(sums, self._frame.width, self._frame.height, self._settings)
        return np.stack([found.motion2, found.motion3], axis=1)
