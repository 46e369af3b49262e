"""float_ssim with its map; the score is the mean of the map."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..errors import OptionError
from ..host.plan import BufferSpec, Dispatch, Role
from ..reference.ssim import ssim_maps
from ..types import DoublePlane, Doubles, FloatPlane, FrameFormat
from .base import FeaturePlan
from .float_ssim import TERMS, FloatSsim, FloatSsimOptions, FloatSsimScorer
from .options import OptionValue
from .planes import KernelShape, PlanePair, WindowWalk, partials, window
from .windows import Windows


class SsimMap(FloatSsim):
    """float_ssim with maps. It is not listed as a metric: reading a map back for every frame of a clip takes too long."""

    def for_frames(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> SsimMapScorer:
        """Return the metric as FloatSsim does. Raises OptionError if the options leave out windows."""
        values, windows, factor, size = self._settled(frame, options)
        if not windows.has_map:
            raise OptionError("a map has every window; estimate=true leaves some out: leave estimate out, or the map")
        return SsimMapScorer(frame, values, windows, factor, size)


class SsimMapScorer(FloatSsimScorer):
    """float_ssim that appends the map of each frame to `maps` when it computes the frame's means."""

    def __init__(
        self, frame: FrameFormat, options: FloatSsimOptions, windows: Windows, factor: int, size: tuple[int, int]
    ) -> None:
        super().__init__(frame, options, windows, factor, size)
        self.map_shape = size[1] - windows.side + 1, windows.columns(size[0])
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

    def reference_means(self, reference: FloatPlane, distorted: FloatPlane) -> DoublePlane:
        """Return the means as FloatSsimScorer does, and append the map."""
        maps = ssim_maps(reference, distorted, self._factor, self._windows.maps)
        self.maps.append(maps[0].astype(np.float32))
        return np.array([term.mean() for term in maps])
