"""A thin layer between the `vulkan` binding and the loader's library: it counts, and it makes calls fail.

Every call of the binding goes through it, functions of extensions too. Results that it injects come from below the binding, as
a driver's do.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import vulkan
from vulkan import _vulkan

from vkssim.backends.sessions import close_sessions
from vkssim.host.instance import shared_instance

_TIMEOUT = 2  # VK_TIMEOUT, a success

_MEMORY = ("OUT_OF_HOST_MEMORY", "OUT_OF_DEVICE_MEMORY")

_RUN_OUT_OF_MEMORY = """
vkAllocateCommandBuffers vkBeginCommandBuffer vkCreateBufferView vkCreateCommandPool vkCreateDescriptorSetLayout vkCreateFence
vkCreatePipelineCache vkCreatePipelineLayout vkCreateQueryPool vkCreateSemaphore vkEndCommandBuffer vkGetPipelineCacheData
vkEnumerateInstanceLayerProperties vkInvalidateMappedMemoryRanges
"""
_TELL_OF_LOSS = ("vkQueueSubmit", "vkWaitForFences", "vkGetFenceStatus", "vkDeviceWaitIdle", "vkGetQueryPoolResults")

ERRORS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_RUN_OUT_OF_MEMORY.split(), _MEMORY),
    **dict.fromkeys(_TELL_OF_LOSS, (*_MEMORY, "DEVICE_LOST")),
    "vkAllocateDescriptorSets": (*_MEMORY, "FRAGMENTED_POOL", "OUT_OF_POOL_MEMORY"),
    "vkAllocateMemory": (*_MEMORY, "TOO_MANY_OBJECTS", "INVALID_EXTERNAL_HANDLE", "INVALID_OPAQUE_CAPTURE_ADDRESS"),
    "vkBindBufferMemory": (*_MEMORY, "INVALID_OPAQUE_CAPTURE_ADDRESS"),
    "vkCreateBuffer": (*_MEMORY, "INVALID_OPAQUE_CAPTURE_ADDRESS"),
    "vkCreateComputePipelines": (*_MEMORY, "INVALID_SHADER_NV"),
    "vkCreateDescriptorPool": (*_MEMORY, "FRAGMENTATION"),
    "vkCreateDevice": (
        *_MEMORY,
        "DEVICE_LOST",
        "INITIALIZATION_FAILED",
        "EXTENSION_NOT_PRESENT",
        "FEATURE_NOT_PRESENT",
        "TOO_MANY_OBJECTS",
    ),
    "vkCreateInstance": (
        *_MEMORY,
        "INITIALIZATION_FAILED",
        "LAYER_NOT_PRESENT",
        "EXTENSION_NOT_PRESENT",
        "INCOMPATIBLE_DRIVER",
    ),
    "vkCreateShaderModule": (*_MEMORY, "INVALID_SHADER_NV"),
    "vkEnumerateDeviceExtensionProperties": (*_MEMORY, "LAYER_NOT_PRESENT"),
    "vkEnumerateInstanceExtensionProperties": (*_MEMORY, "LAYER_NOT_PRESENT"),
    "vkEnumeratePhysicalDevices": (*_MEMORY, "INITIALIZATION_FAILED"),
    "vkMapMemory": (*_MEMORY, "MEMORY_MAP_FAILED"),
    "vkResetFences": ("OUT_OF_DEVICE_MEMORY",),
}
"""The errors that the specification lets each function return."""

RESULTS = {name: -abs(getattr(vulkan, f"VK_ERROR_{name}")) for errors in ERRORS.values() for name in errors}
"""VkResult by name, without its VK_ERROR_. The binding lacks the sign of those of extensions."""

_UNMADE = {"vkFreeMemory": "vkAllocateMemory", "vkUnmapMemory": "vkMapMemory"}
_MADE_IN_POOLS = ("vkAllocateCommandBuffers", "vkAllocateDescriptorSets")  # gone with their pool
_USES_QUEUES = ("vkQueueSubmit", "vkDeviceWaitIdle")
_queues = threading.Lock()  # threads take turns at a queue, and this layer's own waiting has to as well


@dataclass(frozen=True)
class Fault:
    """The `call`-th call of a function, counted from 0, returns a VkResult and does nothing; with `forever` so do all that
    follow. A wait that timed out is not counted.
    """

    function: str
    call: int
    result: int
    forever: bool = False


class Reuse:
    """Devices and compiled pipelines for several runs: making them is what takes most of a run's time.

    A run still makes and destroys its own, as far as the layer counts; the driver keeps what it has.
    """

    def __init__(self) -> None:
        self._devices: dict[int, Any] = {}
        self._pipelines: dict[tuple[bytes, bytes], Any] = {}
        self._codes: dict[int, bytes] = {}

    def call(self, name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """One call, or what is there already."""
        if name == "vkDestroyDevice" and arguments[0] in self._devices.values():
            return None
        if name == "vkDestroyPipeline" and arguments[1] in self._pipelines.values():
            return None
        if name == "vkCreateDevice":
            return self._kept(self._devices, number(arguments[0]), call, arguments)
        if name == "vkCreateComputePipelines":
            stage = arguments[3][0].stage
            values = stage.pSpecializationInfo
            constants = bytes(_vulkan.ffi.buffer(values.pData, values.dataSize)) if values else b""
            return self._kept(self._pipelines, (self._codes[number(stage.module)], constants), call, arguments)
        result = call(*arguments)
        if name == "vkCreateShaderModule" and result == 0:
            self._codes[number(arguments[-1][0])] = bytes(_vulkan.ffi.buffer(arguments[1].pCode, arguments[1].codeSize))
        return result

    @staticmethod
    def _kept(things: dict[Any, Any], key: Any, call: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
        if key not in things:
            result: int = call(*arguments)
            if result != 0:
                return result
            things[key] = arguments[-1][0]
        arguments[-1][0] = things[key]
        return 0

    def close(self) -> None:
        """Destroy them; there is one device. Later calls make new ones."""
        for device in self._devices.values():
            for pipeline in self._pipelines.values():
                _call_real(_LIBRARY.vkDestroyPipeline, device, pipeline, None)
            _call_real(_LIBRARY.vkDestroyDevice, device, None)
        self._devices.clear()
        self._pipelines.clear()


@dataclass
class Layer:
    """The calls so far: `calls` in order, `results` of those that return a VkResult, `live` handles by the call that made them.

    After a fault says that the device is lost, every wait and submission says so too, until another device is made.
    """

    faults: tuple[Fault, ...] = ()
    reuse: Reuse | None = None
    largest: int | None = None
    """The most bytes of memory that there are for a buffer."""
    calls: list[str] = field(default_factory=list)
    can_fail: set[str] = field(default_factory=set)
    live: Counter[tuple[str, int]] = field(default_factory=Counter)
    injected: int = 0
    after: dict[str, Callable[..., None]] = field(default_factory=dict)
    """Called with the arguments of a function when it has succeeded."""
    before: dict[str, Callable[..., tuple[Any, ...]]] = field(default_factory=dict)
    """Called with the arguments of a function; gives those that it is called with."""
    _counts: Counter[str] = field(default_factory=Counter)
    _lost: bool = False

    def pass_on(self, name: str, call: Callable[..., Any], fails: bool, arguments: tuple[Any, ...]) -> Any:
        """One call, or what it is made to return."""
        earlier = self._counts[name]
        self._counts[name] += 1
        self.calls.append(name)
        if fails:
            self.can_fail.add(name)
        if name == "vkAllocateMemory" and self.largest is not None and arguments[1].allocationSize > self.largest:
            return RESULTS["OUT_OF_DEVICE_MEMORY"]
        for fault in self.faults:
            if fault.function == name and (fault.call == earlier or (fault.forever and earlier > fault.call)):
                self.injected += 1
                self._lost = self._lost or fault.result == RESULTS["DEVICE_LOST"]
                return self._settled(name, fault.result, arguments)
        if self._lost and name in _TELL_OF_LOSS:
            return self._settled(name, RESULTS["DEVICE_LOST"], arguments)
        if name in self.before:
            arguments = self.before[name](*arguments)
        with _queues if name in _USES_QUEUES else nullcontext():
            result = call(*arguments) if self.reuse is None else self.reuse.call(name, call, arguments)
        if result == _TIMEOUT and fails:  # the host asks again: how often depends on how busy the machine is
            self._counts[name] -= 1
        if not fails or result == 0:
            self._count(name, arguments)
            if name in self.after:
                self.after[name](*arguments)
        return result

    @staticmethod
    def _settled(name: str, result: int, arguments: tuple[Any, ...]) -> int:
        """Wait for submitted work before the host gets the news of the loss, and frees the memory in use."""
        if result == RESULTS["DEVICE_LOST"] and name in _TELL_OF_LOSS:
            wait = _LIBRARY.vkQueueWaitIdle if name == "vkQueueSubmit" else _LIBRARY.vkDeviceWaitIdle
            with _queues:
                _call_real(wait, arguments[0])
        return result

    def _count(self, name: str, arguments: tuple[Any, ...]) -> None:
        maker, is_made = _counted(name)
        if maker is None:
            return
        if is_made:
            handle = arguments[1] if name == "vkMapMemory" else arguments[-1][0]
            self.live[maker, number(handle)] += 1
            if name == "vkCreateDevice":
                self._lost = False
            return
        key = maker, number(arguments[0] if name in ("vkDestroyInstance", "vkDestroyDevice") else arguments[1])
        if key in self.live:  # else it was made before the layer was there
            self.live[key] -= 1

    @property
    def left(self) -> dict[tuple[str, int], int]:
        """Return the objects that were made more often than destroyed, or the other way round."""
        return {key: count for key, count in self.live.items() if count}


def wrong_readback(made: Layer, least: int = 0) -> None:
    """Make the device compute wrongly: what its kernels leave for the host in buffers of `least` bytes or more is a hundredth
    too large.
    """
    places: dict[int, tuple[Any, int]] = {}

    def mapped(_device: Any, memory: Any, _offset: int, size: int, _flags: int, place: Any) -> None:
        places[number(memory)] = place[0], size

    def unmapped(_device: Any, memory: Any) -> None:
        del places[number(memory)]

    def finished(*_arguments: Any) -> None:
        for place, size in places.values():
            if size < least:
                continue
            floats = np.frombuffer(_vulkan.ffi.buffer(place, size // 4 * 4), np.float32)
            floats *= np.float32(1.01)

    made.after.update(vkMapMemory=mapped, vkUnmapMemory=unmapped, vkWaitForFences=finished)


def number(handle: Any) -> int:
    """A handle or an address as a number."""
    return int(_vulkan.ffi.cast("uintptr_t", handle))


_LIBRARY = vulkan.lib
_call_real = _vulkan._callApi


@cache
def _counted(name: str) -> tuple[str | None, bool]:
    """Return what is counted of a call: the call that makes its objects, if it has any, and whether it is this one."""
    if name in _MADE_IN_POOLS:
        return None, False
    if name == "vkMapMemory":
        return name, True
    if name.startswith(("vkCreate", "vkAllocate")):
        return name.removesuffix("s"), True
    if name.startswith("vkDestroy") or name in _UNMADE:
        maker = _UNMADE.get(name) or name.replace("Destroy", "Create")
        return ("vkCreateComputePipeline" if maker == "vkCreatePipeline" else maker), False
    return None, False


def _returns_result(function: Any) -> bool:
    return str(_vulkan.ffi.typeof(function).result.cname).endswith("VkResult")


@cache
def _names() -> dict[int, str]:
    """The library's functions by address, which is how the binding hands them on."""
    names = [name for name in dir(_vulkan) if name.startswith("vk") and hasattr(_LIBRARY, name)]
    return {number(getattr(_LIBRARY, name)): name for name in names}


