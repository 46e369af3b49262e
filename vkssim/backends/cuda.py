"""CUDA: memory and semaphores that Vulkan shares with it, copies of decoded surfaces, and the codecs of the video engines.

No other module calls CUDA. Its functions are those of the package cuda-bindings, with two exceptions, whose structures and
numbers are those of the headers:

- Copies call CUDA's library by ctypes. Those on the GPU keep the interpreter's lock: to release it, as cuda-bindings does, and
  to get it back takes longer than the call itself if several threads decode (docs/adr/0010).
- cuda-bindings lacks the Video Codec SDK, which lists the codecs of the video engines.

Everything is done in CUDA's primary context, which PyTorch and FFmpeg's decoder use as well.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from typing import Any

from ..errors import DeviceError, DeviceMemoryError, UnsuitableDeviceError
from ..host.device import Device
from ..host.memory import Buffer, MemoryClass
from ..host.sharing import Timelines, memory_descriptor, timeline
from ..types import Rows

_LIBRARY, _VIDEO_LIBRARY = "libcuda.so.1", "libnvcuvid.so.1"
_DEFAULT_STREAM = 0
_ON_HOST, _ON_DEVICE = 1, 2  # CUmemorytype

CODECS = {"h264": 4, "hevc": 8, "vp8": 9, "vp9": 10, "av1": 11}
"""The codecs of the video engines, with their numbers in cudaVideoCodec."""

CHROMA = {"400": 0, "420": 1, "422": 2, "444": 3}
"""The subsamplings of chroma, with their numbers in cudaVideoChromaFormat."""


REGION = struct.Struct("@" + 2 * "NNIPQPN" + "NN")
"""CUDA_MEMCPY2D, the rows that are copied. The source, then the target: x, y, kind of memory, address on the host, address on
the device, array, pitch. Then the bytes of each row, and the number of rows."""


class Capabilities(ctypes.Structure):
    """CUVIDDECODECAPS: the caller fills in the first three fields, and the driver its answer about a codec in the others."""

    _fields_ = (
        ("codec", ctypes.c_int),
        ("chroma", ctypes.c_int),
        ("bits_beyond_8", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 3),
        ("is_supported", ctypes.c_ubyte),
        ("engines", ctypes.c_ubyte),
        ("output_formats", ctypes.c_ushort),
        ("most_width", ctypes.c_uint),
        ("most_height", ctypes.c_uint),
        ("most_macroblocks", ctypes.c_uint),
        ("least_width", ctypes.c_ushort),
        ("least_height", ctypes.c_ushort),
        ("has_histogram", ctypes.c_ubyte),
        ("histogram_bits", ctypes.c_ubyte),
        ("most_bins", ctypes.c_ushort),
        ("reserved_too", ctypes.c_uint * 10),
    )


class Cuda:
    """CUDA's side of a GPU, by its UUID, or of the first one. Each failure raises DeviceError with the name of CUDA's error.

    With `for_decoder`, the context gets the flags that FFmpeg's decoder requires: a thread that waits for the GPU sleeps.
    """

    def __init__(self, device: uuid.UUID | None, *, for_decoder: bool = False) -> None:
        try:
            from cuda.bindings import driver
        except ImportError as error:
            raise UnsuitableDeviceError("the package cuda-bindings is not installed: `pip install vkssim[cuda]`") from error
        self.driver = driver
        try:
            self.call("cuInit", 0)
        except RuntimeError as error:  # of cuda-bindings, which finds no library of the driver
            raise UnsuitableDeviceError(f"there is no CUDA driver: {error}") from error
        self.ordinal, handle = self._found(device)
        if for_decoder:
            self.call("cuDevicePrimaryCtxSetFlags", handle, int(driver.CUctx_flags.CU_CTX_SCHED_BLOCKING_SYNC))
        self._context = self.call("cuDevicePrimaryCtxRetain", handle)
        try:
            self._locked, self._unlocked = ctypes.PyDLL(_LIBRARY), ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise UnsuitableDeviceError(f"CUDA's library cannot be loaded: {error}") from error
        self._pointer = ctypes.c_void_p(int(self._context))
        self._popped = ctypes.byref(ctypes.c_void_p())  # where CUDA writes the context that a thread gives back

    def _found(self, wanted: uuid.UUID | None) -> tuple[int, Any]:
        for ordinal in range(self.call("cuDeviceGetCount")):
            handle = self.call("cuDeviceGet", ordinal)
            if wanted is None or bytes(self.call("cuDeviceGetUuid", handle).bytes)[:16] == wanted.bytes:
                return ordinal, handle
        raise UnsuitableDeviceError(f"CUDA knows no device {wanted or 'at all'}")

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the result of a function of CUDA's driver. Raises DeviceError with its name if it fails."""
        code, *results = getattr(self.driver, name)(*arguments)
        self._check(name, int(code))
        return results[0] if results else None

    def _check(self, name: str, code: int) -> None:
        if code != 0:
            error = self.driver.CUresult(code)
            kind = DeviceMemoryError if error == self.driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY else DeviceError
            raise kind(f"{name} failed: {error.name}")

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the GPU's context that of the calling thread."""
        self.call("cuCtxPushCurrent", self._context)
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent")

    # -- copies -------------------------------------------------------------------------------------------------------

    def copy(self, source: Rows, target: Rows, row_bytes: int, rows: int) -> None:
        """Copy rows on the default stream, after the decoder's own work on a surface; see `SurfaceCopy`.

        A copy on the GPU is only queued, and keeps the interpreter's lock.
        """
        region = REGION.pack(*_side(source), *_side(target), row_bytes, rows)
        is_queued = source.on_device and target.on_device
        library = self._locked if is_queued else self._unlocked
        self._check("cuCtxPushCurrent", library.cuCtxPushCurrent_v2(self._pointer))
        code = library.cuMemcpy2DAsync_v2(region, None) if is_queued else library.cuMemcpy2D_v2(region)
        library.cuCtxPopCurrent_v2(self._popped)
        self._check("cuMemcpy2DAsync" if is_queued else "cuMemcpy2D", code)

    # -- sharing ------------------------------------------------------------------------------------------------------

    def shared_buffer(self, device: Device, stack: ExitStack, size: int) -> tuple[Buffer, int]:
        """Return a buffer of a Vulkan device, and its address for CUDA. The stack ends its use, after all copies to it."""
        buffer = Buffer(device, stack, size, MemoryClass.SHARED)
        descriptor = memory_descriptor(device, buffer)
        handle = self.driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
        handle.type = self.driver.CUexternalMemoryHandleType.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
        handle.handle.fd = descriptor
        handle.size = buffer.memory_size
        handle.flags = self.driver.CUDA_EXTERNAL_MEMORY_DEDICATED
        whole = self.driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC()
        whole.offset, whole.size, whole.flags = 0, buffer.memory_size, 0
        with _taken_over(descriptor) as guard, self.current():
            memory = self.call("cuImportExternalMemory", handle)
            guard.pop_all()
            guard.callback(self.release, ("cuDestroyExternalMemory", memory))
            address = int(self.call("cuExternalMemoryGetMappedBuffer", memory, whole))
            guard.pop_all()
        stack.callback(self.release, ("cuMemFree", address), ("cuDestroyExternalMemory", memory))
        return buffer, address

    def timeline(self, device: Device, stack: ExitStack) -> SharedTimeline:
        """Return a new timeline semaphore of a device. The stack destroys it."""
        return SharedTimeline(self, device, stack)

    def release(self, *calls: tuple[str, Any]) -> None:
        """Make calls that release something, after all copies.

        A failure of CUDA's makes every later call fail as well. So no error is raised here, which would take the place of the
        first one, and of the scores that the first one has with it.
        """
        with suppress(DeviceError), self.current():
            for name, argument in (("cuStreamSynchronize", _DEFAULT_STREAM), *calls):
                with suppress(DeviceError):
                    self.call(name, argument)


