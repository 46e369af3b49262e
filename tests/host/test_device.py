"""The logical device."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from vkssim.host.device import Device
from vkssim.host.memory import Buffer, MemoryClass


def test_closing_twice_does_nothing(device: Device) -> None:
    other = Device(device.info)
    other.close()
    other.close()


def test_live_objects_are_counted(device: Device) -> None:
    with ExitStack() as stack:
        Buffer(device, stack, 64, MemoryClass.UPLOAD)
        assert +device.live_objects == {"buffer": 1, "memory": 1}
    assert not +device.live_objects


def test_release_is_in_reverse_order(device: Device) -> None:
    destroyed: list[str] = []
    with ExitStack() as stack:
        for name in ("first", "second"):
            device.own(stack, "made up", name, lambda _device, handle, _allocator: destroyed.append(handle))
        assert device.live_objects["made up"] == 2
    assert destroyed == ["second", "first"]
    assert device.live_objects["made up"] == 0


def test_an_exception_closes_the_device(device: Device) -> None:
    with pytest.raises(RuntimeError, match="half way"), Device(device.info) as other:
        raise RuntimeError("half way")
    other.close()