class _Library:
    """The library for calls without the binding, which go through the layer as well."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer

    def __getattr__(self, name: str) -> Any:
        function = getattr(_LIBRARY, name)
        return lambda *arguments: self._layer.pass_on(name, function, _returns_result(function), arguments)


@contextmanager
def layer(*faults: Fault, reuse: Reuse | None = None) -> Iterator[Layer]:
    """Whatever is called of Vulkan goes through the layer that this gives."""
    shared_instance()  # is there before and stays
    close_sessions()  # kernels of the layer's own devices are no kernels of those
    names = dict(_names())
    made = Layer(faults, reuse)

    def remember(_device: Any, name: str) -> None:
        names[number(_LIBRARY.vkGetDeviceProcAddr(_device, name.encode()))] = name

    made.after["vkGetDeviceProcAddr"] = remember

    called: dict[Any, tuple[Callable[..., Any], bool]] = {}  # by function: a run calls few of them often

    def call(function: Any, *arguments: Any) -> Any:
        name = names.get(number(function))
        if name is None:  # a function of an extension that was loaded before the layer was there
            return _call_real(function, *arguments)
        if function not in called:
            called[function] = partial(_call_real, function), _returns_result(function)
        return made.pass_on(name, *called[function], arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_vulkan, "_callApi", call)
        patch.setattr(vulkan, "lib", _Library(made))
        try:
            yield made
        finally:
            close_sessions()
