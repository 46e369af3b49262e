"""`ssim.comp`: the sums of each workgroup against sums of the twin's maps over the same windows."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.features.float_ssim import GAUSSIAN11
from vkssim.features.planes import MARGIN, KernelShape
from vkssim.host.device import Device
from vkssim.shaders.interface import Precision
from vkssim.types import FrameFormat

from ..support.geometry import columns_of_a_group
from ..support.pictures import texture
from ..support.tolerances import WINDOW_EXACT, WINDOW_FAST
from .harness import FORMATS
from .windows import Walked, check_planes, sums, textures

SSIM = Walked("ssim", GAUSSIAN11)
SIZES = [(11, 11), (12, 40), (33, 27), (251, 90), (177, 179), (700, 13)]

TOLERANCES = {Precision.EXACT: WINDOW_EXACT, Precision.FAST: WINDOW_FAST}


def _check(device: Device, shape: KernelShape, format_name: str, width: int, height: int) -> None:
    check_planes(TOLERANCES[shape.precision], device, shape, SSIM, *textures(format_name, width, height))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(device: Device, kernel_build: KernelShape, width: int, height: int) -> None:
    _check(device, kernel_build, "float32", width, height)


@pytest.mark.parametrize("beside", [-1, 0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_columns_where_a_workgroup_begins(device: Device, kernel_build: KernelShape, groups: int, beside: int) -> None:
    width = groups * columns_of_a_group("windows", kernel_build) + beside + MARGIN
    _check(device, kernel_build, "uint8", width, 30)


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format(device: Device, kernel_build: KernelShape, format_name: str) -> None:
    _check(device, kernel_build, format_name, 141, 47)


@pytest.mark.parametrize("format_name", FORMATS)
def test_identical_planes_lack_nothing(device: Device, kernel_build: KernelShape, format_name: str) -> None:
    """Every sum is exactly 0, whatever the driver's division and square root do in the last place."""
    dtype, peak = FORMATS[format_name]
    plane = (texture(40, 61) * peak).astype(dtype)
    frame = FrameFormat.of_array(61, 40, dtype, peak)
    assert not sums(device, kernel_build, SSIM, frame, np.stack([plane, plane])[None]).any()
