"""Tests of the host count what lives on a device, so theirs is none that other tests keep kernels on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vkssim.host.device import Device
from vkssim.host.instance import Instance

from ..support.devices.compiled import opened_device


@pytest.fixture(scope="module")
def device(instance: Instance) -> Iterator[Device]:
    """Return a device of the module's own. Its absence is a failure, never a reason to skip."""
    with opened_device(instance) as opened:
        yield opened
