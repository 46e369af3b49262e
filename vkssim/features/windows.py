"""The windows that float_ssim can move over its planes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import OptionError
from ..reference.uniform import estimate_columns, estimate_maps, uniform_maps
from ..reference.window import LcsMaps, lcs_maps
from ..shaders.constants import GAUSSIAN, UNIFORM
from ..shaders.interface import Precision
from ..types import FloatPlane
from .planes import MARGIN, KernelShape, PlanePair, WindowWalk

if TYPE_CHECKING:
    from .float_ssim import FloatSsimOptions


@dataclass(frozen=True)
class Windows:
    """A window, the positions that count, and the kernels that compute l, c, s.

    `stem` is the kernel. `has_map` is False if some windows are left out. `walk` returns the workgroups, `maps` is the NumPy
    twin, and `columns` returns the number of columns of windows that count for a plane width.
    """

    side: int
    stem: str
    has_map: bool
    walk: Callable[[KernelShape, PlanePair], WindowWalk]
    columns: Callable[[int], int]
    maps: Callable[[FloatPlane, FloatPlane], LcsMaps]

    def count(self, width: int, height: int) -> int:
        """Return the number of windows that count in a plane."""
        return self.columns(width) * (height - self.side + 1)


GAUSSIAN11 = Windows(len(GAUSSIAN), "ssim", True, WindowWalk.over, lambda width: width - MARGIN, lcs_maps)
UNIFORM8 = Windows(UNIFORM, "ssim_uniform", True, WindowWalk.uniform, lambda width: width - UNIFORM + 1, uniform_maps)
ESTIMATE = Windows(
    UNIFORM, "ssim_estimate", False, WindowWalk.estimate, lambda width: len(estimate_columns(width)), estimate_maps
)


def choose_windows(feature: str, options: FloatSsimOptions) -> Windows:
    """Return the windows that the options select. Raises OptionError for contradictory options."""
    if options["window"] == "gaussian11":
        if options["estimate"]:
            raise OptionError(f"{feature}: estimate=true is for window=uniform8; the Gaussian window has no estimate")
        return GAUSSIAN11
    if options["precision"] == Precision.FAST.value:
        raise OptionError(f"{feature}: precision=fast is for window=gaussian11; window=uniform8 is fast, and loses no digits")
    return ESTIMATE if options["estimate"] else UNIFORM8
