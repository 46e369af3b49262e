"""Choose where workers run, and start them: in the thread of the caller, on threads, in processes, or on a Ray cluster.

Every device that scores clips is opened by a worker.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace

from ..backends.cpu import INFO
from ..backends.decoding import hardware_decoder, sessions
from ..backends.open import check_backend
from ..backends.vulkan import info_of
from ..errors import NoDeviceError, OptionError
from ..frames.open import can_reopen, may_be_containers
from ..host.devices import DeviceInfo, DeviceKind, choose_device, list_devices
from ..host.instance import shared_instance
from ..types import BackendInfo
from ..utils.choices import ENGINE
from ..utils.spawning import current_folder
from ..utils.thread_pool import ThreadPool
from .options import Clips, ScoreOptions, Selector
from .task import FixedPool, OnEvent, Task, TaskResult, WorkerHandle, WorkerPool, WorkerSpec
from .worker import Worker, workers_on

MAX_IN_STEP = 8
"""The largest number of distorted clips that are decoded at a time. For more clips, the reference is decoded again."""


@dataclass(frozen=True)
class WorkerOptions:
    """The place of the workers. Raises OptionError for options that exclude each other."""

    engine: str = "local"
    """``"local"`` for this machine, ``"ray"`` for a Ray cluster."""
    backend: str = "vulkan"
    device: Selector = None
    """The devices of this machine, as in `score_files`."""
    address: str | None = None
    """The cluster; without it the one that RAY_ADDRESS names, or the one that runs on this machine, or else a new one."""
    software: bool = False
    """True to use nodes without a GPU as well, on Mesa's lavapipe."""

    def __post_init__(self) -> None:
        ENGINE.check(self.engine)
        if self.engine == "ray" and self.device is not None:
            raise OptionError(f"`device={self.device}` is for one machine; Ray gives each worker its GPU. Leave it out")
        if self.engine != "ray" and (self.address is not None or self.software):
            raise OptionError("`address` and `software` are for `engine=ray`")

    @property
    def several(self) -> list[DeviceInfo]:
        """Return the devices of this machine if several are named; see `chosen_devices`."""
        return chosen_devices(self.backend, self.device)

    def _devices(self) -> list[DeviceInfo]:
        """Return the devices of this machine that score; none for the backend ``"cpu"``. Raises DeviceError or OptionError."""
        if self.several or self.backend != "vulkan":
            return self.several
        assert self.device is None or isinstance(self.device, str | int)
        return [choose_device(list_devices(shared_instance()), self.device)]

    def open(self, clips: Sequence[Clips], options: ScoreOptions, in_step: int = 1, profile: bool = False) -> WorkerPool:
        """Start the workers for clips; `in_step` pairs share a reference.

        Raises DeviceError if there is no device, and InputError for several devices if the current folder was removed.

        A GPU gets several workers if its video engines can decode more clips than one worker does. Otherwise a worker scores
        its device's share of the pairs of a reference in step. If `clips` are empty, one worker of each device scores
        everything in order. Each of several devices has a process, because Python's lock would make them wait for each other.
        """
        if self.engine == "ray":
            from .cluster import Cluster

            return Cluster(backend=self.backend, address=self.address, software=self.software, profile=profile)
        specs = self.specs(profile=profile)
        in_step = in_step_of(in_step, specs)
        engines = _engines(specs[0], clips, options)  # the GPUs of a machine are mostly alike
        workers = max(1, workers_of(engines))
        if workers > 1 and (in_step == 1 or engines // (1 + in_step) > 1):
            in_step = 1
        else:
            workers = 1
        specs = [replace(spec, workers=workers, in_step=in_step) for spec in specs]
        if len(specs) == 1:
            return DevicePool(specs[0])

        from .processes import handles_of

        current_folder()
        by_device = map(handles_of, specs)
        # A process starts with its first task. The first task of each device comes before the second one of any.
        return FixedPool([handle for handles in zip(*by_device, strict=True) for handle in handles], in_step=in_step)

    def kinds(self) -> tuple[list[str], int]:
        """Return the kind of each worker that `open` would start, see `WorkerSpec`, and the number of cores that they share."""
        if self.engine == "ray":
            from .cluster import kinds

            return kinds(self.backend, self.address, self.software)
        return [spec.kind for spec in self.specs()], os.cpu_count() or 1

    def backends(self) -> list[BackendInfo]:
        """Return the devices of this machine as reports name them."""
        return [info_of(device) for device in self._devices()] or [INFO]

    def specs(self, *, profile: bool = False) -> list[WorkerSpec]:
        """Return the workers of this machine."""
        specs = [spec_of(device, profile=profile) for device in self._devices()]
        if not specs:
            check_backend(self.backend, self.device)
            return [WorkerSpec(self.backend, None, "cpu", self.backend, profile)]
        if self.several:
            return specs
        assert self.device is None or isinstance(self.device, str | int)
        # A selector means the same device until the process ends; see `backends.sessions`.
        return [replace(specs[0], device=self.device)]


def in_step_of(pairs: int, specs: Sequence[WorkerSpec]) -> int:
    """Return how many pairs of one reference a worker scores in step, if each device gets an equal share of them.

    Several devices without video engines divide each pair: they score more slowly than the CPU decodes.
    """
    if len(specs) > 1 and specs[0].kind != "gpu":
        return 1
    share = -(-pairs // len(specs))
    return -(-share // -(-share // MAX_IN_STEP))


def has_lock() -> bool:
    """Return whether Python's global interpreter lock is on: then only one thread runs Python code at a time."""
    is_on: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)  # Python 3.12 has a lock, and no such function
    return is_on()


def workers_of(engines: int) -> int:
    """Return how many workers of a GPU keep its video engines busy, without making each other slower.

    A worker has two decoders, one for each clip, and an engine needs two of them to be always busy. So there is a worker for
    each engine. With Python's lock there are half as many, rounded up: the threads of more workers wait longer for the lock.
    """
    return -(-engines // 2) if has_lock() else engines


def _engines(spec: WorkerSpec, clips: Sequence[Clips], options: ScoreOptions) -> int:
    """Return how many video engines of a GPU could decode the clips, or 0 if a hardware decoder cannot decode them."""
    paths = [path for pair in clips for path in pair.paths]
    if spec.backend != "vulkan" or not paths or not can_reopen(*paths):
        return 0
    if not may_be_containers(paths[:2], clips[0].raw):  # CUDA is not loaded for other files
        return 0
    decoder = hardware_decoder(options.decode, spec.backend, spec.device)
    return 0 if decoder is None else sessions(decoder)


class ThreadHandle(WorkerHandle):
    """A worker on a thread, which cannot be killed like a process."""

    def __init__(self, worker: Worker) -> None:
        self.label = worker.label
        self._worker = worker
        self._thread = ThreadPool(1, "vkssim-worker")

    def submit(self, task: Task, on_event: OnEvent) -> Future[TaskResult]:
        """Have the thread do the task."""
        return self._thread.submit(self._worker.do, task, on_event)

    def close_idle_clips(self) -> None:
        """Have the thread close the clips that no task uses."""
        self._thread.submit(self._worker.close_idle_clips)

    def begin_to_close(self) -> None:
        """Stop the task, and have the thread close the worker. A hardware decoder takes some 0.02 s to close its clips."""
        self._worker.stop()
        self._thread.submit(self._worker.close)

    def close(self) -> None:
        """Wait for the thread, and close the worker if it did not end."""
        self.begin_to_close()
        self._thread.close(cancel=False)
        self._worker.close()


class DevicePool(FixedPool):
    """Workers of one device in this process: one in the thread of the caller, or several on threads.

    Several workers keep the video engines of a GPU busy.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        workers = workers_on(spec)
        super().__init__([*map(ThreadHandle, workers)] if len(workers) > 1 else workers, spec.in_step)


# -- devices ----------------------------------------------------------------------------------------------------------

_ALL = "all"


def chosen_devices(backend: str, device: Selector) -> list[DeviceInfo]:
    """Return the devices that ``"all"`` or a list names. Return an empty list for a single selector.

    ``"all"`` names every GPU that can be used, or the software device of a machine without such a GPU. A list may name a device
    twice. Raises OptionError for a backend that is unknown or has no devices, and DeviceError if a device is missing or
    cannot be used. A single selector is checked when its device is opened.
    """
    if device is None or isinstance(device, int):
        return []
    selectors = device.split(",") if isinstance(device, str) else device
    every = isinstance(device, str) and device.strip().lower() == _ALL
    if isinstance(device, str) and not every and len(selectors) == 1:
        return []
    check_backend(backend, device)
    devices = list_devices(shared_instance())
    if every:
        suitable = [device for device in devices if not device.lacks]
        gpus = [device for device in suitable if device.kind != DeviceKind.CPU]
        return gpus or suitable[:1] or [choose_device(devices)]
    if isinstance(device, str):
        with suppress(NoDeviceError):
            choose_device(devices, device)  # a name may have commas
            return []
    if not selectors:
        raise OptionError("the list of devices is empty; leave it out for the first GPU, or give 'all'")
    return [choose_device(devices, selector) for selector in selectors]


def spec_of(device: DeviceInfo, *, profile: bool = False) -> WorkerSpec:
    """Return the description of a worker on a device."""
    kind = "software" if device.kind == DeviceKind.CPU else "gpu"
    return WorkerSpec("vulkan", str(device.uuid), kind, f"{device.name} ({device.index})", profile)
