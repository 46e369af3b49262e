"""A stand-in for CUDA on a machine without it: its device memory is memory of the host, and its copies are made at once."""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from vkssim.backends import cuda
from vkssim.frames.decode.hardware import CodedVideo
from vkssim.host import device as host_device
from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.host.memory import Buffer, MemoryClass
from vkssim.types import Rows

_WAITING = 300 * 10**9  # ns; lavapipe compiles a kernel when it first runs, which takes seconds on a busy machine


class Surface:
    """An av.VideoFrame that says that it lies in the memory of a GPU."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.format = SimpleNamespace(name="cuda", is_rgb=False, has_palette=False)
        self.sw_format = frame.format
        self.planes = [SimpleNamespace(buffer_ptr=plane.buffer_ptr, line_size=plane.line_size) for plane in frame.planes]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)


class HostCopies:
    """Copy as `SurfaceCopy` says, and count the copies by where they come from and go to."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []

    def __call__(self, source: Rows, target: Rows, row_bytes: int, rows: int) -> None:
        self.copy(source, target, row_bytes, rows)

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


class HostTimeline:
    """Stand in for `SharedTimeline`: the host signals the semaphore and waits for it."""

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0)
        self.handle = device.create(stack, "Semaphore", vk.VkSemaphoreCreateInfo(pNext=kind))

    def signal(self, number: int, _stream: int = 0) -> None:
        self._call("vkSignalSemaphoreKHR", vk.VkSemaphoreSignalInfo(semaphore=self.handle, value=number))

    def wait(self, number: int, _stream: int = 0) -> None:
        info = vk.VkSemaphoreWaitInfo(pSemaphores=[self.handle], pValues=[number])
        self._call("vkWaitSemaphoresKHR", info, _WAITING)

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function that the instance, which is of Vulkan 1.1, has under the name of its extension."""
        vk.load(self._device.handle, name)(self._device.handle, *arguments)


class HostCuda:
    """Stand in for `Cuda`: the buffers that it shares with Vulkan are mapped."""

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def shared_buffer(self, device: Device, stack: ExitStack, size: int) -> tuple[Buffer, int]:
        buffer = Buffer(device, stack, size, MemoryClass.UPLOAD)
        assert buffer.mapped is not None
        return buffer, int(buffer.mapped.ctypes.data)

    def timeline(self, device: Device, stack: ExitStack) -> HostTimeline:
        return HostTimeline(device, stack)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the host take CUDA's part, on a driver that shares nothing with another API."""
    monkeypatch.setattr(cuda, "cuda_of", lambda _device: HostCuda())
    monkeypatch.setattr(host_device, "SHARING_EXTENSIONS", ("VK_KHR_timeline_semaphore",))
