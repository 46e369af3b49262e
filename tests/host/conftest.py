"""Tests of the host count what lives on a device, so theirs is none that other tests keep kernels on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vkssim.host.device import Device
from vkssim.host.devices import choose_device, list_devices
from vkssim.host.errors import DeviceError
from vkssim.host.instance import Instance


@pytest.fixture(scope="module")
def device(instance: Instance) -> Iterator[Device]:
    """Return a device of the module's own. Its absence is a failure, never a reason to skip."""
    try:
        info = choose_device(list_devices(instance))
    except DeviceError as error:
        pytest.fail(f"the tests need a Vulkan device: {error}", pytrace=False)
    with Device(info) as opened:
        yield opened
        assert not +opened.live_objects, f"objects outlived their tests: {dict(+opened.live_objects)}"
