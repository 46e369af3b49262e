"""Let CUDA write the frames that Vulkan scores: the surfaces of NVIDIA's video decoder are copied on the GPU.

Everything is done in CUDA's primary context, which FFmpeg's decoder uses as well, and on its default stream. A copy therefore
comes after the decoder's own work on a surface, and before the decoder writes to that surface again.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import Any

from ..errors import DeviceError, DeviceMemoryError, UnsuitableDeviceError
from ..frames.picture.surfaces import Rows
from ..host.device import Device
from ..host.memory import Buffer, MemoryClass
from ..host.sharing import Timeline, memory_descriptor
from .cuda_copy import DeviceCopy

_DEFAULT_STREAM = 0


class Cuda:
    """A GPU as CUDA knows it, by its UUID, or the first one. Each failure raises DeviceError with the name of CUDA's error."""

    def __init__(self, device: uuid.UUID | None) -> None:
        try:
            from cuda.bindings import driver
        except ImportError as error:
            raise UnsuitableDeviceError("the package cuda-bindings is not installed: `pip install vkssim[cuda]`") from error
        self._driver = driver
        try:
            self._call("cuInit", 0)
        except RuntimeError as error:  # of cuda-bindings, which finds no library of the driver
            raise UnsuitableDeviceError(f"there is no CUDA driver: {error}") from error
        self.ordinal, handle = self._found(device)
        # FFmpeg refuses a primary context whose threads wait in another way than its own do.
        self._call("cuDevicePrimaryCtxSetFlags", handle, int(driver.CUctx_flags.CU_CTX_SCHED_BLOCKING_SYNC))
        self._context = self._call("cuDevicePrimaryCtxRetain", handle)
        try:
            self._device_copy = DeviceCopy(int(self._context))
        except OSError as error:
            raise UnsuitableDeviceError(f"CUDA's library cannot be loaded: {error}") from error

    def _found(self, wanted: uuid.UUID | None) -> tuple[int, Any]:
        for ordinal in range(self._call("cuDeviceGetCount")):
            handle = self._call("cuDeviceGet", ordinal)
            if wanted is None or bytes(self._call("cuDeviceGetUuid", handle).bytes)[:16] == wanted.bytes:
                return ordinal, handle
        raise UnsuitableDeviceError(f"CUDA knows no device {wanted or 'at all'}")

    def _call(self, name: str, *arguments: Any) -> Any:
        code, *results = getattr(self._driver, name)(*arguments)
        self._check(name, int(code))
        return results[0] if results else None

    def _check(self, name: str, code: int) -> None:
        if code != 0:
            error = self._driver.CUresult(code)
            kind = DeviceMemoryError if error == self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY else DeviceError
            raise kind(f"{name} failed: {error.name}")

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the GPU's context that of the calling thread."""
        self._call("cuCtxPushCurrent", self._context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent")

    # -- copies -------------------------------------------------------------------------------------------------------

    def copy(self, source: Rows, target: Rows, row_bytes: int, rows: int) -> None:
        """Copy rows; see `SurfaceCopy`."""
        if source.on_device and target.on_device:
            self._check(*self._device_copy.copy(source, target, row_bytes, rows))
            return
        region = self._driver.CUDA_MEMCPY2D()
        kinds = self._driver.CUmemorytype
        if source.on_device:
            region.srcMemoryType, region.srcDevice = kinds.CU_MEMORYTYPE_DEVICE, source.address
        else:
            region.srcMemoryType, region.srcHost = kinds.CU_MEMORYTYPE_HOST, source.address
        if target.on_device:
            region.dstMemoryType, region.dstDevice = kinds.CU_MEMORYTYPE_DEVICE, target.address
        else:
            region.dstMemoryType, region.dstHost = kinds.CU_MEMORYTYPE_HOST, target.address
        region.srcPitch, region.dstPitch = source.pitch, target.pitch
        region.WidthInBytes, region.Height = row_bytes, rows
        with self.current():
            self._call("cuMemcpy2D", region)

    # -- sharing ------------------------------------------------------------------------------------------------------

    def import_memory(self, descriptor: int, size: int) -> tuple[Any, int]:
        """Import memory of Vulkan's by its file descriptor, which this takes over, and return it with its address."""
        handle = self._driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
        handle.type = self._driver.CUexternalMemoryHandleType.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
        handle.handle.fd = descriptor
        handle.size = size
        handle.flags = self._driver.CUDA_EXTERNAL_MEMORY_DEDICATED
        whole = self._driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC()
        whole.offset, whole.size, whole.flags = 0, size, 0
        with _taken_over(descriptor) as guard, self.current():
            memory = self._call("cuImportExternalMemory", handle)
            guard.pop_all()
            guard.callback(self._release, ("cuDestroyExternalMemory", memory))
            address = int(self._call("cuExternalMemoryGetMappedBuffer", memory, whole))
            guard.pop_all()
            return memory, address

    def release_memory(self, memory: Any, address: int) -> None:
        """Release memory of `import_memory`, after all copies to it."""
        self._release(("cuMemFree", address), ("cuDestroyExternalMemory", memory))

    def import_timeline(self, descriptor: int) -> Any:
        """Import a timeline semaphore of Vulkan's by its file descriptor, which this takes over, and return it."""
        handle = self._driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
        handle.type = self._driver.CUexternalSemaphoreHandleType.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
        handle.handle.fd = descriptor
        handle.flags = 0
        with _taken_over(descriptor) as guard, self.current():
            semaphore = self._call("cuImportExternalSemaphore", handle)
            guard.pop_all()
            return semaphore

    def release_timeline(self, semaphore: Any) -> None:
        """Release a semaphore of `import_timeline`."""
        self._release(("cuDestroyExternalSemaphore", semaphore))

    def _release(self, *calls: tuple[str, Any]) -> None:
        """Make calls that release something, after all copies.

        A failure of CUDA's makes every later call fail as well. So no error is raised here, which would take the place of the
        first one, and of the scores that the first one has with it.
        """
        with suppress(DeviceError), self.current():
            for name, argument in (("cuStreamSynchronize", _DEFAULT_STREAM), *calls):
                with suppress(DeviceError):
                    self._call(name, argument)

    def signal(self, semaphore: Any, value: int) -> None:
        """Set a semaphore to a value when all copies that were asked for before are done."""
        parameters = self._driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS()
        parameters.params.fence.value = value
        with self.current():
            self._call("cuSignalExternalSemaphoresAsync", [semaphore], [parameters], 1, _DEFAULT_STREAM)


def _taken_over(descriptor: int) -> ExitStack:
    """Return a stack that closes a file descriptor. CUDA owns a descriptor only when it has imported it."""
    stack = ExitStack()
    stack.callback(os.close, descriptor)
    return stack


_opening = threading.Lock()


def cuda_of(device: uuid.UUID | None) -> Cuda:
    """Return CUDA's side of a Vulkan device, by its UUID, or of CUDA's first device. It stays open until the process ends.

    Raises DeviceError where CUDA does not know the device, or the package cuda-bindings is missing.
    """
    with _opening:
        return _cuda_of(device)


@cache
def _cuda_of(device: uuid.UUID | None) -> Cuda:
    return Cuda(device)


class CudaInputs:
    """The input buffers of a Vulkan device that CUDA writes; see `host.sharing.ExternalInputs`."""

    memory_class = MemoryClass.SHARED

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        self._cuda = cuda_of(device.info.uuid)
        timeline = Timeline(device, stack)
        self.timeline = timeline.handle
        self._semaphore = self._cuda.import_timeline(timeline.descriptor)
        stack.callback(self._cuda.release_timeline, self._semaphore)
        self._number = 0

    def address(self, stack: ExitStack, buffer: Buffer) -> int:
        """Return the address of a buffer for CUDA. The stack ends its use."""
        memory, address = self._cuda.import_memory(memory_descriptor(self._device, buffer), buffer.memory_size)
        stack.callback(self._cuda.release_memory, memory, address)
        return address

    def written(self) -> int:
        """Return the number that the timeline gets when all copies that were asked for before are done."""
        self._number += 1
        self._cuda.signal(self._semaphore, self._number)
        return self._number
