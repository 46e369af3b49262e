"""Choose where workers run, and start them: in the thread of the caller, on threads, in processes, or on a Ray cluster.

Every device that scores clips is opened by a worker.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace

from ..backends.cpu import INFO
from ..backends.open import check_backend
from ..backends.vulkan import info_of
from ..errors import NoDeviceError, OptionError, VkssimError
from ..frames.open import can_reopen, may_be_containers, open_file
from ..host.devices import DeviceInfo, DeviceKind, choose_device, list_devices
from ..host.instance import shared_instance
from ..host.vectors import THREADS_VARIABLE
from ..host.waiting import usable_cores
from ..storage.location import is_url
from ..types import BackendInfo
from ..utils.choices import ENGINE
from ..utils.spawning import current_folder
from ..utils.thread_pool import ThreadPool
from .options import Clips, ScoreOptions, Selector
from .ranges import PIXELS_A_SECOND
from .task import FixedPool, OnEvent, Task, TaskResult, WorkerHandle, WorkerPool, WorkerSpec
from .worker import Worker, engines_of, workers_of, workers_on

MAX_IN_STEP = 8
"""The largest number of distorted clips that are decoded at a time. For more clips, the reference is decoded again."""

_SECONDS_EACH = 4.0
"""The seconds of work for which a GPU is worth its start, which takes about as long."""

_CORES_EACH = 2
"""The number of cores for each process of a software device, which reads and waits for a part of its time."""

_THREADS_A_CORE = 2
"""The number of threads that these processes have together for each core."""

_MAX_PROCESSES = 16
"""The largest number of these processes, because each has memory of its own."""


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
    processes: bool = False
    """True if a software device gets a process for every few cores: not every program may start processes."""

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
        With `processes`, a software device has several if there are several pairs and enough cores.
        """
        decode = options.decode if _may_have_hardware(self.backend, clips) else None
        if self.engine == "ray":
            from .cluster import Cluster

            return Cluster(backend=self.backend, address=self.address, software=self.software, profile=profile, decode=decode)
        specs = self._needed(self.specs(profile=profile), clips, options)
        in_step = in_step_of(in_step, specs)
        specs = [replace(spec, decode=decode) for spec in specs]
        if len(specs) == 1:
            return DevicePool(_settled(specs[0], engines_of(specs[0]), in_step))

        from .processes import WorkerProcess

        current_folder()
        processes = [*map(WorkerProcess, specs)]
        engines = 0
        if decode is not None:  # all start now; if there is nothing to ask, each starts with its first task
            for process in processes:
                process.start()
            engines = processes[0].engines()  # the GPUs of a machine are mostly alike
        settled = [_settled(spec, engines, in_step) for spec in specs]
        by_device = [process.settle(spec) for process, spec in zip(processes, settled, strict=True)]
        # The first task of each device comes before the second one of any.
        handles = [handle for handles in zip(*by_device, strict=True) for handle in handles]
        return FixedPool(handles, in_step=settled[0].in_step)

    def _needed(self, specs: list[WorkerSpec], clips: Sequence[Clips], options: ScoreOptions) -> list[WorkerSpec]:
        """Return the workers that clips keep busy: not more GPUs than that, and several for the cores of a software device."""
        spec = specs[0]
        if spec.kind == "gpu" and len(specs) > 1:
            return specs[: max(1, round(min(len(specs), _seconds(clips, options) / _SECONDS_EACH)))]
        if spec.kind != "software" or not self.processes or len(specs) > 1 or spec.profile or THREADS_VARIABLE in os.environ:
            return specs
        cores = usable_cores()
        processes = min(cores // _CORES_EACH, len(clips), _MAX_PROCESSES)
        return specs if processes <= 1 else [replace(spec, threads=_THREADS_A_CORE * cores // processes)] * processes

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


def _settled(spec: WorkerSpec, engines: int, in_step: int) -> WorkerSpec:
    """Return a description with the number of workers for so many video engines, and of pairs in step if there are such."""
    workers = workers_of(engines)
    if workers > 1 and in_step > 1 and engines // (1 + in_step) <= 1:
        workers = 1
    return replace(spec, decode=None, workers=workers, in_step=1 if workers > 1 else in_step)


def _may_have_hardware(backend: str, clips: Sequence[Clips]) -> bool:
    """Return whether hardware could decode the clips. CUDA is not loaded for other files."""
    paths = [path for pair in clips for path in pair.paths]
    return backend == "vulkan" and bool(paths) and can_reopen(*paths) and may_be_containers(paths[:2], clips[0].raw)


def _seconds(clips: Sequence[Clips], options: ScoreOptions) -> float:
    """Return the seconds for which clips keep a GPU busy; infinity if that is not known.

    It follows from the first pair, and from the sizes of all files.
    """
    paths = [pair.distorted for pair in clips]
    if not paths or any(is_url(path) for path in paths) or not can_reopen(*paths):
        return math.inf
    try:
        with open_file(paths[0], clips[0].raw) as source:
            frames, info = source.expected, source.info
        sizes = [os.path.getsize(path) for path in paths if os.path.isfile(path)]
    except (VkssimError, OSError):
        return math.inf
    if frames is None or not os.path.isfile(paths[0]) or not sizes[0]:
        return math.inf
    decoded = frames * info.width * info.height * sum(sizes) / sizes[0]
    return decoded / options.selection.subsample / PIXELS_A_SECOND["gpu"]


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
