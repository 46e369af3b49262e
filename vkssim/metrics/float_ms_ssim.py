"""float_ms_ssim: SSIM over a pyramid of five scales, combined by Wang's product, like libvmaf's extractor of this name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated

import numpy as np
import numpy.typing as npt

from ..errors import FrameError
from ..host.plan import Role
from ..shaders.constants import ALPHA, BETA, GAMMA, SCALES, SMALLEST_SIDE
from ..shaders.interface import Precision
from ..types import DoublePlane, Doubles, FloatPlane, FrameFormat
from ..utils.values import Value, values_of
from .base import FeaturePlan, SimilarityScorer, sum_groups
from .dispatches import MARGIN, KernelShape, PlanePair, WindowWalk, decimate, partials, window
from .options import OptionValue, SimilarityOptions
from .ssim import scale_means

_TERMS = ("l", "c", "s")
_MAX_MEAN = 1.1  # roundings of `precision=fast` exceed 1 by less
_SUMS = 2 * len(_TERMS)  # of a workgroup of the kernel: distances from 0 or 1, and how many are from 0


class FloatMsSsimOptions(SimilarityOptions, total=False):
    """The options of float_ms_ssim."""

    negative: Annotated[
        str,
        Value(
            default="null",
            help="give no score for a negative mean structure (null), or take 0 in its place (clamp)",
            choices=("null", "clamp"),
        ),
    ]


class FloatMsSsimScorer(SimilarityScorer):
    """float_ms_ssim for frames of one format: Z. Wang et al., "Multi-scale structural similarity", Asilomar 2003.

    Raises FrameError below 176x176: five scales need 11 samples after four halvings.
    """

    name = "float_ms_ssim"
    options = values_of(FloatMsSsimOptions)
    _options: FloatMsSsimOptions

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        if min(frame.width, frame.height) < SMALLEST_SIDE:
            raise FrameError(
                f"{self.name} needs {SMALLEST_SIDE}x{SMALLEST_SIDE} at least, got {frame.width}x{frame.height}; float_ssim"
                " takes smaller frames"
            )
        self._sizes = [(frame.width, frame.height)]
        for _ in range(SCALES - 1):
            width, height = self._sizes[-1]
            self._sizes.append(((width + 1) // 2, (height + 1) // 2))
        super().__init__(frame, options, [f"{self.name}_{term}_scale{scale}" for term in _TERMS for scale in range(SCALES)])

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return nine dispatches.

        Each step makes the next scale and sums the current one:

        planes ──► decimate ──► scale 1 ──► decimate ──► scale 2 ── … ──► scale 4
          │                       │                        │                 │
          ▼                       ▼                        ▼                 ▼
        ms_ssim                 ms_ssim                  ms_ssim           ms_ssim
          └──────────► partial sums of l, c, s of each workgroup ◄───────────┘
        """
        shape = replace(shape, precision=Precision(self._options["precision"]))
        levels = [planes] + [PlanePair.floats(f"ms_ssim.scale{scale}", *self._sizes[scale]) for scale in range(1, SCALES)]
        walks = [WindowWalk.over(shape, level) for level in levels]
        groups = tuple(walk.count for walk in walks)
        target = partials("ms_ssim.partials", _SUMS * sum(groups))
        steps = []
        for scale, (level, walk) in enumerate(zip(levels, walks, strict=True)):
            first = _SUMS * sum(groups[:scale])
            step = [replace(window(shape, "ms_ssim", level, walk, target, first), label=f"ms_ssim scale {scale}")]
            if scale + 1 < SCALES:
                step.insert(0, decimate(shape, f"decimate to scale {scale + 1}", level, levels[scale + 1]))
            steps.append(tuple(step))
        return FeaturePlan((*(level.spec(Role.WORK) for level in levels[1:]), target), tuple(steps), target, groups)

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return (frames, 15) means: l, c, s of each scale, scale after scale.

        `ms_ssim.comp` describes the sums. The difference of whole numbers comes first, so that means near 0 keep their digits.
        A mean far above 1 comes from samples whose squares exceed float32: it is NaN, as all means that have no value.
        """
        windows = np.array([[(width - MARGIN) * (height - MARGIN)] for width, height in self._sizes], np.float64)
        distances, counts = np.split(sum_groups(partial_sums, plan.groups, _SUMS), 2, axis=2)
        means = (windows - counts - distances) / windows
        return np.where(means > _MAX_MEAN, np.nan, means).reshape(len(partial_sums), -1)

    def reference_means(self, reference: FloatPlane, distorted: FloatPlane, before: object = None) -> DoublePlane:
        """Return (15,) means of a frame, computed by NumPy, in the order of `means`."""
        return scale_means(reference, distorted).reshape(-1)

    def score(self, means: Doubles) -> Doubles:
        """Return Wang's product of l^alpha c^beta s^gamma over the scales; NaN if a mean structure is negative."""
        lcs = means.reshape(-1, SCALES, len(_TERMS))
        bases = np.maximum(lcs, 0.0) if self._options["negative"] == "clamp" else lcs
        exponents = np.stack([ALPHA, BETA, GAMMA], axis=1)
        with np.errstate(invalid="ignore"):
            score: Doubles = np.prod(np.prod(bases**exponents, axis=2), axis=1)
        return score

    def terms(self, means: Doubles) -> Iterable[Doubles]:
        """Return l of each scale, then c, then s."""
        return means.reshape(-1, SCALES, len(_TERMS)).transpose(2, 1, 0).reshape(SCALES * len(_TERMS), -1)