def _side(rows: Rows) -> tuple[int, ...]:
    """Return the fields of `REGION` that describe its source, or its target."""
    address, pitch, on_device = rows
    return (0, 0, _ON_DEVICE, 0, address, 0, pitch) if on_device else (0, 0, _ON_HOST, address, 0, 0, pitch)


class SharedTimeline:
    """A timeline semaphore that Vulkan and CUDA share; one caller uses it at a time. `handle` is Vulkan's.

    Its methods are called while the GPU's context is current.
    """

    def __init__(self, cuda: Cuda, device: Device, stack: ExitStack) -> None:
        self.handle, descriptor = timeline(device, stack)
        self._call, driver = cuda.call, cuda.driver
        handle = driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
        handle.type = driver.CUexternalSemaphoreHandleType.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
        handle.handle.fd = descriptor
        handle.flags = 0
        with _taken_over(descriptor) as guard, cuda.current():
            self._semaphores = [cuda.call("cuImportExternalSemaphore", handle)]
            guard.pop_all()
        stack.callback(cuda.release, ("cuDestroyExternalSemaphore", self._semaphores[0]))
        # The structs are made once, because the GPU may wait while the host makes them.
        self._signal = [driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS()]
        self._wait = [driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS()]

    def signal(self, number: int, stream: int = _DEFAULT_STREAM) -> None:
        """Set the semaphore to a number when a stream reaches this point."""
        self._signal[0].params.fence.value = number
        self._call("cuSignalExternalSemaphoresAsync", self._semaphores, self._signal, 1, stream)

    def wait(self, number: int, stream: int = _DEFAULT_STREAM) -> None:
        """Make a stream wait until the semaphore has a number."""
        self._wait[0].params.fence.value = number
        self._call("cuWaitExternalSemaphoresAsync", self._semaphores, self._wait, 1, stream)


