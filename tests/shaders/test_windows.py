"""`ms_ssim.comp` and `ssim.comp`: the sums of each workgroup against sums of the twin's maps over the same windows."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.features.planes import MARGIN, KernelShape
from vkssim.features.windows import GAUSSIAN11
from vkssim.host.device import Device
from vkssim.shaders.interface import Sums
from vkssim.types import FrameFormat

from ..support.geometry import columns_of_a_group
from ..support.pictures import texture
from ..support.tolerances import WINDOW, WINDOW_EXACT, WINDOW_INTEGER
from .harness import FORMATS
from .windows import Walked, check_planes, sums, textures

KERNELS = [Walked("ms_ssim", GAUSSIAN11, ("l", "c", "s")), Walked("ssim", GAUSSIAN11)]
SIZES = [(11, 11), (12, 40), (33, 27), (251, 90), (177, 179), (700, 13)]

TOLERANCES = {Sums.PLAIN: WINDOW, Sums.INTEGER: WINDOW_INTEGER, Sums.EXACT: WINDOW_EXACT}

kernels = pytest.mark.parametrize("tested", KERNELS, ids=lambda tested: tested.stem)


def _check(device: Device, shape: KernelShape, tested: Walked, format_name: str, width: int, height: int) -> None:
    check_planes(TOLERANCES[shape.sums], device, shape, tested, *textures(format_name, width, height))


@kernels
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(device: Device, kernel_build: KernelShape, tested: Walked, width: int, height: int) -> None:
    _check(device, kernel_build, tested, "float32", width, height)


@kernels
@pytest.mark.parametrize("beside", [-1, 0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_columns_where_a_workgroup_begins(
    device: Device, kernel_build: KernelShape, tested: Walked, groups: int, beside: int
) -> None:
    width = groups * columns_of_a_group("windows", kernel_build) + beside + MARGIN
    _check(device, kernel_build, tested, "uint8", width, 30)


@kernels
@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format(device: Device, kernel_build: KernelShape, tested: Walked, format_name: str) -> None:
    _check(device, kernel_build, tested, format_name, 141, 47)


@kernels
@pytest.mark.parametrize("format_name", FORMATS)
def test_identical_planes_lack_nothing(device: Device, kernel_build: KernelShape, tested: Walked, format_name: str) -> None:
    """Every sum is exactly 0, whatever the driver's division and square root do in the last place."""
    dtype, peak = FORMATS[format_name]
    plane = (texture(40, 61) * peak).astype(dtype)
    frame = FrameFormat.of_array(61, 40, dtype, peak)
    assert not sums(device, kernel_build, tested, frame, np.stack([plane, plane])[None]).any()
