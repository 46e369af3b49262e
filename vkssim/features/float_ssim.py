"""float_ssim: single-scale SSIM after an automatic downscale, as libvmaf's extractor of that name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..errors import FrameError
from ..formats import FrameFormat
from ..host.plan import BufferSpec, Dispatch, Role
from ..reference.ssim import ssim_means
from ..reference.ssim_downscale import downscaled_size
from ..types import DoublePlane, FloatPlane
from .base import Doubles, FeaturePlan, sum_groups
from .options import COMMON, Option, OptionValue, integer_between, is_exact, parse_options, to_decibel
from .planes import MARGIN, KernelShape, PlanePair, WindowWalk, downscale, partials, window

_TERMS = ("", "_l", "_c", "_s")
_SMALLEST = MARGIN + 1


class FloatSsim:
    """The metric of Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality assessment", 2004."""

    name = "float_ssim"
    options: Mapping[str, Option] = {
        **COMMON,
        "scale": Option("downscale by this factor; 0 is automatic, min(w, h) / 256 rounded", 0, integer_between(0, 10)),
    }

    def for_frames(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> FloatSsimScorer:
        """Raises FrameError where less than 11x11 remain after the downscale."""
        return FloatSsimScorer(frame, *self._settled(frame, options))

    def _settled(
        self, frame: FrameFormat, options: Mapping[str, OptionValue]
    ) -> tuple[Mapping[str, OptionValue], int, tuple[int, int]]:
        """All options, the factor of the downscale, and width and height after it."""
        values = parse_options(self.name, self.options, options)
        factor = int(values["scale"]) or max(1, round(min(frame.width, frame.height) / 256))
        size = downscaled_size(frame.width, frame.height, factor)
        if min(size) < _SMALLEST:
            raise FrameError(
                f"{self.name} needs {_SMALLEST}x{_SMALLEST} at least after its downscale by {factor},"
                f" got {size[0]}x{size[1]} from {frame.width}x{frame.height}; choose a smaller scale or larger frames"
            )
        return values, factor, size


class FloatSsimScorer:
    """float_ssim for frames of one format."""

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue], factor: int, size: tuple[int, int]) -> None:
        self._frame = frame
        self._options = options
        self._factor = factor
        self._size = size
        self._groups: list[int] = []
        names = tuple(FloatSsim.name + term for term in _TERMS)
        self.names = names if options["enable_lcs"] else names[:1]
        self.similarities: tuple[str, ...] = () if options["enable_db"] else names[:1]

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """One dispatch, or two where a downscale comes first."""
        level, steps, buffers = planes, [], []
        if self._factor > 1:
            level = PlanePair.floats("ssim.downscaled", *self._size)
            steps.append((downscale(shape, planes, level, self._factor),))
            buffers.append(level.spec(Role.WORK))
        shape = replace(shape, exact=is_exact(self._frame, self._options))
        walk = WindowWalk.over(shape, level)
        self._groups = [walk.count]
        windows, target = self._windows(shape, level, walk, len(_TERMS) * walk.count)
        steps.append((windows,))
        return FeaturePlan((*buffers, target), tuple(steps), target)

    def _windows(self, shape: KernelShape, level: PlanePair, walk: WindowWalk, sums: int) -> tuple[Dispatch, BufferSpec]:
        """The walk over the windows, and the buffer of so many sums that it leaves."""
        target = partials("ssim.partials", sums)
        return window(shape, "ssim", "ssim", level, walk, target), target

    def means(self, partial_sums: npt.NDArray[np.float32]) -> Doubles:
        """(frames, 4) means of l c s, l, c, s."""
        windows = (self._size[0] - MARGIN) * (self._size[1] - MARGIN)
        return 1.0 - sum_groups(partial_sums, self._groups, len(_TERMS))[:, 0] / windows

    def reference_means(self, reference: FloatPlane, distorted: FloatPlane) -> DoublePlane:
        """(4,) means of a frame by NumPy, in the order of `means`."""
        return ssim_means(reference, distorted, self._factor)

    def score(self, means: Doubles) -> Doubles:
        """The mean of l c s."""
        return means[:, 0]

    def given(self, score: Doubles) -> Doubles:
        """The score, in dB where asked for."""
        return to_decibel(score, self._frame, self._options)

    def finish(self, means: Doubles) -> Mapping[str, Doubles]:
        """The means by name, the score itself in dB where asked for."""
        scores = dict(zip(self.names, means.T, strict=False))
        scores[FloatSsim.name] = self.given(self.score(means))
        return scores
