"""CUDA's side of a device, by a driver that is made up: which calls it gets, and what its errors become."""

from __future__ import annotations

import ctypes
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from vkssim.backends import cuda, decoding
from vkssim.backends.cuda import REGION
from vkssim.errors import DeviceError, DeviceMemoryError, UnsuitableDeviceError
from vkssim.host import device as host_device
from vkssim.host.device import Device
from vkssim.types import Rows

GPU = uuid.UUID("0978dd54-200f-51fb-9fe5-33d1f9d939dd")
OTHER = uuid.UUID(int=5)


class _Result(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class Driver(ModuleType):
    """The functions of `cuda.bindings.driver` that are called: each is noted, and returns what CUDA would."""

    CUresult = _Result
    CUctx_flags = SimpleNamespace(CU_CTX_SCHED_BLOCKING_SYNC=4)
    CUDA_EXTERNAL_MEMORY_DEDICATED = 1
    CUexternalMemoryHandleType = SimpleNamespace(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD=1)
    CUexternalSemaphoreHandleType = SimpleNamespace(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD=9)

    def __init__(self) -> None:
        super().__init__("cuda.bindings.driver")
        self.calls: list[tuple[Any, ...]] = []
        self.failing: dict[str, _Result] = {}
        self.results: dict[str, Any] = {
            "cuDeviceGetCount": 2,
            "cuDeviceGet": lambda ordinal: f"device {ordinal}",
            "cuDeviceGetUuid": lambda device: SimpleNamespace(bytes=(OTHER if device == "device 0" else GPU).bytes),
            "cuDevicePrimaryCtxRetain": 0xC0,
            "cuImportExternalMemory": "memory",
            "cuExternalMemoryGetMappedBuffer": 0x1000,
            "cuImportExternalSemaphore": "semaphore",
        }

    def __getattr__(self, name: str) -> Any:
        if name.startswith("CUDA_"):
            return lambda: SimpleNamespace(handle=SimpleNamespace(), params=SimpleNamespace(fence=SimpleNamespace()))
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, *arguments))
            code = self.failing.get(name, _Result.CUDA_SUCCESS)
            result = self.results.get(name)
            return (code, result(*arguments) if callable(result) else result)

        return call

    def library(self, name: str) -> Any:
        """Return CUDA's library as ctypes loads it, whose functions take pointers and return only a code."""
        assert name == "libcuda.so.1"

        def function(symbol: str) -> Any:
            call = getattr(self, symbol.partition("_")[0])
            return lambda *arguments: int(call(*(getattr(argument, "_obj", argument) for argument in arguments))[0])

        symbols = ("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuMemcpy2DAsync_v2", "cuMemcpy2D_v2")
        return SimpleNamespace(**{symbol: function(symbol) for symbol in symbols})

    def names(self) -> list[str]:
        """Return the functions that were called, less those that make a context that of the thread."""
        return [name for name, *_ in self.calls if name not in ("cuCtxPushCurrent", "cuCtxPopCurrent")]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    package, bindings, made = ModuleType("cuda"), ModuleType("cuda.bindings"), Driver()
    package.bindings, bindings.driver = bindings, made  # type: ignore[attr-defined]
    for name, module in ("cuda", package), ("cuda.bindings", bindings), ("cuda.bindings.driver", made):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(ctypes, "PyDLL", made.library)
    monkeypatch.setattr(ctypes, "CDLL", made.library)
    cuda._opened.clear()
    yield made
    cuda._opened.clear()


def test_a_device_is_found_by_its_uuid(driver: Driver) -> None:
    found = cuda.cuda_of(GPU)
    assert found.ordinal == 1
    assert ("cuDevicePrimaryCtxSetFlags", "device 1", 4) in driver.calls, "else FFmpeg refuses the context"
    assert driver.names().index("cuDevicePrimaryCtxSetFlags") < driver.names().index("cuDevicePrimaryCtxRetain")
    assert cuda.cuda_of(GPU) is found
    with pytest.raises(UnsuitableDeviceError, match="CUDA knows no device"):
        cuda.cuda_of(uuid.UUID(int=7))
    driver.calls.clear()
    assert cuda.Cuda(GPU).ordinal == 1
    assert "cuDevicePrimaryCtxSetFlags" not in driver.names(), "without FFmpeg, threads wait for the GPU as PyTorch has them"


