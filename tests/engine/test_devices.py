"""Which device is the GPU that Ray assigned, on machines that are made up."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from vkssim.errors import NoDeviceError, UnsuitableDeviceError
from vkssim.host.devices import DeviceInfo, DeviceKind

from ..host.made_up import device_info

NVIDIA, INTEL = 0x10DE, 0x8086
SOFTWARE = device_info(4, "llvmpipe", DeviceKind.CPU)


def device_of(devices: list[DeviceInfo], assigned: list[str] | None) -> DeviceInfo:
    from vkssim.engine.ray_worker import device_of as chosen  # here: it imports Ray, in each process that collects the tests

    return chosen(devices, assigned)


def _gpu(index: int, pci: str | None, vendor: int = NVIDIA, **others: Any) -> DeviceInfo:
    return device_info(index, f"GPU at {pci}", vendor_id=vendor, pci=pci, **others)


DEVICES = [
    _gpu(0, "0000:af:00.0"),
    _gpu(1, "0000:3b:00.0"),
    _gpu(2, "10000:01:00.0"),
    _gpu(3, "0000:00:02.0", INTEL),
    SOFTWARE,
]


BY_UUID = [*(_gpu(index, None, uuid=uuid.UUID(int=(index + 2 << 124) + 10)) for index in range(2)), SOFTWARE]
TWICE = [_gpu(0, "0000:3b:00.0"), _gpu(1, "0000:3b:00.0"), _gpu(2, "0000:af:00.0")]  # two drivers offer the first GPU


@pytest.mark.parametrize(
    ("devices", "assigned", "index"),
    [
        (DEVICES, "0", 1),  # by PCI address, and the graphics unit of the CPU is not counted beside NVIDIA's
        (DEVICES, "1", 0),
        (DEVICES, "2", 2),
        ([DEVICES[3], SOFTWARE], "0", 3),
        (BY_UUID, "GPU-30000000-0000-0000-0000-00000000000A", 1),
        (BY_UUID, "GPU-3000", 1),
        (TWICE, "0", 0),
        (TWICE, "1", 2),
        (DEVICES, None, 4),
    ],
)
def test_the_device_that_is_meant(devices: list[DeviceInfo], assigned: str | None, index: int) -> None:
    assert device_of(devices, None if assigned is None else [assigned]).index == index


@pytest.mark.parametrize(
    ("devices", "assigned", "words"),
    [
        (DEVICES, ["3"], "Ray assigned GPU 3, which fits 0"),
        (DEVICES, [], "Ray assigned GPU none"),
        (DEVICES, ["0", "1"], "Ray assigned GPU 0, 1"),
        (DEVICES, ["MIG-5"], "Ray assigned GPU MIG-5"),
        (DEVICES, [f"GPU-{uuid.UUID(int=7)}"], "fits 0 of"),
        (DEVICES, ["GPU-0000"], "fits 4 of"),
        ([_gpu(0, None), _gpu(1, "0000:3b:00.0")], ["0"], "fits 0 of"),
        ([SOFTWARE], ["0"], "llvmpipe"),
        ([SOFTWARE], [f"GPU-{SOFTWARE.uuid}"], "fits 0 of"),
        (DEVICES[:4], None, "software is requested, which fits 0"),
        ([], None, "There are: none"),
    ],
)
def test_never_another_device(devices: list[DeviceInfo], assigned: list[str] | None, words: str) -> None:
    with pytest.raises(NoDeviceError, match=words):
        device_of(devices, assigned)


def test_what_a_device_lacks_is_named() -> None:
    with pytest.raises(UnsuitableDeviceError, match="it lacks a compute queue"):
        device_of([_gpu(0, "0000:3b:00.0", lacks=("a compute queue",))], ["0"])