def _taken_over(descriptor: int) -> ExitStack:
    """Return a stack that closes a file descriptor. CUDA owns a descriptor only when it has imported it."""
    stack = ExitStack()
    stack.callback(os.close, descriptor)
    return stack


_opening = threading.Lock()
_opened: dict[uuid.UUID | None, Cuda] = {}


def cuda_of(device: uuid.UUID | None) -> Cuda:
    """Return CUDA's side of a Vulkan device, by its UUID, or of CUDA's first device. It stays open until the process ends.

    FFmpeg's decoder can use its context. Raises DeviceError if CUDA does not list the device, or the package cuda-bindings is
    missing.
    """
    with _opening:
        if device not in _opened:
            _opened[device] = Cuda(device, for_decoder=True)
        return _opened[device]


_asking = threading.Lock()


def ask(cuda: Cuda, codec: str, chroma: str, bits: int) -> Capabilities | None:
    """Return the driver's answer about a codec; None if it has no library for video. It takes the driver some 0.1 s."""
    with _asking:  # two clips are opened at a time: the second one waits for the first one's answer
        return _ask(cuda, codec, chroma, bits)


@cache
def _ask(cuda: Cuda, codec: str, chroma: str, bits: int) -> Capabilities | None:
    try:
        get_capabilities = ctypes.CDLL(_VIDEO_LIBRARY).cuvidGetDecoderCaps
    except (OSError, AttributeError):
        return None
    asked = Capabilities(codec=CODECS[codec], chroma=CHROMA[chroma], bits_beyond_8=bits - 8)
    with cuda.current():
        return asked if get_capabilities(ctypes.byref(asked)) == 0 else None


class CudaInputs:
    """The input buffers of a Vulkan device that CUDA writes on its default stream.

    `shared` has the arguments of `Executor` for them.
    """

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._cuda = cuda_of(device.info.uuid)
        self._timeline = self._cuda.timeline(device, stack)
        self.shared: dict[str, Any] = {
            "timelines": Timelines(self._timeline.handle),
            "shared_buffer": partial(self._cuda.shared_buffer, device),
        }
        self._number = 0

    def written(self) -> int:
        """Return the number that the timeline gets when all copies that were asked for before are done."""
        self._number += 1
        with self._cuda.current():
            self._timeline.signal(self._number)
        return self._number