def test_without_the_library_the_driver_or_the_package(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
    def fail(_: object) -> Any:
        raise failure

    failure: Exception = OSError("libcuda.so.1: cannot open shared object file")
    monkeypatch.setattr(ctypes, "PyDLL", fail)
    with pytest.raises(UnsuitableDeviceError, match=r"cannot be loaded: libcuda\.so\.1"):
        cuda.cuda_of(GPU)
    failure = RuntimeError("libcuda.so.1 was not found")
    driver.results["cuInit"] = fail
    with pytest.raises(UnsuitableDeviceError, match=r"no CUDA driver: libcuda\.so\.1 was not found"):
        cuda.cuda_of(GPU)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    with pytest.raises(UnsuitableDeviceError, match="cuda-bindings is not installed"):
        cuda.cuda_of(GPU)


@pytest.mark.parametrize(("from_gpu", "to_gpu"), [(True, True), (True, False), (False, True)])
def test_copies(driver: Driver, from_gpu: bool, to_gpu: bool) -> None:
    """Those on the GPU are queued on the stream of the decoder; others are done when the function returns."""
    cuda.cuda_of(GPU).copy(Rows(64, 2048, from_gpu), Rows(128, 1920, to_gpu), 1900, 1080)
    (push, context), (name, region, *stream), (pop, _) = driver.calls[-3:]
    assert (push, context.value, pop) == ("cuCtxPushCurrent", 0xC0, "cuCtxPopCurrent")
    assert (name, stream) == (("cuMemcpy2DAsync", [None]) if from_gpu and to_gpu else ("cuMemcpy2D", []))
    source, target = (2, 0, 64) if from_gpu else (1, 64, 0), (2, 0, 128) if to_gpu else (1, 128, 0)
    assert REGION.unpack(region) == (0, 0, *source, 0, 2048, 0, 0, *target, 0, 1920, 1900, 1080)


def test_the_region_is_that_of_the_header() -> None:
    """The offsets are those that a C compiler gives CUDA_MEMCPY2D on a machine of 64 bits."""
    packed = REGION.pack(*range(1, 17))
    offsets = 0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120
    assert [packed[offset] for offset in offsets] == [*range(1, 17)]
    assert len(packed) == 128


@pytest.mark.parametrize(
    ("code", "kind"), [(_Result.CUDA_ERROR_OUT_OF_MEMORY, DeviceMemoryError), (_Result.CUDA_ERROR_ILLEGAL_ADDRESS, DeviceError)]
)
def test_errors(driver: Driver, code: _Result, kind: type[DeviceError]) -> None:
    driver.failing["cuMemcpy2DAsync"] = code
    with pytest.raises(DeviceError, match=f"cuMemcpy2DAsync failed: {code.name}") as caught:
        cuda.cuda_of(GPU).copy(Rows(0, 64, True), Rows(0, 64, True), 64, 1)
    assert type(caught.value) is kind
    assert driver.calls[-1][0] == "cuCtxPopCurrent", "the thread's context is given back"


@pytest.fixture
def vulkan(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Vulkan's side of what is shared: a pipe in place of the descriptors of memory and of a semaphore."""
    memory, semaphore = os.pipe()
    monkeypatch.setattr(cuda, "Buffer", Mock(return_value=Mock(memory_size=4096)))
    monkeypatch.setattr(cuda, "memory_descriptor", lambda _device, _buffer: memory)
    monkeypatch.setattr(cuda, "timeline", lambda _device, _stack: ("handle", semaphore))
    yield memory, semaphore
    for descriptor in (memory, semaphore):
        with suppress(OSError):
            os.close(descriptor)


@pytest.mark.parametrize(
    ("call", "failing", "freed"),
    [
        ("shared_buffer", "cuImportExternalMemory", []),
        ("shared_buffer", "cuCtxPushCurrent", []),
        ("shared_buffer", "cuExternalMemoryGetMappedBuffer", ["cuDestroyExternalMemory"]),
        ("timeline", "cuImportExternalSemaphore", []),
    ],
)
def test_an_import_that_fails_leaves_nothing_open(
    driver: Driver, vulkan: tuple[int, int], call: str, failing: str, freed: list[str]
) -> None:
    """CUDA owns a descriptor only where the import succeeds."""
    shared, device = cuda.cuda_of(GPU), Mock()
    driver.failing[failing] = _Result.CUDA_ERROR_OUT_OF_MEMORY
    driver.calls.clear()
    with ExitStack() as stack, pytest.raises(DeviceMemoryError, match=failing):
        getattr(shared, call)(device, stack, *([4000] if call == "shared_buffer" else []))
    assert [name for name in driver.names() if name.startswith("cuDestroy")] == freed
    descriptor = vulkan[call == "timeline"]
    if freed:
        os.fstat(descriptor)  # CUDA owns it
    else:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.mark.parametrize("fails", [False, True], ids=["released", "a failed context"])
def test_shared_memory_and_semaphores(driver: Driver, vulkan: tuple[int, int], fails: bool) -> None:
    """After an illegal address every call fails. All is released, and no error takes the place of the first one."""
    shared, device = cuda.cuda_of(GPU), Mock()
    with ExitStack() as stack:
        assert shared.shared_buffer(device, stack, 4000)[1] == 0x1000
        handle = next(call[1] for call in driver.calls if call[0] == "cuImportExternalMemory")
        assert (handle.handle.fd, handle.size) == (vulkan[0], 4096)
        timeline = shared.timeline(device, stack)
        assert timeline.handle == "handle"
        driver.calls.clear()
        timeline.signal(3)
        timeline.wait(4, stream=0x57)
        for call, name, number, stream in zip(driver.calls, ("Signal", "Wait"), (3, 4), (0, 0x57), strict=True):
            assert call[0] == f"cu{name}ExternalSemaphoresAsync"
            assert call[2][0].params.fence.value == number
            assert (call[1], call[3:]) == (["semaphore"], (1, stream)), "unless told otherwise on the stream of the copies"
        driver.calls.clear()
        if fails:
            driver.failing["cuStreamSynchronize"] = driver.failing["cuMemFree"] = _Result.CUDA_ERROR_ILLEGAL_ADDRESS
    freed = ["cuStreamSynchronize", "cuDestroyExternalSemaphore", "cuStreamSynchronize", "cuMemFree", "cuDestroyExternalMemory"]
    assert driver.names() == freed


def test_a_device_that_shares_nothing_has_its_frames_copied_by_ffmpeg(
    driver: Driver, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "_nvidia", lambda _device: device.info)
    monkeypatch.setattr(decoding, "find_spec", lambda _name: True)
    monkeypatch.setattr(decoding, "check_decode", lambda _decode: None)
    monkeypatch.setattr(host_device, "SHARING_EXTENSIONS", ("VK_KHR_made_up",))
    decoder = decoding.hardware_decoder("cuda", "vulkan", None)
    assert decoder is not None
    assert decoder.surfaces is None
    assert not driver.calls
    driver.results["cuDeviceGetUuid"] = SimpleNamespace(bytes=device.info.uuid.bytes)
    monkeypatch.setattr(host_device, "SHARING_EXTENSIONS", ())
    decoder = decoding.hardware_decoder("cuda", "vulkan", None)
    assert decoder is not None
    assert decoder.surfaces == cuda.cuda_of(device.info.uuid).copy
    assert decoder.gpu is not None
    assert decoder.gpu.device == "0"
