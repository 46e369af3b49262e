"""`ssim_uniform.comp` and `ssim_estimate.comp`: sums of each workgroup, and maps, against the twin's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.features.float_ssim import ESTIMATE, UNIFORM8
from vkssim.features.planes import KernelShape, PlanePair, partials, window
from vkssim.host.device import Device
from vkssim.host.plan import Role
from vkssim.reference.samples import ingest
from vkssim.reference.uniform import uniform_maps
from vkssim.types import FrameFormat

from ..support.differences import check_array
from ..support.pictures import Picture, texture
from ..support.tolerances import UNIFORM, UNIFORM_MAP
from .harness import FORMATS, pack, run
from .windows import Walked, check_planes, sums, textures

Floats = npt.NDArray[np.float32]

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


def _map(device: Device, shape: KernelShape, frame: FrameFormat, planes: Picture) -> tuple[Floats, Floats]:
    """What ssim_uniform leaves with a map: (frames, sums), and (frames, H-7, W-7) of the map."""
    source = PlanePair.raw(frame)
    walk = UNIFORM8.walk(shape, source)
    sums_count, rows, columns = 4 * walk.count, frame.height - 7, frame.width - 7
    target = partials("partials", sums_count + rows * columns)
    dispatch = window(shape, "ssim_uniform", source, walk, target, first_window=sums_count)
    data = run(device, [dispatch], source.spec(Role.INPUT), target, pack(source, planes)).view(np.float32)
    return data[:, :sums_count], data[:, sums_count : sums_count + rows * columns].reshape(len(planes), rows, columns)


@pytest.mark.parametrize(("width", "height"), [*SIZES, (263, 40), (519, 20)])
@pytest.mark.parametrize("format_name", ["float32", "uint8"])
def test_a_map_has_every_window(device: Device, kernel_shape: KernelShape, format_name: str, width: int, height: int) -> None:
    """Against the twin's maps, and behind the sums that ssim_uniform leaves."""
    frame, planes = textures(format_name, width, height)
    left, maps = _map(device, kernel_shape, frame, planes)
    expected = []
    for first, second in planes:
        found = uniform_maps(ingest(first, frame.factor), ingest(second, frame.factor))
        expected.append(found.luminance * found.contrast * found.structure)
    check_array(UNIFORM_MAP, f"{format_name} {width}x{height}, {kernel_shape.shape.value}", maps, np.stack(expected))
    alone = sums(device, kernel_shape, KERNELS[0], frame, planes)
    np.testing.assert_allclose(left, alone.reshape(left.shape), rtol=1e-5, atol=1e-6)


def test_a_map_of_identical_planes_is_1_everywhere(device: Device, kernel_shape: KernelShape) -> None:
    frame, planes = textures("uint8", 61, 40)
    planes[:, 1] = planes[:, 0]
    left, maps = _map(device, kernel_shape, frame, planes)
    assert not left.any()
    assert (maps == 1.0).all()
