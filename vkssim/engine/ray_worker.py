"""Run the workers of a device on a node of a cluster, and count their work for Prometheus."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import ray
from ray.util.metrics import Counter

from ..errors import NoDeviceError, UnsuitableDeviceError, VkssimError
from ..host.devices import NVIDIA, DeviceInfo, DeviceKind, list_devices
from ..host.instance import shared_instance
from ..host.vectors import THREADS_VARIABLE
from ..utils.version import __version__
from .ranges import Event
from .task import Task, TaskResult, WorkerSpec
from .worker import engines_of, workers_of, workers_on

_COUNTERS = {
    "vkssim_frames": "Frames scored.",
    "vkssim_bytes_read": "Bytes read of clips.",
    "vkssim_busy_seconds": "Seconds spent on tasks by all workers of the device.",
    "vkssim_failures": "Tasks that ended in an error.",
}
"""The counters of each device, labelled with its name and node. Ray offers them to Prometheus on a port of each node."""


class RemoteWorkers:
    """The workers of a device in an actor of Ray. Call `begin` first; then each worker takes one task at a time."""

    def begin(self, version: str, spec: WorkerSpec, folder: str) -> WorkerSpec:
        """Choose the device, and return `spec` with it, its name and the number of its workers.

        The device is software or, for the kind ``"gpu"``, the GPU that Ray assigned. With `decode`, it has as many workers as
        keep its video engines busy, otherwise as many as `spec` says. Relative paths start from `folder`. Raises DeviceError if
        there is no such device, or if the process that started the run has another `version` of vkssim.
        """
        node = f"node {ray.util.get_node_ip_address()}"
        if version != __version__:
            raise UnsuitableDeviceError(f"{node} has vkssim {__version__}, and this is {version}; every node needs the same")
        with suppress(OSError):  # a node without that folder still takes URLs and absolute paths
            os.chdir(folder)
        spec = _with_device(spec, node)
        if spec.decode is not None:
            spec = replace(spec, decode=None, workers=workers_of(engines_of(spec)))
        self._workers = workers_on(spec, one_machine=False)
        tags = {"device": spec.label, "node": ray.get_runtime_context().get_node_id()}
        self._counters = {name: Counter(name, text, tuple(tags)) for name, text in _COUNTERS.items()}
        for counter in self._counters.values():
            counter.set_default_tags(tags)
        return spec

    def do(self, worker: int, task: Task) -> tuple[list[tuple[int, Event]], TaskResult | Exception]:
        """Return the events of a task of one of the workers, and its result or error; see `Worker.do`.

        Events are sent when the task has ended.
        """
        events: list[tuple[int, Event]] = []
        started = time.perf_counter()
        counts: dict[str, float] = {"vkssim_failures": 1}
        try:
            result = self._workers[worker].do(task, lambda job, event: events.append((job, event)))
            counts = {"vkssim_frames": result.frames, "vkssim_bytes_read": result.bytes}
        except VkssimError as error:
            return events, error
        finally:
            for name, amount in {**counts, "vkssim_busy_seconds": time.perf_counter() - started}.items():
                if amount:  # Ray's counters take no zero
                    self._counters[name].inc(amount)
        return events, result

    def is_alive(self) -> None:
        """Answer, also during tasks, so that the driver notices a process that is stopped."""


def _with_device(spec: WorkerSpec, node: str) -> WorkerSpec:
    """Return a description with the device of this process and its name."""
    if spec.backend != "vulkan":
        return replace(spec, label=f"{spec.backend} ({node})")
    if spec.kind == "gpu":
        assigned = ray.get_runtime_context().get_accelerator_ids()["GPU"]
        place = f"{node}, GPU {', '.join(assigned)}"
    else:
        assigned, place = None, node
        os.environ[THREADS_VARIABLE] = str(spec.threads)
    device = device_of(list_devices(shared_instance()), assigned)
    return replace(spec, device=str(device.uuid), label=f"{device.name} ({place})")


_BY_UUID = "GPU-"


def device_of(devices: Sequence[DeviceInfo], assigned: Sequence[str] | None) -> DeviceInfo:
    """Return the device of the GPU that a cluster assigned to this process, or the software device if `assigned` is None.

    `assigned` has the entries of CUDA_VISIBLE_DEVICES, of which there must be one. The entry is ``"GPU-"`` and a UUID or the
    beginning of one, or an index into the GPUs in the order of their PCI addresses. If there are GPUs of NVIDIA's, the index
    counts only these, because clusters do not count the graphics unit of a CPU. Raises NoDeviceError if no device fits
    or several do, and UnsuitableDeviceError if that device lacks something that the shaders need.
    """
    software = [device for device in devices if device.kind is DeviceKind.CPU]
    fitting = software[:1] if assigned is None else _gpus(devices, assigned)
    if len(fitting) != 1:
        requested = "software is requested" if assigned is None else f"Ray assigned GPU {', '.join(assigned) or 'none'}"
        there_are = "; ".join(f"{device.name} (UUID {device.uuid}, PCI {device.pci})" for device in devices) or "none"
        raise NoDeviceError(f"{requested}, which fits {len(fitting)} of Vulkan's devices. There are: {there_are}")
    (device,) = fitting
    if device.lacks:
        raise UnsuitableDeviceError(f"{device.description} cannot be used: it lacks {', '.join(device.lacks)}")
    return device


def _gpus(devices: Sequence[DeviceInfo], assigned: Sequence[str]) -> list[DeviceInfo]:
    if len(assigned) != 1:
        return []
    (entry,) = assigned
    gpus = [device for device in devices if device.kind is not DeviceKind.CPU]
    if entry.startswith(_BY_UUID):
        return [gpu for gpu in gpus if str(gpu.uuid).startswith(entry.removeprefix(_BY_UUID).lower())]
    counted = [gpu for gpu in gpus if gpu.vendor_id == NVIDIA] or gpus
    places = sorted({gpu.pci or "" for gpu in counted}, key=lambda place: (len(place), place))
    if "" in places or not entry.isdecimal() or int(entry) >= len(places):
        return []
    return [gpu for gpu in counted if gpu.pci == places[int(entry)]][:1]  # a second driver may list it again
