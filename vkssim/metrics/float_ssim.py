"""float_ssim: single-scale SSIM after an automatic downscale, like libvmaf's extractor, or with another window; and its map."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt

from ..errors import FrameError, OptionError
from ..host.plan import BufferSpec, Dispatch, Role
from ..shaders.constants import GAUSSIAN, UNIFORM
from ..shaders.interface import Precision
from ..types import DoublePlane, Doubles, FloatPlane, FrameFormat
from ..utils.values import Value, values_of
from .base import FeaturePlan, SimilarityScorer, sum_groups
from .dispatches import MARGIN, KernelShape, PlanePair, WindowWalk, downscale, partials, window
from .options import OptionValue, SimilarityOptions
from .ssim import downscaled_size, ssim_maps, ssim_means
from .uniform import estimate_columns, estimate_maps, uniform_maps
from .window import LcsMaps, lcs_maps


@dataclass(frozen=True)
class Windows:
    """A window, the positions that count, and the kernels that compute l, c, s.

    `stem` is the kernel, `walk` returns the workgroups, `maps` is the NumPy twin, and `columns` returns the number of columns
    of windows that count for a plane width.
    """

    side: int
    stem: str
    walk: Callable[[KernelShape, PlanePair], WindowWalk]
    columns: Callable[[int], int]
    maps: Callable[[FloatPlane, FloatPlane], LcsMaps]


GAUSSIAN11 = Windows(len(GAUSSIAN), "ssim", WindowWalk.over, lambda width: width - MARGIN, lcs_maps)
UNIFORM8 = Windows(UNIFORM, "ssim_uniform", WindowWalk.uniform, lambda width: width - UNIFORM + 1, uniform_maps)
ESTIMATE = Windows(UNIFORM, "ssim_estimate", WindowWalk.estimate, lambda width: len(estimate_columns(width)), estimate_maps)


def _chosen_windows(options: FloatSsimOptions) -> Windows:
    """Return the windows that the options select. Raises OptionError for contradictory options."""
    if options["window"] == "gaussian11":
        if options["estimate"]:
            raise OptionError(f"{NAME}: estimate=true is for window=uniform8; the Gaussian window has no estimate")
        return GAUSSIAN11
    if options["precision"] == Precision.FAST.value:
        raise OptionError(f"{NAME}: precision=fast is for window=gaussian11; window=uniform8 is fast, and loses no digits")
    return ESTIMATE if options["estimate"] else UNIFORM8


NAME = "float_ssim"
TERMS = ("", "_l", "_c", "_s")


def automatic_scale(width: int, height: int) -> int:
    """Return libvmaf's factor: the smaller side over 256, halves rounded up (`_round` of its `iqa/math_utils.c`)."""
    return max(1, (min(width, height) + 128) // 256)


class FloatSsimOptions(SimilarityOptions, total=False):
    """The options of float_ssim."""

    scale: Annotated[
        int,
        Value(
            default=0,
            help="downscale by this factor; 0 is automatic, min(w, h) / 256 with halves rounded up",
            choices=range(11),
        ),
    ]
    window: Annotated[
        str,
        Value(
            default="gaussian11",
            help="move libvmaf's 11x11 Gaussian window (gaussian11), or 8x8 equal weights with sample variances (uniform8)",
            choices=("gaussian11", "uniform8"),
        ),
    ]
    estimate: Annotated[
        bool, Value(default=False, help="leave out uniform8's windows across the edges of fragments 32 columns wide")
    ]


class FloatSsimScorer(SimilarityScorer):
    """float_ssim for frames of one format: Z. Wang et al., "Image quality assessment", 2004.

    Raises FrameError if less than one window remains after the downscale, and OptionError for contradictory options.
    """

    name = NAME
    options = values_of(FloatSsimOptions)
    _options: FloatSsimOptions

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        super().__init__(frame, options, [NAME + term for term in TERMS[1:]])
        self._windows = _chosen_windows(self._options)
        scale = self._options["scale"]
        self.automatic = () if scale else ("scale",)
        self.settings["scale"] = self._factor = factor = scale or automatic_scale(frame.width, frame.height)
        self._size = size = downscaled_size(frame.width, frame.height, factor)
        if min(size) < self._windows.side:
            raise FrameError(
                f"{NAME} needs {self._windows.side}x{self._windows.side} at least after its downscale by {factor},"
                f" got {size[0]}x{size[1]} from {frame.width}x{frame.height}; choose a smaller scale or larger frames"
            )
        self.map_shape = size[1] - self._windows.side + 1, self._windows.columns(size[0])
        """The rows and columns of windows that count."""

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return one dispatch, or two if there is a downscale."""
        level, steps, buffers = planes, [], []
        if self._factor > 1:
            level = PlanePair.floats("ssim.downscaled", *self._size)
            steps.append((downscale(shape, planes, level, self._factor),))
            buffers.append(level.spec(Role.WORK))
        shape = replace(shape, precision=Precision(self._options["precision"]))
        walk = self._windows.walk(shape, level)
        dispatch, target = self._walk_windows(shape, level, walk, len(TERMS) * walk.count)
        steps.append((dispatch,))
        return FeaturePlan((*buffers, target), tuple(steps), target, (walk.count,))

    def _walk_windows(self, shape: KernelShape, level: PlanePair, walk: WindowWalk, sums: int) -> tuple[Dispatch, BufferSpec]:
        """Return the dispatch that moves the window over the planes, and the buffer for its `sums` sums per workgroup."""
        target = partials("ssim.partials", sums)
        return window(shape, self._windows.stem, level, walk, target), target

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return (frames, 4) means of l c s, l, c, s."""
        rows, columns = self.map_shape
        return 1.0 - sum_groups(partial_sums, plan.groups, len(TERMS))[:, 0] / (rows * columns)

    def reference_means(self, reference: FloatPlane, distorted: FloatPlane, before: object = None) -> DoublePlane:
        """Return (4,) means of a frame, computed by NumPy, in the order of `means`."""
        return ssim_means(reference, distorted, self._factor, self._windows.maps)

    def score(self, means: Doubles) -> Doubles:
        """Return the mean of l c s."""
        return means[:, 0]

    def terms(self, means: Doubles) -> Iterable[Doubles]:
        """Return the means of l, c, s."""
        return means.T[1:]


class SsimMapScorer(FloatSsimScorer):
    """float_ssim that appends the map of each frame to `maps` when it computes the frame's means.

    It is not listed as a metric: reading a map back for every frame of a clip takes too long. Raises OptionError if the options
    leave out windows.
    """

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        super().__init__(frame, options)
        if self._options["estimate"]:
            raise OptionError("a map has every window; estimate=true leaves some out: leave estimate out, or the map")
        self.maps: list[FloatPlane] = []
        """Maps of shape `map_shape`, in the order of the frames. The caller removes the maps that it takes."""

    def _walk_windows(self, shape: KernelShape, level: PlanePair, walk: WindowWalk, sums: int) -> tuple[Dispatch, BufferSpec]:
        rows, columns = self.map_shape
        target = partials("ssim.partials", sums + rows * columns, Role.LARGE_OUTPUT)
        return window(shape, self._windows.stem, level, walk, target, first_window=sums), target

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return the means as FloatSsimScorer does, and append the maps, which follow the sums in memory."""
        rows, columns = self.map_shape
        first = len(TERMS) * sum(plan.groups)
        windows = partial_sums[:, first : first + rows * columns]
        self.maps += [values.reshape(rows, columns).copy() for values in windows]  # the next batch overwrites the memory
        return super().means(partial_sums, plan)

    def reference_means(self, reference: FloatPlane, distorted: FloatPlane, before: object = None) -> DoublePlane:
        """Return the means as FloatSsimScorer does, and append the map."""
        maps = ssim_maps(reference, distorted, self._factor, self._windows.maps)
        self.maps.append(maps[0].astype(np.float32))
        return np.array([term.mean() for term in maps])
