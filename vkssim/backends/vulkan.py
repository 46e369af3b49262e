"""The Vulkan backend: it joins the plans of the metrics to the plan of a frame, and runs it on a device."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, zip_longest

import numpy as np

from ..host.api import check_fork
from ..host.closing import closing_on_error
from ..host.devices import DeviceInfo
from ..host.executor import Bytes, Executor, Slot
from ..host.plan import BufferSpec, Dispatch, Plan, Role
from ..metrics.base import FeaturePlan
from ..metrics.dispatches import SAMPLES, KernelShape, PlanePair, deinterleave, ingest, largest_sample
from ..metrics.plane_metrics import PLANES, PlaneMetrics
from ..shaders.interface import Shape
from ..types import BackendInfo, Doubles, ExternalFrame, ExternalPlane, FrameFormat, Rows, Samples
from .base import Backend, Batch, LargestSamples, find_out_of_range, first_out_of_range
from .cuda import CudaInputs
from .failures import fit_batch, largest_batch
from .sessions import Session, opened_session

_BATCH_PIXELS = {Shape.STRIP: 1 << 21, Shape.STAGED: 1 << 25}
_LARGEST_BATCH = {Shape.STRIP: 8, Shape.STAGED: 32}

# Batches of frames that are already on the GPU are larger: nothing is uploaded while they are collected, and more frames share
# the host's work for a batch.
_BATCH_PIXELS_ON_DEVICE = 1 << 26
_PART_OF_MEMORY = 16


def info_of(device: DeviceInfo) -> BackendInfo:
    """Return the backend ``"vulkan"`` on a device, as reports name it."""
    return BackendInfo("vulkan", device.name, device.driver)


def frame_plan(planes: Sequence[PlaneMetrics], shape: KernelShape) -> tuple[Plan, list[list[FeaturePlan]]]:
    """Return the plan of a frame, and the share of each plane's metrics in it; no device is needed.

    Independent work runs in the same steps: the planes, and the metrics of a plane, which share its samples and, for floats,
    their conversion. The names of a plane's buffers and stages begin with the name of the plane, except those of the luma.
    Chroma of an external format arrives with Cb and Cr side by side, and is separated while the luma's first step runs.
    """
    plans, of_metrics = [], []
    for plane in planes:
        plan, parts = _plane_plan(plane, shape)
        prefix = _prefix(plane)
        plans.append(_prefixed(plan, prefix))
        of_metrics.append([replace(part, partials=_renamed(part.partials, prefix)) for part in parts])
    buffers = tuple(chain.from_iterable(plan.buffers for plan in plans))
    steps = [plan.steps for plan in plans]
    if len(planes) > 1 and planes[0].format.external:
        interleaved = PlanePair.interleaved(planes[1].format)
        cb, cr = (_prefix(plane) + SAMPLES for plane in planes[1:])
        buffers += (interleaved.spec(Role.INPUT),)
        steps[1:] = [((deinterleave(shape, interleaved, cb, cr),), *_side_by_side(steps[1:]))]
    return Plan(buffers, _side_by_side(steps)), of_metrics


def _prefix(plane: PlaneMetrics) -> str:
    return "" if plane.name == PLANES[0] else f"{plane.name}."


def _plane_plan(plane: PlaneMetrics, shape: KernelShape) -> tuple[Plan, list[FeaturePlan]]:
    raw = PlanePair.raw(plane.format)
    is_separated = plane.format.external and plane.name != PLANES[0]  # a kernel writes the samples, see `frame_plan`
    buffers = [raw.spec(Role.WORK if is_separated else Role.INPUT)]
    steps: tuple[tuple[Dispatch, ...], ...] = ()
    samples = raw
    if plane.format.needs_ingest:
        samples = PlanePair.floats("planes", raw.width, raw.height)
        buffers.append(samples.spec(Role.WORK))
        steps = (ingest(shape, raw, samples),)
    parts: list[FeaturePlan] = []
    for scorer in plane.scorers:
        part = scorer.plan(shape, samples)
        if {spec.name for spec in part.buffers} & {spec.name for spec in buffers}:
            part = _apart(part, f"{scorer.text}.")  # the same metric with other options has the same names
        buffers.extend(part.buffers)
        parts.append(part)
    return Plan(tuple(buffers), steps + _side_by_side([part.steps for part in parts])), parts


def _side_by_side(parts: Sequence[Sequence[tuple[Dispatch, ...]]]) -> tuple[tuple[Dispatch, ...], ...]:
    return tuple(tuple(chain.from_iterable(steps)) for steps in zip_longest(*parts, fillvalue=()))


def _prefixed(plan: Plan, prefix: str) -> Plan:
    """Return a plan with other names of its stages and of its own buffers."""
    own = {spec.name: prefix + spec.name for spec in plan.buffers}

    def renamed(dispatch: Dispatch) -> Dispatch:
        sources, targets = (tuple(own.get(name, name) for name in names) for names in (dispatch.sources, dispatch.targets))
        return replace(dispatch, label=prefix + dispatch.label, sources=sources, targets=targets)

    steps = tuple(tuple(renamed(dispatch) for dispatch in step) for step in plan.steps)
    return Plan(tuple(_renamed(spec, prefix) for spec in plan.buffers), steps)


def _apart(part: FeaturePlan, prefix: str) -> FeaturePlan:
    plan = _prefixed(Plan(part.buffers, part.steps), prefix)
    return replace(part, buffers=plan.buffers, steps=plan.steps, partials=_renamed(part.partials, prefix))


def _renamed(spec: BufferSpec, prefix: str) -> BufferSpec:
    return replace(spec, name=prefix + spec.name)


def with_largest_samples(plan: Plan, planes: Sequence[PlaneMetrics], shape: KernelShape) -> tuple[Plan, list[Dispatch | None]]:
    """Return the plan with dispatches in its first step that find the largest samples, to detect samples beyond the depth.

    Each plane has one dispatch, or None if its type cannot hold a larger sample.
    """
    dispatches: list[Dispatch | None] = []
    buffers = []
    for plane in planes:
        prefix = _prefix(plane)
        if not plane.format.may_be_exceeded:
            dispatches.append(None)
            continue
        raw = replace(PlanePair.raw(plane.format), buffer=prefix + SAMPLES)
        dispatch, buffer = largest_sample(shape, raw, f"{prefix}largest")
        dispatches.append(dispatch)
        buffers.append(buffer)
    first, *rest = plan.steps
    return Plan((*plan.buffers, *buffers), ((*first, *filter(None, dispatches)), *rest)), dispatches


class VulkanBackend(Backend):
    """A backend on one Vulkan device. `planes` are the planes of the frames and their metrics, luma first.

    See `host.devices.choose_device` for `device`; that of a session stays open. `batch` is the largest number of frames of a
    submission; None chooses it by the size of the frames and the kind of device. If the device has not enough memory, batches
    get smaller, and `warnings` says so. `slots` is the number of batches that may be in flight. `profile` measures the time of
    every stage. `shape` is the shape of the kernels, for tests and for the gate; None chooses it by the kind of device. Raises
    DeviceError if there is no usable device, or if the buffers of one frame do not fit.
    """

    def __init__(
        self,
        planes: Sequence[PlaneMetrics],
        *,
        device: str | int | Session | None = None,
        batch: int | None = None,
        slots: int = 4,
        profile: bool = False,
        shape: Shape | None = None,
    ) -> None:
        self.planes = planes
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._profile = profile
        self._stack = ExitStack()
        with closing_on_error(self._stack):
            external = any(plane.format.external for plane in planes)
            session = opened_session(self._stack, device, sharing=external)
            self.device, pipelines = session.device, session.pipelines
            self._inputs = CudaInputs(self.device, self._stack) if external else None
            shared = {} if self._inputs is None else self._inputs.shared
            info = self.device.info
            self.info = info_of(info)
            kernels = KernelShape.for_device(info, shape)
            plan, self._parts = frame_plan(planes, kernels)
            self._host_looks = kernels.shape is Shape.STRIP
            self._largest: list[Dispatch | None] = [None] * len(planes)
            if not self._host_looks:
                plan, self._largest = with_largest_samples(plan, planes, kernels)

            def make(frames: int) -> Executor:
                return Executor(self.device, plan, pipelines, batch=frames, slots=slots, profile=profile, **shared)

            possible = largest_batch(self.device, plan, slots)
            frames = batch or _choose_batch(planes, plan, kernels.shape, info.max_storage_bytes, possible)
            executor, self.warnings = fit_batch(self.device, frames, make, possible, session.make_room)
            self._executor = self._stack.enter_context(executor)
            self.batches = tuple(_make_batch(planes, slot, executor.batch) for slot in executor.slots)

        self._free = list(self.batches)
        self._taking = threading.Lock()

    def take(self, number: int) -> tuple[Batch, ...] | None:
        """Return batches that no other user of the backend has; None if there are too few."""
        with self._taking:
            if number > len(self._free):
                return None
            taken, self._free = self._free[:number], self._free[number:]
            return tuple(taken)

    def give_back(self, batches: Sequence[Batch]) -> None:
        """Let the next user have batches, none of which is in flight."""
        with self._taking:
            self._free += batches

    @property
    def plan(self) -> Plan:
        """Return the plan of a batch."""
        return self._executor.plan

    def check_process(self) -> None:
        """Raise ForkError in a fork of the process that opened the device."""
        check_fork()

    def submit(self, batch: Batch, frames: int, after: Batch | None = None) -> None:
        """Start the plan on the batch."""
        batch.before, batch.frames = 0 if after is None else after.before + after.frames, frames
        if self._host_looks:
            batch.out_of_range = find_out_of_range(self.planes, batch, frames)
        written = 0 if self._inputs is None else self._inputs.written()
        self._executor.submit(batch.slot, frames, written=written, after=None if after is None else after.slot)

    def is_done(self, batch: Batch) -> bool:
        """Return True if the device has finished the batch."""
        return self._executor.is_done(batch.slot)

    def collect(self, batch: Batch) -> list[list[Doubles]]:
        """Wait for the batch and add its partial sums in double precision."""
        frames = self._executor.wait(batch.slot)
        began = time.perf_counter()
        if not self._host_looks:
            batch.out_of_range = first_out_of_range(
                self.planes, [self._largest_of(batch, found, frames) for found in self._largest]
            )
        means = [
            [
                scorer.means(batch.slot.outputs[part.partials.name][:frames].view(np.float32), part)
                for scorer, part in zip(plane.scorers, parts, strict=True)
            ]
            for plane, parts in zip(self.planes, self._parts, strict=True)
        ]
        for plane, of_plane in zip(self.planes, means, strict=True):
            for scorer, mean in zip(plane.scorers, of_plane, strict=True):
                mean[: max(0, scorer.distance - batch.before)] = 0.0
        if self._profile:
            readback = time.perf_counter() - began
            for stage, seconds in {**self._executor.stage_times(batch.slot), "readback": readback}.items():
                self._seconds[stage] += seconds
        return means

    def _largest_of(self, batch: Batch, dispatch: Dispatch | None, frames: int) -> LargestSamples | None:
        if dispatch is None:
            return None
        groups = dispatch.groups[0] * dispatch.groups[1]
        found: LargestSamples = batch.slot.outputs[dispatch.targets[0]][:frames].view(np.uint32)
        largest: LargestSamples = found[:, : 2 * groups].reshape(frames, 2, groups).max(axis=2)
        return largest

    def stage_seconds(self) -> Mapping[str, float]:
        """Return the seconds of each stage so far; empty without `profile`.

        Stages on the device come from timestamps; `readback` is time of the host.
        """
        return dict(self._seconds)

    def close(self) -> None:
        """Wait for the device and destroy everything on it."""
        self._stack.close()


def _choose_batch(planes: Sequence[PlaneMetrics], plan: Plan, shape: Shape, max_storage_bytes: int, possible: int) -> int:
    """Return how many frames a batch has. For `possible` frames the device could have memory."""
    largest_buffer = max(spec.frame_bytes for spec in plan.buffers)
    pixels = planes[0].format.width * planes[0].format.height
    wanted = _BATCH_PIXELS[shape] // pixels
    if planes[0].format.external:
        wanted = max(wanted, min(_BATCH_PIXELS_ON_DEVICE // pixels, possible // _PART_OF_MEMORY))
    wanted = min(_LARGEST_BATCH[shape], wanted)
    return max(1, min(wanted, max_storage_bytes // largest_buffer))


def _make_batch(planes: Sequence[PlaneMetrics], slot: Slot, frames: int) -> Batch:
    if planes[0].format.external:
        formats = [plane.format for plane in planes]
        return Batch((), (), (_external(slot, formats, frames, 0), _external(slot, formats, frames, 1)), slot)
    pairs = [_pair(slot.inputs[_prefix(plane) + SAMPLES], plane.format) for plane in planes]
    return Batch(tuple(pair[:, 0] for pair in pairs), tuple(pair[:, 1] for pair in pairs), slot=slot)


def _pair(memory: Bytes, plane: FrameFormat) -> Samples:
    rows = memory.reshape(len(memory), 2, plane.height, -1)[..., : plane.row_bytes]
    samples: Samples = rows.view(plane.dtype)
    return samples


def _external(slot: Slot, formats: Sequence[FrameFormat], frames: int, clip: int) -> tuple[ExternalFrame, ...]:
    """Return the places of the frames of a clip, for the API that writes them."""
    luma, *chroma = formats
    layouts = [PlanePair.raw(luma), *(PlanePair.interleaved(plane) for plane in chroma[:1])]

    def place(layout: PlanePair, frame: int) -> ExternalPlane:
        address = slot.addresses[layout.buffer] + (2 * frame + clip) * layout.plane_bytes
        return ExternalPlane(Rows(address, layout.row_bytes), layout.height, layout.width * layout.code_bytes, luma.shift)

    return tuple(tuple(place(layout, frame) for layout in layouts) for frame in range(frames))
