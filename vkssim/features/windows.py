"""The windows that float_ssim can slide over its planes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import OptionError
from ..reference.uniform import estimate_columns, estimate_maps, uniform_maps
from ..reference.window import LcsMaps, lcs_maps
from ..shaders.constants import GAUSSIAN, UNIFORM
from ..types import FloatPlane
from .options import OptionValue
from .planes import MARGIN, KernelShape, PlanePair, WindowWalk


@dataclass(frozen=True)
class Windows:
    """A window, which of its places count, and what computes l, c, s there.

    `stem` is the kernel, `map_stem` the one that keeps every window, None where some are left out; `walk` is how it is cut into
    workgroups, `maps` its twin; `columns` gives how many columns of windows count in a plane of some width. With `has_exact`
    there is a kernel that rounds as libvmaf does.
    """

    side: int
    stem: str
    map_stem: str | None
    walk: Callable[[KernelShape, PlanePair], WindowWalk]
    columns: Callable[[int], int]
    maps: Callable[[FloatPlane, FloatPlane], LcsMaps]
    has_exact: bool = False

    def count(self, width: int, height: int) -> int:
        """Windows that count in a plane."""
        return self.columns(width) * (height - self.side + 1)


GAUSSIAN11 = Windows(len(GAUSSIAN), "ssim", "ssim_map", WindowWalk.over, lambda width: width - MARGIN, lcs_maps, has_exact=True)
UNIFORM8 = Windows(
    UNIFORM, "ssim_uniform", "ssim_uniform_map", WindowWalk.uniform, lambda width: width - UNIFORM + 1, uniform_maps
)
ESTIMATE = Windows(
    UNIFORM, "ssim_estimate", None, WindowWalk.estimate, lambda width: len(estimate_columns(width)), estimate_maps
)


def choose_windows(feature: str, options: Mapping[str, OptionValue]) -> Windows:
    """Return the windows that options ask for. Raises OptionError for options that do not go together."""
    if options["window"] == "gaussian11":
        if options["estimate"]:
            raise OptionError(f"{feature}: estimate=true is for window=uniform8; the Gaussian window has no estimate")
        return GAUSSIAN11
    if options["exact"] == "true":
        raise OptionError(f"{feature}: exact=true rounds as libvmaf does, which has no window=uniform8; leave exact out")
    return ESTIMATE if options["estimate"] else UNIFORM8
