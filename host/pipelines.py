"""Compile compute pipelines from SPIR-V, and store the driver's compile cache on disk."""

from __future__ import annotations

import hashlib
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from . import private
from .api import vk
from .device import Device
from .devices import DeviceInfo
from .plan import Kernel
from .waiting import compile_kernels

PUSH_BYTES = 64
"""The bytes of push constants that every pipeline layout declares; Vulkan guarantees 128."""

_MAX_BYTES = 1 << 26  # of a cache file; typical files have some 100 kB
_OWN_HEADER = struct.Struct("<16sIQ32s")  # magic, form, length of the data, its SHA-256


class Layout(NamedTuple):
    """The bindings of a kernel, with the type of each, and its push constants."""

    types: list[int]
    descriptor_set: Any
    pipeline: Any


class Pipeline(NamedTuple):
    """A compiled kernel and the layout of its arguments."""

    handle: Any
    layout: Layout


class PipelineCache:
    """The driver's cache of compiled pipelines, one file for each model of a device, driver version and size of subgroups.

    Drivers trust the data after Vulkan's own header, and may crash if it is damaged. So a header of our own comes before it,
    with a digest, and drivers only get data that was written completely. The file is ignored if it cannot be read, if others
    may have written it, or if it is damaged. Drivers ignore data whose header names another device. A cache that cannot be
    written is no error, because it only saves compilations.
    """

    def __init__(self, device: Device, stack: ExitStack, folder: Path | None) -> None:
        self._device = device
        info = device.info
        self._file = folder / f"{cache_of(info)}.pipelines" if folder else None
        stored = b"" if self._file is None else unpacked(private.load(self._file, _MAX_BYTES))
        create_info = vk.VkPipelineCacheCreateInfo(
            initialDataSize=len(stored), pInitialData=vk.ffi.from_buffer(stored) if stored else None
        )
        self.handle = device.create(stack, "PipelineCache", create_info)
        self._stored_size = len(stored)

    def save(self) -> None:
        """Write the cache if it grew, replacing the old file in one step."""
        if self._file is None:
            return
        ffi = vk.ffi
        size = ffi.new("size_t*")
        library, device = vk.module.lib, self._device.handle
        if library.vkGetPipelineCacheData(device, self.handle, size, ffi.NULL) or size[0] <= self._stored_size:
            return
        data = ffi.new("char[]", size[0])
        if library.vkGetPipelineCacheData(device, self.handle, size, data):
            return
        if private.store(self._file, packed(bytes(ffi.buffer(data, size[0])))):
            self._stored_size = size[0]


def cache_of(info: DeviceInfo) -> str:
    """Return the stem of the names of cache files that are valid for a device: several of one model and driver share them."""
    model = bytes(vk.ffi.buffer(vk.vkGetPhysicalDeviceProperties(info.physical).pipelineCacheUUID)).hex()
    return f"{model}-{info.driver_version:08x}-{info.subgroup_size}"


def packed(data: bytes) -> bytes:
    """Return the content of a cache file for the driver's data."""
    return _OWN_HEADER.pack(b"vkssim pipelines", 1, len(data), hashlib.sha256(data).digest()) + data


def unpacked(content: bytes) -> bytes:
    """Return the driver's data from the content of a file; empty if the content is not exactly the output of `packed`."""
    data = content[_OWN_HEADER.size :]
    return data if content == packed(data) else b""


class PipelineBuilder:
    """The compiled kernels of a device, equal ones once. Bindings follow `Kernel`, and push constants have PUSH_BYTES.

    Several threads may build kernels; they take turns.
    """

    def __init__(
        self, device: Device, stack: ExitStack, load_module: Callable[[str], bytes], cache_folder: Path | None = None
    ) -> None:
        self._device = device
        self._stack = stack
        self._load_module = load_module
        self._cache_folder = cache_folder
        self._lock = threading.Lock()
        self._built: dict[Kernel, Pipeline] = {}
        self._layouts: dict[tuple[bool, int, int], Layout] = {}

    @cached_property
    def _cache(self) -> PipelineCache:
        """Return the cache, made for the first kernel: if there is too little memory for it, the next build tries again."""
        return PipelineCache(self._device, self._stack, self._cache_folder)

    def _layout(self, kernel: Kernel) -> Layout:
        key = kernel.texel_input, kernel.sources, kernel.targets
        if key in self._layouts:
            return self._layouts[key]
        device, storage = self._device, vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
        source = vk.VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER if kernel.texel_input else storage
        types = [source] * kernel.sources + [storage] * kernel.targets
        bindings = [
            vk.VkDescriptorSetLayoutBinding(
                binding=number, descriptorType=descriptor_type, descriptorCount=1, stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT
            )
            for number, descriptor_type in enumerate(types)
        ]

        set_info = vk.VkDescriptorSetLayoutCreateInfo(pBindings=bindings)
        set_layout = device.create(self._stack, "DescriptorSetLayout", set_info)
        push_range = vk.VkPushConstantRange(stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT, offset=0, size=PUSH_BYTES)
        info = vk.VkPipelineLayoutCreateInfo(pSetLayouts=[set_layout], pPushConstantRanges=[push_range])
        self._layouts[key] = Layout(types, set_layout, device.create(self._stack, "PipelineLayout", info))
        return self._layouts[key]

    def build(self, kernels: tuple[Kernel, ...]) -> None:
        """Compile the kernels that are not compiled yet, and save the cache."""
        with self._lock:
            missing = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self._built]
            cache, layouts = self._cache.handle, [self._layout(kernel) for kernel in missing]
            jobs = [
                (kernel.module, partial(self._compile, kernel, layout, cache))
                for kernel, layout in zip(missing, layouts, strict=True)
            ]
            compile_kernels(self._device, jobs)
            self._cache.save()

    def __getitem__(self, kernel: Kernel) -> Pipeline:
        return self._built[kernel]

    def _compile(self, kernel: Kernel, layout: Layout, cache: Any) -> None:
        """Compile a kernel, and keep it at once: if a different kernel fails, the next build compiles that kernel alone."""
        device = self._device
        with ExitStack() as temporary:
            code = self._load_module(kernel.module)
            module = device.create(temporary, "ShaderModule", vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code))

            values = struct.pack(f"<{len(kernel.constants)}I", *(value for _, value in kernel.constants))
            entries = [
                vk.VkSpecializationMapEntry(constantID=constant, offset=4 * position, size=4)
                for position, (constant, _) in enumerate(kernel.constants)
            ]

            # The variables hold each struct until the call returns: the binding keeps no nested strings or structs alive.
            data = vk.ffi.from_buffer(values)
            specialisation = vk.VkSpecializationInfo(pMapEntries=entries, dataSize=len(values), pData=data)

            entry_point = vk.ffi.new("char[]", b"main")
            stage = vk.VkPipelineShaderStageCreateInfo(
                stage=vk.VK_SHADER_STAGE_COMPUTE_BIT,
                module=module,
                pName=entry_point,
                pSpecializationInfo=specialisation if entries else None,
            )

            info = vk.VkComputePipelineCreateInfo(stage=stage, layout=layout.pipeline)
            handle = vk.vkCreateComputePipelines(device.handle, cache, 1, [info], None)[0]
            self._built[kernel] = Pipeline(device.own(self._stack, "Pipeline", handle, vk.vkDestroyPipeline), layout)
