"""`ms_ssim_decimate.comp` against its twin."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.features.planes import KernelShape, PlanePair, decimate
from vkssim.host.device import Device
from vkssim.reference.samples import ingest
from vkssim.reference.ssim import decimate as twin
from vkssim.shaders.interface import Precision

from ..support.differences import check_array
from ..support.geometry import columns_of_a_group
from ..support.pictures import Picture
from ..support.tolerances import DECIMATE_EXACT, DECIMATE_FAST, Tolerance
from .harness import FORMATS, make_planes, run_planes

SIZES = [(22, 22), (23, 25), (24, 31), (177, 50), (176, 33), (333, 29), (40, 217)]


def _run(device: Device, shape: KernelShape, format_name: str, width: int, height: int) -> tuple[Picture, Picture]:
    """What the shader makes of noise, and what the twin makes of it."""
    frame, planes = make_planes(format_name, width, height)
    source = PlanePair.raw(frame)
    target = PlanePair.floats("next", (width + 1) // 2, (height + 1) // 2)
    got = run_planes(device, [decimate(shape, "decimate", source, target)], source, target, planes)
    expected = np.stack([[twin(ingest(plane, frame.factor)) for plane in pair] for pair in planes])
    return got, expected


def _tolerance(shape: KernelShape) -> Tolerance:
    return DECIMATE_EXACT if shape.precision is Precision.EXACT else DECIMATE_FAST


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size(device: Device, kernel_build: KernelShape, width: int, height: int) -> None:
    check_array(_tolerance(kernel_build), f"{width}x{height}", *_run(device, kernel_build, "float32", width, height))


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_columns_where_a_workgroup_begins(device: Device, kernel_build: KernelShape, beside: int) -> None:
    width = 2 * (columns_of_a_group("decimate", kernel_build) + beside)
    check_array(_tolerance(kernel_build), f"{width}x40", *_run(device, kernel_build, "uint8", width, 40))


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format(device: Device, kernel_build: KernelShape, format_name: str) -> None:
    """In frames so wide that some workgroups touch neither border: the staged shape has another way to read for these."""
    width = 2 * (2 * columns_of_a_group("decimate", kernel_build) + 10) - 1
    check_array(_tolerance(kernel_build), format_name, *_run(device, kernel_build, format_name, width, 45))


def test_a_flat_plane_keeps_its_value(device: Device, kernel_build: KernelShape) -> None:
    """The border's mirrored taps fold onto the samples inside: at each edge the weights still sum to the same."""
    frame, planes = make_planes("float32", 61, 43)
    planes[:] = 100.0
    source, target = PlanePair.raw(frame), PlanePair.floats("next", 31, 22)
    got = run_planes(device, [decimate(kernel_build, "decimate", source, target)], source, target, planes)
    check_array(_tolerance(kernel_build), "flat", got, np.full_like(got, got[0, 0, 11, 15]))
