"""What scripts/soak looks at while something runs: memory, descriptors, threads, mappings, Python and Vulkan objects."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vkssim.host.api import vk

_PROCESS = Path("/proc/self")
_PAIRS = {
    "device": ("vkCreateDevice", "vkDestroyDevice"),
    "memory": ("vkAllocateMemory", "vkFreeMemory"),
    "buffer": ("vkCreateBuffer", "vkDestroyBuffer"),
    "buffer view": ("vkCreateBufferView", "vkDestroyBufferView"),
    "shader module": ("vkCreateShaderModule", "vkDestroyShaderModule"),
    "pipeline cache": ("vkCreatePipelineCache", "vkDestroyPipelineCache"),
    "pipeline layout": ("vkCreatePipelineLayout", "vkDestroyPipelineLayout"),
    "pipeline": ("vkCreateComputePipelines", "vkDestroyPipeline"),
    "descriptor set layout": ("vkCreateDescriptorSetLayout", "vkDestroyDescriptorSetLayout"),
    "descriptor pool": ("vkCreateDescriptorPool", "vkDestroyDescriptorPool"),
    "command pool": ("vkCreateCommandPool", "vkDestroyCommandPool"),
    "query pool": ("vkCreateQueryPool", "vkDestroyQueryPool"),
    "fence": ("vkCreateFence", "vkDestroyFence"),
    "semaphore": ("vkCreateSemaphore", "vkDestroySemaphore"),
}


def count_vulkan_objects() -> Counter[str]:
    """Objects made from now on and not destroyed, by kind, as the driver is called: also those that nobody owns any more.

    To be called before anything opens a device. What goes with its pool is not counted.
    """
    live: Counter[str] = Counter()
    lock = threading.Lock()

    def counted(kind: str, change: int, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            result = function(*arguments)
            with lock:
                live[kind] += change
            return result

        return call

    for kind, (make, destroy) in _PAIRS.items():
        setattr(vk, make, counted(kind, 1, getattr(vk, make)))
        setattr(vk, destroy, counted(kind, -1, getattr(vk, destroy)))
    return live


@dataclass(frozen=True)
class Sample:
    """The process at one moment, after `done` units of work. `heap` is what malloc has given out, 0 where it does not tell."""

    done: int
    memory: int
    heap: int
    descriptors: int
    threads: int
    mappings: int
    python: int
    vulkan: int


def sample(done: int, live: Counter[str]) -> Sample:
    """Look at the process, garbage collected first, so that only what is held counts."""
    gc.collect()
    return Sample(
        done,
        int((_PROCESS / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE"),
        _heap(),
        len(os.listdir(_PROCESS / "fd")),
        len(os.listdir(_PROCESS / "task")),
        (_PROCESS / "maps").read_bytes().count(b"\n"),
        len(gc.get_objects()),
        live.total(),
    )


class _Mallinfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"]
    )


def _heap() -> int:
    """Bytes that glibc's malloc has given out. Unlike resident memory it knows no fragments and no caches of pages."""
    if sys.platform != "linux" or not hasattr(_LIBC, "mallinfo2"):
        return 0
    info = _LIBC.mallinfo2()
    return int(info.uordblks + info.hblkhd)


_LIBC: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
if hasattr(_LIBC, "mallinfo2"):
    _LIBC.mallinfo2.restype = _Mallinfo


def trend(samples: Sequence[Sample], what: str) -> float:
    """How much of `what` a unit of work adds: the slope through the second half of the samples."""
    half = samples[len(samples) // 2 :]
    if len({one.done for one in half}) < 2:
        return 0.0
    slope = np.polyfit([one.done for one in half], [getattr(one, what) for one in half], 1)[0]
    return float(slope)


def rise(samples: Sequence[Sample], what: str) -> int:
    """How much more of `what` there is at the end than there was when it was warm."""
    return int(getattr(samples[-1], what) - getattr(samples[0], what))
