"""The Vulkan backend: builds the plan of a frame from its metrics' parts and runs it on a device."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, zip_longest

import numpy as np
import platformdirs

from ..features.base import Doubles, FeaturePlan, FrameScorer
from ..features.planes import SAMPLES, KernelShape, PlanePair, ingest
from ..formats import FrameFormat
from ..host.device import Device
from ..host.devices import choose_device, list_devices
from ..host.executor import Bytes, Executor, Slot
from ..host.instance import shared_instance
from ..host.plan import Dispatch, Plan, Role
from ..shaders import load_module
from ..shaders.interface import Shape
from ..types import Samples
from .base import Backend, BackendInfo, Batch

_BATCH_PIXELS = {Shape.STRIP: 1 << 21, Shape.STAGED: 1 << 24}
_LARGEST_BATCH = {Shape.STRIP: 8, Shape.STAGED: 32}


def frame_plan(frame: FrameFormat, scorers: Sequence[FrameScorer], shape: KernelShape) -> tuple[Plan, list[FeaturePlan]]:
    """The plan of a frame for some metrics, and the part of each of them; no device is needed.

    The metrics share the samples and, for floats, the ingest. Their steps run side by side.
    """
    raw = PlanePair.raw(frame)
    buffers = [raw.spec(Role.INPUT)]
    steps: list[tuple[Dispatch, ...]] = []
    planes = raw
    if frame.needs_ingest:
        planes = PlanePair.floats("planes", frame.width, frame.height)
        buffers.append(planes.spec(Role.WORK))
        steps.append(ingest(shape, raw, planes, frame.factor))
    parts = [scorer.plan(shape, planes) for scorer in scorers]
    for part in parts:
        buffers.extend(part.buffers)
    steps += [
        tuple(chain.from_iterable(side_by_side)) for side_by_side in zip_longest(*(part.steps for part in parts), fillvalue=())
    ]
    return Plan(tuple(buffers), tuple(steps)), parts


class VulkanBackend(Backend):
    """Runs on one Vulkan device.

    Parameters
    ----------
    frame
        Size and samples of the frames.
    scorers
        The metrics; each at most once.
    device
        Index, name or UUID of the device; see `host.devices.choose_device`.
    batch
        Frames of a submission; None chooses by the size of the frames and the kind of device.
    slots
        Batches that may be on their way at a time.
    profile
        Take the time of every stage.

    Raises
    ------
    DeviceError
        There is no device that will do, or the buffers do not fit.

    """

    def __init__(
        self,
        frame: FrameFormat,
        scorers: Sequence[FrameScorer],
        *,
        device: str | int | None = None,
        batch: int | None = None,
        slots: int = 4,
        profile: bool = False,
    ) -> None:
        self._scorers = scorers
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._profile = profile
        self._stack = ExitStack()
        with ExitStack() as guard:
            guard.callback(self._stack.close)
            instance = shared_instance()
            if instance.validation:
                self._stack.enter_context(instance)
            info = choose_device(list_devices(instance), device)
            self.device = self._stack.enter_context(Device(info))
            self.info = BackendInfo("vulkan", info.name, info.driver)
            shape = KernelShape.for_device(info)
            plan, self._parts = frame_plan(frame, scorers, shape)
            self._executor = self._stack.enter_context(
                Executor(
                    self.device,
                    plan,
                    load_module,
                    batch=batch or _choose_batch(frame, plan, shape.shape, info.max_storage_bytes),
                    slots=slots,
                    cache_folder=platformdirs.user_cache_path("vkssim"),
                    profile=profile,
                )
            )
            self.batches = tuple(_make_batch(frame, slot) for slot in self._executor.slots)
            guard.pop_all()

    @property
    def plan(self) -> Plan:
        """What is run for a batch."""
        return self._executor.plan

    def submit(self, batch: Batch, frames: int) -> None:
        """Start the plan on the batch."""
        self._executor.submit(batch.slot, frames)

    def is_done(self, batch: Batch) -> bool:
        """True where the device has finished the batch."""
        return self._executor.is_done(batch.slot)

    def collect(self, batch: Batch) -> list[Doubles]:
        """Wait for the batch and add its partial sums in double."""
        frames = self._executor.wait(batch.slot)
        began = time.perf_counter()
        means = []
        for scorer, part in zip(self._scorers, self._parts, strict=True):
            sums = batch.slot.outputs[part.partials.name][:frames].view(np.float32)
            means.append(scorer.means(sums))
        if self._profile:
            readback = time.perf_counter() - began
            for stage, seconds in {**self._executor.stage_times(batch.slot), "readback": readback}.items():
                self._seconds[stage] += seconds
        return means

    def stage_seconds(self) -> Mapping[str, float]:
        """Seconds of each stage so far: device stages from timestamps, then `readback`, the host's; empty without `profile`."""
        return dict(self._seconds)

    def close(self) -> None:
        """Wait for the device and destroy everything on it."""
        self._stack.close()


def _choose_batch(frame: FrameFormat, plan: Plan, shape: Shape, max_storage_bytes: int) -> int:
    largest_buffer = max(spec.frame_bytes for spec in plan.buffers)
    wanted = min(_LARGEST_BATCH[shape], _BATCH_PIXELS[shape] // (frame.width * frame.height))
    return max(1, min(wanted, max_storage_bytes // largest_buffer))


def _make_batch(frame: FrameFormat, slot: Slot) -> Batch:
    memory: Bytes = slot.inputs[SAMPLES]
    rows = memory.reshape(len(memory), 2, frame.height, -1)[..., : frame.row_bytes]
    planes: Samples = rows.view(frame.dtype)
    return Batch(planes[:, 0], planes[:, 1], slot)
