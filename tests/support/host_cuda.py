"""Stand in for CUDA on a machine without it: its device memory is memory of the host, and its copies are made at once."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from vkssim.backends import vulkan
from vkssim.frames.decode.hardware import CodedVideo
from vkssim.frames.picture.surfaces import Rows
from vkssim.host import device as host_device
from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.host.memory import Buffer, MemoryClass


class Surface:
    """An av.VideoFrame that says that it lies in the memory of a GPU."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.format = SimpleNamespace(name="cuda")
        self.sw_format = frame.format
        self.planes = [SimpleNamespace(buffer_ptr=plane.buffer_ptr, line_size=plane.line_size) for plane in frame.planes]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)


class HostCopies:
    """Copy as `SurfaceCopy` says, and count the copies by where they come from and go to."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []

    def copy(self, source: Rows, target: Rows, row_bytes: int, rows: int) -> None:
        assert row_bytes <= source.pitch
        assert row_bytes <= target.pitch
        for row in range(rows):
            ctypes.memmove(target.address + row * target.pitch, source.address + row * source.pitch, row_bytes)
        self.made.append((_place(source), _place(target)))


@dataclass(frozen=True)
class Gpu:
    """The driver of a GPU that decodes everything, and whose frames stay in its memory."""

    surfaces: HostCopies
    device: str = "0"

    def refuses(self, _video: CodedVideo) -> None:
        return None


def _place(rows: Rows) -> str:
    return "device" if rows.on_device else "host"


class HostInputs:
    """Stand in for `CudaInputs`: the buffers are mapped, and the host counts the timeline up."""

    memory_class = MemoryClass.UPLOAD

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0)
        handle = vk.vkCreateSemaphore(device.handle, vk.VkSemaphoreCreateInfo(pNext=kind), None)
        self.timeline = device.own(stack, "semaphore", handle, vk.vkDestroySemaphore)
        self._signal = vk.load(device.handle, "vkSignalSemaphoreKHR")  # the instance is of Vulkan 1.1, which lacks the core's
        self._number = 0

    def address(self, _stack: ExitStack, buffer: Buffer) -> int:
        assert buffer.mapped is not None
        return int(buffer.mapped.ctypes.data)

    def written(self) -> int:
        self._number += 1
        self.signal(self._number)
        return self._number

    def signal(self, number: int) -> None:
        self._signal(self._device.handle, vk.VkSemaphoreSignalInfo(semaphore=self.timeline, value=number))


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have backends take their external inputs from the host, on a driver that shares nothing with another API."""
    monkeypatch.setattr(vulkan, "CudaInputs", HostInputs)
    monkeypatch.setattr(host_device, "SHARING_EXTENSIONS", ("VK_KHR_timeline_semaphore",))
