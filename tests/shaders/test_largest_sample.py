"""`largest_sample.comp` against its twin."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.features.planes import KernelShape, PlanePair, largest_sample
from vkssim.host.device import Device
from vkssim.host.plan import Role
from vkssim.reference.samples import largest_samples
from vkssim.shaders.interface import Shape
from vkssim.types import FrameFormat

from .harness import make_planes, pack, run

SHAPE = KernelShape(Shape.STAGED, 64)


def _largest(device: Device, frame: FrameFormat, planes: np.ndarray) -> np.ndarray:
    source = PlanePair.raw(frame)
    dispatch, target = largest_sample(SHAPE, source, "largest")
    groups = dispatch.groups[0] * dispatch.groups[1]
    found = run(device, [dispatch], source.spec(Role.INPUT), target, pack(source, planes)).view(np.uint32)
    largest: npt.NDArray[np.uint32] = found[:, : 2 * groups].reshape(len(planes), 2, groups).max(axis=2)
    return largest


@pytest.mark.parametrize(("width", "height"), [(11, 11), (33, 12), (128, 32), (129, 33), (251, 65), (577, 40)])
@pytest.mark.parametrize("format_name", ["uint8", "uint16 of 10 bits", "uint16 of 14 bits"])
def test_largest_samples(device: Device, format_name: str, width: int, height: int) -> None:
    """The rows are padded with larger ones, which do not count."""
    frame, planes = make_planes(format_name, width, height, frames=3)
    planes //= 2
    np.testing.assert_array_equal(_largest(device, frame, planes), largest_samples(planes))


@pytest.mark.parametrize("place", [(0, 0), (0, 250), (31, 127), (32, 128), (64, 250), (64, 0)])
@pytest.mark.parametrize("image", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_wherever_it_is(device: Device, image: tuple[int, int], place: tuple[int, int]) -> None:
    planes = np.zeros((2, 2, 65, 251), np.uint16)
    planes[image][place] = 65535
    expected = np.zeros((2, 2))
    expected[image] = 65535
    np.testing.assert_array_equal(_largest(device, FrameFormat.of_bits(251, 65, 10), planes), expected)
