"""float_psnr: the peak signal-to-noise ratio of frames on the 0..255 scale, like libvmaf's extractor of this name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..shaders.interface import SampleCode
from ..types import DoublePlane, Doubles, FloatPlane, FrameFormat
from .base import FeaturePlan, FrameScorer, sum_groups
from .dispatches import KernelShape, PlanePair, WindowWalk, partials, window
from .options import OptionValue
from .samples import noise

_INTEGER_DIGITS = (1.0, 2.0**16, 2.0**32)
_FLOAT_DIGITS = (1.0, 1.0, 1.0)
"""The weights of a workgroup's three sums; see shaders/psnr.comp."""

_DB_A_BIT, _DB_MORE = 6, 12
_SMALLEST_NOISE = 1e-10


class FloatPsnrScorer(FrameScorer):
    """float_psnr for frames of one format and of any size, as in libvmaf's float_psnr.c and psnr.c.

    score = min(10 log10(peak^2 / max(noise, 1e-10)), limit), where noise is the mean squared difference on the 0..255 scale.
    The peak is the largest sample on that scale: 255 for 8 bits, 255.75 for 10. The limit is 6 b + 12 dB for samples of b
    bits, which gives libvmaf's 60, 72, 84 and 108 dB for 8, 10, 12 and 16 bits. Integers with a `data_range` have the limit of
    the bits that their largest sample needs. Floats have no depth, so only the smallest noise limits them, to 148.13 dB.
    """

    name = "float_psnr"
    options = {}  # noqa: RUF012 - none: it is in dB, so those of similarities do not apply

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        super().__init__(frame, options)
        self._frame = frame
        self._peak = frame.peak * frame.factor
        unlimited = float(10 * np.log10(self._peak**2 / _SMALLEST_NOISE))
        of_depth = np.inf if frame.code is SampleCode.FLOAT32 else float(_DB_A_BIT * int(frame.peak).bit_length() + _DB_MORE)
        self.limit_db: float = min(of_depth, unlimited)

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return one dispatch, which reads both planes once."""
        walk = WindowWalk.samples(shape, planes)
        target = partials("psnr.partials", len(_INTEGER_DIGITS) * walk.count)
        return FeaturePlan((target,), ((window(shape, "psnr", planes, walk, target),),), target, (walk.count,))

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return (frames, 1) noise. Sums of integers are in units of the stored samples."""
        digits = sum_groups(partial_sums, plan.groups, len(_INTEGER_DIGITS))[:, 0]
        weights, scale = (_FLOAT_DIGITS, 1.0) if self._frame.needs_ingest else (_INTEGER_DIGITS, self._frame.stored_factor**2)
        sums: Doubles = digits @ np.array(weights) * scale
        return sums[:, None] / (self._frame.width * self._frame.height)

    def reference_means(self, reference: FloatPlane, distorted: FloatPlane, before: object = None) -> DoublePlane:
        """Return (1,) noise of a frame, computed by NumPy."""
        return np.array([noise(reference, distorted)])

    def score(self, means: Doubles) -> Doubles:
        """Return the noise. For several planes the noise is averaged and not the dB, as in FFmpeg's average PSNR."""
        return means[:, 0]

    def as_requested(self, score: Doubles) -> Doubles:
        """Return the noise in dB below the peak; NaN if it is not finite, for which libvmaf would give its best score."""
        finite = np.where(np.isfinite(score), score, np.nan)
        decibels = 10 * np.log10(self._peak**2 / np.maximum(finite, _SMALLEST_NOISE))
        limited: Doubles = np.minimum(decibels, self.limit_db)
        return limited
