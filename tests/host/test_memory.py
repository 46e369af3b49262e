"""Which memory a buffer gets, and its use to the host and to another API of the same GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vkssim.host import device as device_module
from vkssim.host import memory
from vkssim.host.api import vk
from vkssim.host.device import SHARING_EXTENSIONS, Device
from vkssim.host.devices import DeviceKind
from vkssim.host.errors import DeviceMemoryError, UnsuitableDeviceError
from vkssim.host.memory import Buffer, MemoryClass
from vkssim.host.sharing import memory_descriptor

from .made_up import device_info

LOCAL, VISIBLE, COHERENT, CACHED = 1, 2, 4, 8  # VkMemoryPropertyFlagBits
DISCRETE = (0, LOCAL, VISIBLE | COHERENT, VISIBLE | COHERENT | CACHED, LOCAL | VISIBLE | COHERENT)  # as NVIDIA lists them
UNIFIED = (LOCAL | VISIBLE | COHERENT | CACHED,)  # as lavapipe
ANY = 0xFFFF


def _device(types: tuple[int, ...]) -> Any:
    """As much of a device as the choice of memory looks at."""
    properties = SimpleNamespace(
        memoryTypeCount=len(types), memoryTypes=[SimpleNamespace(propertyFlags=flags) for flags in types]
    )
    return SimpleNamespace(unified=types == UNIFIED, memory_properties=properties, info=device_info())


def _lavapipe() -> Any:
    return SimpleNamespace(info=device_info(name="llvmpipe", kind=DeviceKind.CPU, max_storage_bytes=1 << 27))


@pytest.mark.parametrize(
    ("types", "allowed", "memory_class", "index"),
    [
        (DISCRETE, ANY, MemoryClass.WORK, 1),  # on the device
        (DISCRETE, ANY, MemoryClass.UPLOAD, 2),  # off it
        (DISCRETE, ANY, MemoryClass.READBACK, 3),  # cached: uncached reads cross the bus one by one
        (DISCRETE, 0b11101, MemoryClass.WORK, 4),
        (DISCRETE, 0b00101, MemoryClass.WORK, 0),
        (DISCRETE[:3], ANY, MemoryClass.READBACK, 2),  # nothing is cached
        *((UNIFIED, ANY, memory_class, 0) for memory_class in MemoryClass),
    ],
)
def test_the_type_of_a_class(types: tuple[int, ...], allowed: int, memory_class: MemoryClass, index: int) -> None:
    assert memory._memory_type(_device(types), allowed, memory_class) == (index, types[index])


def test_no_fitting_memory_is_an_error() -> None:
    with pytest.raises(DeviceMemoryError, match="has no memory for a buffer"):
        memory._memory_type(_device((LOCAL,)), ANY, MemoryClass.READBACK)


def test_sizes_for_which_lavapipe_would_compile_again() -> None:
    """A size becomes neither a power of two nor one without bits 8 to 15; others, the largest, and other devices' stay."""
    for size in (16, 256, 1 << 15, 1 << 16, 3 << 16, (1 << 16) + 240):
        created = memory._created_size(_lavapipe(), size)
        assert size < created < size + 2048
        assert created & (created - 1)
        assert created & 0xFF00
        assert created % 16 == size % 16
        assert memory._created_size(_device(DISCRETE), size) == size
    for size in (1536, 2073600, _lavapipe().info.max_storage_bytes):
        assert memory._created_size(_lavapipe(), size) == size


# -- on the device ----------------------------------------------------------------------------------------------------


def test_only_the_hosts_memory_is_mapped(device: Device) -> None:
    with ExitStack() as stack:
        mapped = {memory_class: Buffer(device, stack, 64, memory_class).mapped for memory_class in MemoryClass}
        assert mapped[MemoryClass.WORK] is None
        for memory_class in (MemoryClass.UPLOAD, MemoryClass.READBACK):
            view = mapped[memory_class]
            assert view is not None
            view[:] = np.arange(64)
            assert view.tolist() == list(range(64))


def test_what_the_device_cannot_bind_is_refused(device: Device) -> None:
    size = device.info.max_storage_bytes + 1
    with ExitStack() as stack, pytest.raises(DeviceMemoryError, match=f"{size} bytes is more than the {size - 1}"):
        Buffer(device, stack, size, MemoryClass.WORK)


def test_incoherent_memory_is_refreshed(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """No driver here has such memory: the choice is made to say so, and the call that follows is watched."""
    chosen = memory._memory_type
    monkeypatch.setattr(memory, "_memory_type", lambda *arguments: (chosen(*arguments)[0], VISIBLE | CACHED))
    refreshed: list[Any] = []
    monkeypatch.setattr(vk, "vkInvalidateMappedMemoryRanges", lambda *arguments: refreshed.append(arguments))
    with ExitStack() as stack:
        Buffer(device, stack, 64, MemoryClass.READBACK).refresh()
    assert len(refreshed) == 1


# -- shared with another API; semaphores need a GPU -------------------------------------------------------------------


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
