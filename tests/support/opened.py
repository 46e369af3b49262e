"""Devices as the tests open them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from vkssim.host.device import Device
from vkssim.host.devices import choose_device, list_devices
from vkssim.host.errors import DeviceError
from vkssim.host.instance import Instance


@contextmanager
def opened_device(instance: Instance) -> Iterator[Device]:
    """Open the device that the tests run on, and check at the end that nothing is left on it.

    Fails the test if there is none: a test that skips itself proves nothing.
    """
    try:
        info = choose_device(list_devices(instance))
    except DeviceError as error:
        pytest.fail(f"the tests need a Vulkan device: {error}", pytrace=False)
    with Device(info) as device:
        yield device
        assert not +device.live_objects, f"objects outlived their tests: {dict(+device.live_objects)}"
