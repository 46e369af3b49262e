"""`ssim_uniform.comp` and `ssim_estimate.comp`: the sums of each workgroup against sums of the twin's maps."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.features.planes import KernelShape, PlanePair
from vkssim.features.windows import ESTIMATE, UNIFORM8
from vkssim.formats import FrameFormat
from vkssim.host.device import Device

from ..pictures import texture
from ..tolerances import UNIFORM
from .harness import FORMATS
from .windows import Walked, check_planes, sums, textures

KERNELS = [Walked("ssim_uniform", UNIFORM8), Walked("ssim_estimate", ESTIMATE)]
SIZES = [(8, 8), (31, 9), (32, 10), (39, 8), (40, 15), (177, 179), (700, 13)]
FLAT = {
    "uint8": lambda noise: np.round(235 + noise),
    "uint16 of 10 bits": lambda noise: np.round(4 * (235 + noise)),
    "uint16 of 16 bits": lambda noise: np.round(256 * (235 + noise)),
    "float32": lambda noise: 235 + noise,
}
"""Bright pictures of little contrast, by format."""

kernels = pytest.mark.parametrize("tested", KERNELS, ids=lambda tested: tested.stem)


def _check(device: Device, shape: KernelShape, tested: Walked, format_name: str, width: int, height: int) -> None:
    check_planes(UNIFORM, device, shape, tested, *textures(format_name, width, height))


@kernels
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(device: Device, kernel_shape: KernelShape, tested: Walked, width: int, height: int) -> None:
    """Also those where a fragment ends within a window, and the last one has no window or one."""
    _check(device, kernel_shape, tested, "float32", width, height)


@kernels
@pytest.mark.parametrize("beside", [0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_columns_where_a_workgroup_begins(
    device: Device, kernel_shape: KernelShape, tested: Walked, groups: int, beside: int
) -> None:
    def groups_across(width: int) -> int:
        return tested.windows.walk(kernel_shape, PlanePair.floats("planes", width, 30)).groups[0]

    width = max(width for width in range(8, 800) if groups_across(width) == groups) + beside
    assert groups_across(width) == groups + beside
    _check(device, kernel_shape, tested, "uint8", width, 30)


@kernels
@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format(device: Device, kernel_shape: KernelShape, tested: Walked, format_name: str) -> None:
    _check(device, kernel_shape, tested, format_name, 141, 47)


@kernels
@pytest.mark.parametrize("format_name", FLAT)
def test_bright_and_nearly_flat(device: Device, kernel_shape: KernelShape, tested: Walked, format_name: str) -> None:
    """No digit is lost where the squares are large and the variances are not: the tolerance is that of all pictures."""
    noise = np.random.default_rng(0).normal(0, [[[[0.3]], [[1.0]]]], (1, 2, 47, 141))
    dtype, peak = FORMATS[format_name]
    planes = FLAT[format_name](noise).astype(dtype)
    check_planes(UNIFORM, device, kernel_shape, tested, FrameFormat.of_array(141, 47, dtype, peak), planes)


@kernels
@pytest.mark.parametrize("format_name", FORMATS)
def test_identical_planes_lack_nothing(device: Device, kernel_shape: KernelShape, tested: Walked, format_name: str) -> None:
    """Every sum is exactly 0."""
    dtype, peak = FORMATS[format_name]
    plane = (texture(40, 61) * peak).astype(dtype)
    frame = FrameFormat.of_array(61, 40, dtype, peak)
    assert not sums(device, kernel_shape, tested, frame, np.stack([plane, plane])[None]).any()


@kernels
def test_swapped_planes_give_the_same_bits(device: Device, kernel_shape: KernelShape, tested: Walked) -> None:
    frame, planes = textures("float32", 141, 47)
    np.testing.assert_array_equal(
        sums(device, kernel_shape, tested, frame, planes[:, ::-1]), sums(device, kernel_shape, tested, frame, planes)
    )


@pytest.mark.parametrize("picture", ["reference", "distorted"])
def test_fragments_do_not_see_each_other(device: Device, kernel_shape: KernelShape, picture: str) -> None:
    """Each fragment's column 31 is in no window that counts: what stands there changes no bit, but for the last fragment."""
    frame, planes = textures("uint8", 150, 30)
    changed = planes.copy()
    changed[:, ("reference", "distorted").index(picture), :, 31:128:32] ^= 0xFF
    tested = KERNELS[1]
    np.testing.assert_array_equal(
        sums(device, kernel_shape, tested, frame, changed), sums(device, kernel_shape, tested, frame, planes)
    )
