"""Runs one load of tests/stress/soak and watches the process: memory, descriptors, threads, Python and Vulkan objects."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from loads import Enough, Load, Place

from vkssim.host.api import vk

STEADY = ("descriptors", "threads", "vulkan")
"""The resources that must not grow by one."""
TRENDS = ("memory", "heap", "blocks", "python", "mappings")

_PROCESS = Path("/proc/self")
_DRIVERS_CACHE = "mesa_shader_cache"
_SAMPLES = 10, 100
_MIN_SAMPLES = 4
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

    Call it before anything opens a device. Objects that are freed with their pool are not counted.
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
    """The process at one moment, after `done` units of work.

    `heap` is what malloc has given out in bytes, 0 if it does not report it; `blocks` what Python has, in number. Resident
    `memory` is all there is but for free pages, which malloc keeps in stock: how many is chance, so they are given back first.
    """

    done: int
    memory: int
    heap: int
    blocks: int
    descriptors: int
    threads: int
    mappings: int
    python: int
    vulkan: int


def sample(done: int, live: Counter[str]) -> Sample:
    """Look at the process, garbage collected first, so that only what is held counts."""
    gc.collect()
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
    return Sample(
        done,
        int((_PROCESS / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE"),
        _heap(),
        sys.getallocatedblocks(),
        _descriptors(),
        len(os.listdir(_PROCESS / "task")),
        (_PROCESS / "maps").read_bytes().count(b"\n"),
        len(gc.get_objects()),
        live.total(),
    )


def _descriptors() -> int:
    """Return how many descriptors are open, without those by which a thread of Mesa writes shaders to its cache meanwhile."""
    found = 0
    for descriptor in (_PROCESS / "fd").iterdir():
        with suppress(OSError):  # that of the folder itself, which is closed by now
            found += _DRIVERS_CACHE not in os.readlink(descriptor)
    return found


class _Mallinfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"]
    )


def _heap() -> int:
    """Return bytes that glibc's malloc has given out in all its arenas."""
    library: Any = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return 0
    library.mallinfo2.restype = _Mallinfo
    info = library.mallinfo2()
    return int(info.uordblks + info.hblkhd)


def trend(samples: Sequence[Sample], what: str) -> float:
    """Return how much of `what` a unit of work adds.

    It is the median of the slopes between any two samples of the second half (Theil 1950, Sen 1968). A leak is in all of them;
    a step, as when an allocator takes another megabyte in stock, is not.
    """
    half = samples[len(samples) // 2 :]
    done = np.array([one.done for one in half], np.float64)
    values = np.array([getattr(one, what) for one in half], np.float64)
    first, second = np.triu_indices(len(half), 1)
    return float(np.median((values[second] - values[first]) / (done[second] - done[first])))


def rise(samples: Sequence[Sample], what: str) -> int:
    """Return how much more of `what` there is at the end than there was when it was warm."""
    return int(getattr(samples[-1], what) - getattr(samples[0], what))


def watch(load: Load, place: Place, seconds: float | None) -> dict[str, Any]:
    """Run a load until `place.amount` units or `seconds` are over, and say what it added.

    A trend is given per unit of the load, a count as the difference between end and start. The first tenth of the samples
    is left out of both.
    """
    live = count_vulkan_objects()
    samples: list[Sample] = []
    wanted = min(max(_SAMPLES[0], place.amount // 10), _SAMPLES[1])
    done, due_units, due_seconds = 0, 0.0, 0.0
    started = time.perf_counter()

    def tick(units: int) -> None:
        nonlocal done, due_units, due_seconds
        done += units
        spent = time.perf_counter() - started
        ended = done >= place.amount or (seconds is not None and spent > seconds)
        if ended or done >= due_units or (seconds is not None and spent > due_seconds):
            samples.append(sample(done, live))
            due_units = done + place.amount / wanted
            due_seconds = spent + (seconds or 0.0) / wanted
        if ended:
            raise Enough

    with suppress(Enough):
        load(place, tick)
    spent = time.perf_counter() - started
    warm = samples[len(samples) // 10 :]
    if len(warm) < _MIN_SAMPLES:
        raise ValueError(f"{load.__name__}: {done} of {place.amount} are too few to see a trend in; allow more seconds")
    return {
        "done": done,
        "asked": place.amount,
        "seconds": round(spent, 1),
        "rate": done / spent,
        **{what: trend(warm, what) * done for what in TRENDS},
        **{what: rise(warm, what) for what in STEADY},
        "left": dict(+live),
        "samples": [asdict(one) for one in samples],
    }
