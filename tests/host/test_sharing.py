"""Test the handles for another API of the same GPU, as far as a software device has them; semaphores need a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from vkssim.host import device as device_module
from vkssim.host.device import SHARING_EXTENSIONS, Device
from vkssim.host.errors import UnsuitableDeviceError
from vkssim.host.memory import Buffer, MemoryClass
from vkssim.host.sharing import memory_descriptor


@pytest.fixture
def sharing(device: Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device opened for sharing by those extensions that the driver has; memory's are enough for memory."""
    monkeypatch.setattr(device_module, "SHARING_EXTENSIONS", tuple(device.info.extensions.intersection(SHARING_EXTENSIONS)))
    with Device(device.info, sharing=True) as opened:
        yield opened
        assert not +opened.live_objects


def test_memory_is_exported(sharing: Device) -> None:
    """Each call gives a file descriptor of its own, which outlives the buffer; the memory is all of the buffer."""
    with ExitStack() as stack:
        buffer = Buffer(sharing, stack, 1000, MemoryClass.SHARED)
        assert buffer.memory_size >= buffer.size == 1000
        assert buffer.mapped is None
        descriptors = [memory_descriptor(sharing, buffer) for _ in range(2)]
    assert len(set(descriptors)) == 2
    for descriptor in descriptors:
        assert descriptor > 2
        os.fstat(descriptor)  # raises where nothing is open under that number
        os.close(descriptor)


@pytest.mark.parametrize("missing", SHARING_EXTENSIONS)
def test_what_the_driver_lacks_is_named(device: Device, missing: str) -> None:
    """It is needed for sharing alone."""
    info = replace(device.info, extensions=frozenset(SHARING_EXTENSIONS) - {missing})
    with pytest.raises(UnsuitableDeviceError, match=f"cannot share memory: it lacks {missing}$"):
        Device(info, sharing=True)
    with Device(info):
        pass
