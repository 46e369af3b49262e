"""Run a plan: buffers and recorded command buffers in a ring of slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .api import vk
from .bound_plan import Binding, Timestamps, barrier
from .closing import Closable, closing_on_error
from .device import Device
from .errors import DeviceError, DeviceLostError
from .memory import Buffer, MemoryClass
from .pipelines import PipelineBuilder
from .plan import BufferSpec, Plan, Role
from .sharing import Timelines, TimelineSubmitter
from .submissions import SubmissionBudget, divide, work_of
from .waiting import check_answering, timeout_seconds, wait_for_fences

Bytes = npt.NDArray[np.uint8]


class _Work(NamedTuple):
    """The key of a recording: the plan for a number of frames, with or without copies."""

    frames: int
    copies: bool
    max_work: int | None
    """The work of one submission; None if one submission has all of it."""
    measured: bool
    """Whether there are timestamps for `SubmissionBudget`."""
    after: int | None = None
    """The number of the slot from which leads are copied."""


_Recording = tuple[Any, tuple[Any, ...]]  # the submission of the upload, if it has a queue of its own, and those of the kernels


@dataclass(eq=False)
class Slot:
    """One batch in flight: the memory for its frames and for its results.

    `inputs` and `outputs` are views of mapped memory, (batch, frame_bytes) uint8, by buffer name. Inputs that another API
    writes have `addresses` in their place, at which that API finds the memory. A slot over buffers of the caller's
    (`Executor.bind`) has none of these, nor fences.
    """

    number: int
    """Its place in `Executor.slots`; 0 for a slot over buffers of the caller's."""
    pool: Any
    """The pool of its command buffers."""
    inputs: Mapping[str, Bytes]
    outputs: Mapping[str, Bytes]
    addresses: Mapping[str, int]
    buffers: Mapping[str, Buffer]
    staging: Mapping[str, Buffer]
    """The buffers that are copied to the device before the kernels run; empty if memory is shared."""
    readback: Mapping[str, Buffer]
    """The buffers from which the host reads results."""
    tails: Mapping[str, Buffer]
    """The parts of the last frames that are the lead of the next batch, by the name of the lead."""
    binding: Binding
    fence: Any
    uploaded: Any
    """The semaphore between the upload queue and the kernels; None if both use one queue or nothing is uploaded."""
    upload_fence: Any
    """The fence of the upload. The kernels' fence implies it, but the validation layer does not follow semaphores."""
    recordings: dict[_Work, _Recording] = field(default_factory=dict)
    frames: int = 0
    """Frames of the submission in flight; 0 when there is none."""
    measured: bool = False
    """Whether the device measures the time of the submission in flight."""
    awaited: list[Any] = field(default_factory=list)
    """The fences of the submission in flight, the kernels' first."""


class Executor(Closable):
    """A plan on a device, with memory for its batches; use with `with`.

    Each slot has its own input and output buffers, so the host can fill one while the device works on another. Work buffers are
    shared, because the submissions of a queue run one after the other. Commands are recorded once per slot and number of
    frames. On a device that is slow for the size of the batch, they are several submissions; see `SubmissionBudget`.

    `kernels` are compiled kernels of the device, to which those of the plan are added, or a function that returns the SPIR-V of
    a module by name. `batch` is the largest number of frames of one submission, and `slots` the number of submissions that may
    be in flight. `profile` takes timestamps around every dispatch and the upload for `stage_times`; the upload then runs on the
    kernels' queue.

    With `timelines`, for which the device must have been opened for sharing, another API of the GPU writes the inputs in place
    of the host. `shared_buffer` makes a buffer of some bytes that the API reaches, and returns it with its address there; the
    stack ends its use. Without it, the API has the buffers of inputs and outputs, and hands them over and takes them back
    without the host: there are no slots, `bind` makes a slot over such buffers, and `start` runs it.

    Raises DeviceMemoryError if the buffers do not fit, and VkssimError if VKSSIM_TIMEOUT is not a valid time.
    """

    def __init__(
        self,
        device: Device,
        plan: Plan,
        kernels: PipelineBuilder | Callable[[str], bytes],
        *,
        batch: int = 1,
        slots: int = 2,
        profile: bool = False,
        timelines: Timelines | None = None,
        shared_buffer: Callable[[ExitStack, int], tuple[Buffer, int]] | None = None,
    ) -> None:
        plan.validate()
        self.plan = plan
        self.batch = batch
        self._device = device
        self._timeout = timeout_seconds()
        self._submitting = False
        self._shared_buffer = shared_buffer
        self._submitter = None if timelines is None else TimelineSubmitter(device, timelines)
        self._started = False  # whether something was started for which nobody waits
        self._timed: tuple[int, int] | None = None  # the turn and the work of a started slot whose time is measured
        self._stack = ExitStack()
        with closing_on_error(self._stack):
            self._pipelines = PipelineBuilder(device, self._stack, kernels) if callable(kernels) else kernels
            self._pipelines.build(plan.kernels)
            upload_family = None if profile or timelines is not None else device.upload_family
            self._upload_apart = upload_family is not None
            self._families = {device.queue_family} if upload_family is None else {device.queue_family, upload_family}
            self._pool = self._make_command_pool(self._stack, device.queue_family)
            self._upload_pool = self._make_command_pool(self._stack, upload_family) if upload_family is not None else self._pool
            self._work = {spec.name: self._make_work(spec) for spec in plan.buffers if spec.role is Role.WORK}
            self._leads = [spec for spec in plan.buffers if spec.role is Role.LEAD]
            self._work |= {spec.name: self._make_lead(self._stack, spec) for spec in self._leads}
            tables = [spec for spec in plan.buffers if spec.role is Role.TABLE]
            self._work |= {spec.name: self._make_table(spec) for spec in tables}
            stamped = profile and device.timestamp_bits
            self._stages = Timestamps(device, self._stack, slots, len(plan.dispatches) + 2) if stamped else None
            self._frame_work = work_of(plan)
            self._budget = SubmissionBudget(device.info.kind, batch * self._frame_work, can_measure=bool(device.timestamp_bits))
            self._batch_times = Timestamps(device, self._stack, max(slots, 1), 2) if self._budget.measuring else None
            self.slots = tuple(map(self._make_slot, range(slots)))

    # -- making -------------------------------------------------------------------------------------------------------

    def _make_command_pool(self, stack: ExitStack, family: int) -> Any:
        return self._device.create(stack, "CommandPool", vk.VkCommandPoolCreateInfo(queueFamilyIndex=family))

    def _make_lead(self, stack: ExitStack, spec: BufferSpec) -> Buffer:
        return Buffer(self._device, stack, spec.frame_bytes * spec.frames, MemoryClass.WORK)

    def _make_table(self, spec: BufferSpec) -> Buffer:
        """Return a buffer with the content of a table, in memory of the device."""
        device = self._device
        staging = Buffer(device, self._stack, spec.frame_bytes, MemoryClass.UPLOAD)
        assert staging.mapped is not None
        staging.mapped[:] = np.frombuffer(spec.content, np.uint8)
        if device.unified:
            return staging

        table = Buffer(device, self._stack, spec.frame_bytes, MemoryClass.WORK)
        region = vk.VkBufferCopy(size=spec.frame_bytes)
        self._start_transfer(lambda commands: vk.vkCmdCopyBuffer(commands, staging.handle, table.handle, 1, [region]))
        return table

    def _make_work(self, spec: BufferSpec) -> Buffer:
        buffer = Buffer(self._device, self._stack, spec.frame_bytes * self.batch, MemoryClass.WORK)
        if spec.begins_with_zeros:
            self._start_transfer(lambda commands: vk.vkCmdFillBuffer(commands, buffer.handle, 0, buffer.size, 0))
        return buffer

    def _start_transfer(self, record: Callable[[Any], None]) -> None:
        """Submit a transfer for which nobody waits; kernels come after it."""
        info = vk.VkCommandBufferAllocateInfo(
            commandPool=self._pool, level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1
        )
        (commands,) = vk.vkAllocateCommandBuffers(self._device.handle, info)
        flags = vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
        vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo(flags=flags))
        record(commands)
        vk.vkEndCommandBuffer(commands)
        self._started = True
        self._device.submit(self._device.queue, [_submission(commands)], None)

    def bind(self, stack: ExitStack, buffers: Mapping[str, Buffer]) -> Slot:
        """Return a slot over buffers of the caller's, for `start`: one for each input and output of the plan.

        The stack destroys it; the device must not use it then.
        """
        pool = self._make_command_pool(stack, self._device.queue_family)
        bound = {**self._work, **buffers}
        binding = Binding(self._device, stack, self.plan, self._pipelines, bound)
        return Slot(0, pool, {}, {}, {}, bound, {}, {}, {}, binding, fence=None, uploaded=None, upload_fence=None)

    def _make_slot(self, number: int) -> Slot:
        device = self._device
        buffers: dict[str, Buffer] = dict(self._work)
        staging: dict[str, Buffer] = {}
        readback: dict[str, Buffer] = {}
        addresses: dict[str, int] = {}
        for spec in self.plan.buffers:
            size = spec.frame_bytes * self.batch
            if spec.role is Role.INPUT and self._shared_buffer is not None:
                buffers[spec.name], addresses[spec.name] = self._shared_buffer(self._stack, size)
            elif spec.role is Role.INPUT:
                staging[spec.name] = Buffer(device, self._stack, size, MemoryClass.UPLOAD)
                # If memory is shared, the kernels read the memory that the host wrote, without a copy.
                buffers[spec.name] = (
                    staging[spec.name]
                    if device.unified
                    else Buffer(device, self._stack, size, MemoryClass.WORK, self._families)
                )
            elif spec.role in (Role.OUTPUT, Role.LARGE_OUTPUT):
                buffers[spec.name] = readback[spec.name] = Buffer(device, self._stack, size, MemoryClass.READBACK)
                if spec.role is Role.LARGE_OUTPUT and not device.unified:
                    buffers[spec.name] = Buffer(device, self._stack, size, MemoryClass.WORK)

        uploaded = upload_fence = None
        if self._upload_apart:
            uploaded = device.create(self._stack, "Semaphore", vk.VkSemaphoreCreateInfo())
            upload_fence = device.create(self._stack, "Fence", vk.VkFenceCreateInfo())
        return Slot(
            number,
            self._pool,
            inputs={name: self._frames_of(buffer) for name, buffer in staging.items()},
            outputs={name: self._frames_of(buffer) for name, buffer in readback.items()},
            addresses=addresses,
            buffers=buffers,
            staging={} if device.unified else staging,
            readback=readback,
            tails={spec.name: self._make_lead(self._stack, spec) for spec in self._leads},
            binding=Binding(device, self._stack, self.plan, self._pipelines, buffers),
            fence=device.create(self._stack, "Fence", vk.VkFenceCreateInfo()),
            uploaded=uploaded,
            upload_fence=upload_fence,
        )

    def _frames_of(self, buffer: Buffer) -> Bytes:
        assert buffer.mapped is not None
        return buffer.mapped.reshape(self.batch, -1)

    # -- recording ----------------------------------------------------------------------------------------------------

    def _recording(self, slot: Slot, work: _Work) -> _Recording:
        """Return the recorded commands, which are recorded at the first call."""
        recording = slot.recordings.get(work)
        if recording is not None:
            return recording
        upload = None
        first, *following = self._record_kernels(slot, work)
        if self._upload_apart and work.copies:
            commands = self._begin(self._upload_pool, slot)
            self._record_upload(commands, slot, work.frames)
            vk.vkEndCommandBuffer(commands)
            upload = _submission(commands, signal=slot.uploaded)
        kernels = _submission(first, wait=slot.uploaded if upload else None), *map(_submission, following)
        slot.recordings[work] = upload, kernels
        return upload, kernels

    def _begin(self, pool: Any, slot: Slot) -> Any:
        info = vk.VkCommandBufferAllocateInfo(commandPool=pool, level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1)
        commands = vk.vkAllocateCommandBuffers(self._device.handle, info)[0]
        # A slot that is started may be so again before the device has finished it.
        flags = 0 if slot.fence is not None else vk.VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT
        vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo(flags=flags))
        return commands

    def _record_kernels(self, slot: Slot, work: _Work) -> list[Any]:
        """Return the command buffers of the submissions; the first one has the upload, the last one has the download."""
        plan, frames = self.plan, work.frames
        divided = divide(plan, frames, work.max_work)
        stages, batch = self._stages, self._batch_times if work.measured else None
        recorded: list[Any] = []

        def stamp(timestamps: Timestamps | None) -> None:
            if timestamps is not None:
                timestamps.write(commands, slot.number)

        for number, submission in enumerate(divided):
            commands = self._begin(slot.pool, slot)
            if number == 0:
                for timestamps in filter(None, (stages, batch)):
                    timestamps.reset(commands, slot.number)
                stamp(stages)
                if work.copies and not self._upload_apart:
                    self._record_upload(commands, slot, frames)
                stamp(stages)
                stamp(batch)
                if work.after is not None:
                    self._record_leads(commands, self.slots[work.after])
            slot.binding.record(commands, submission, lambda: stamp(stages))
            if number == len(divided) - 1:
                stamp(batch)
                if self._leads:
                    self._record_tails(commands, slot, frames)
                if work.copies:
                    self._record_download(commands, slot, frames)
                if slot.readback:
                    written = vk.VK_ACCESS_SHADER_WRITE_BIT | vk.VK_ACCESS_TRANSFER_WRITE_BIT
                    barrier(commands, written, vk.VK_ACCESS_HOST_READ_BIT, vk.VK_PIPELINE_STAGE_HOST_BIT)
            vk.vkEndCommandBuffer(commands)
            recorded.append(commands)
        return recorded

    def _record_upload(self, commands: Any, slot: Slot, frames: int) -> None:
        for name, source in slot.staging.items():
            region = vk.VkBufferCopy(size=self.plan.buffer(name).frame_bytes * frames)
            vk.vkCmdCopyBuffer(commands, source.handle, slot.buffers[name].handle, 1, [region])

    def _record_leads(self, commands: Any, before: Slot) -> None:
        transferred = vk.VK_ACCESS_TRANSFER_READ_BIT | vk.VK_ACCESS_TRANSFER_WRITE_BIT
        barrier(commands, vk.VK_ACCESS_TRANSFER_WRITE_BIT, transferred, vk.VK_PIPELINE_STAGE_TRANSFER_BIT)
        for spec in self._leads:
            region = vk.VkBufferCopy(size=spec.frame_bytes * spec.frames)
            vk.vkCmdCopyBuffer(commands, before.tails[spec.name].handle, self._work[spec.name].handle, 1, [region])

    def _record_tails(self, commands: Any, slot: Slot, frames: int) -> None:
        """Keep the last frames' part of each lead: memory of inputs may be filled anew before the next batch is submitted.

        If the batch has fewer frames than a lead, its own lead has those before them.
        """
        transferred = vk.VK_ACCESS_TRANSFER_READ_BIT | vk.VK_ACCESS_TRANSFER_WRITE_BIT
        barrier(commands, vk.VK_ACCESS_TRANSFER_WRITE_BIT, transferred, vk.VK_PIPELINE_STAGE_TRANSFER_BIT)
        for spec in self._leads:
            tail, lead = slot.tails[spec.name].handle, self._work[spec.name].handle
            for place in range(spec.frames):
                frame = frames - spec.frames + place
                source, start = slot.buffers[spec.of].handle, frame * self.plan.buffer(spec.of).frame_bytes
                if frame < 0:
                    source, start = lead, (spec.frames + frame) * spec.frame_bytes
                region = vk.VkBufferCopy(srcOffset=start, dstOffset=place * spec.frame_bytes, size=spec.frame_bytes)
                vk.vkCmdCopyBuffer(commands, source, tail, 1, [region])

    def _record_download(self, commands: Any, slot: Slot, frames: int) -> None:
        copied = {name: target for name, target in slot.readback.items() if target is not slot.buffers[name]}
        if copied:
            read, stage = vk.VK_ACCESS_TRANSFER_READ_BIT, vk.VK_PIPELINE_STAGE_TRANSFER_BIT
            barrier(commands, vk.VK_ACCESS_SHADER_WRITE_BIT, read, stage)
        for name, target in copied.items():
            region = vk.VkBufferCopy(size=self.plan.buffer(name).frame_bytes * frames)
            vk.vkCmdCopyBuffer(commands, slot.buffers[name].handle, target.handle, 1, [region])

    # -- running ------------------------------------------------------------------------------------------------------

    def submit(self, slot: Slot, frames: int, *, copies: bool = True, written: int = 0, after: Slot | None = None) -> None:
        """Start the plan on the first `frames` frames of the slot's inputs. The slot must not be in flight.

        `after` is the slot of the previous frames, from which leads are copied; nothing was submitted to it since. Without it,
        leads have no meaning.

        The kernels wait until the timeline of an external API has the number `written`, which never falls from call to call.

        Without `copies` it uses the inputs of the last upload, and large outputs stay on the device. This is for measuring
        kernels.
        """
        if slot.frames:
            raise RuntimeError("the slot is in flight; wait for it first")
        check_answering(self._device)
        work = self._work_of(frames, copies, after if self._leads else None)
        upload, kernels = self._recording(slot, work)
        self._submitting = True  # until the slot has its fences: Ctrl-C may come in between
        if upload is not None:
            self._device.submit(self._device.upload_queue, [upload], slot.upload_fence)
        running = upload is not None
        try:
            for number, submission in enumerate(kernels):
                # One call for each: drivers may join the submissions of a call.
                fence = slot.fence if number == len(kernels) - 1 else None
                if self._submitter is not None and number == 0:
                    self._submitter.submit(submission.pCommandBuffers[0], written, fence)
                else:
                    self._device.submit(self._device.queue, [submission], fence)
                running = True
        except DeviceError:
            if running:
                with suppress(DeviceError):
                    self._device.wait_idle()
                    if upload is not None:
                        vk.vkResetFences(self._device.handle, 1, [slot.upload_fence])
            self._submitting = False
            raise
        slot.frames, slot.measured = frames, work.measured
        slot.awaited = [slot.fence] if upload is None else [slot.fence, slot.upload_fence]
        self._submitting = False

    def start(self, slot: Slot, frames: int, turn: int) -> None:
        """Start the plan on the first `frames` frames of a slot of `bind`, for which the host need not wait.

        The plan begins when the first timeline has the number `turn`, which rises from call to call. The second timeline gets
        this number when the plan is done.
        """
        check_answering(self._device)
        assert self._submitter is not None
        if self._timed is not None and self._submitter.is_done(self._timed[0]):
            self._note(0, self._timed[1])
            self._timed = None
        work = self._work_of(frames, copies=False)
        if work.measured and self._timed is not None:  # there is one pair of timestamps
            work = work._replace(measured=False)
        _, kernels = self._recording(slot, work)
        self._started = True
        last = len(kernels) - 1
        for number, submission in enumerate(kernels):
            self._submitter.submit(submission.pCommandBuffers[0], turn, waits=number == 0, signals=number == last)
        if work.measured:
            self._timed = turn, frames * self._frame_work

    def _note(self, number: int, work: int) -> None:
        """Learn from the time of a batch that the device has finished."""
        assert self._batch_times is not None
        (seconds,) = self._batch_times.seconds(number)
        self._budget.note(work, seconds)

    def _work_of(self, frames: int, copies: bool, after: Slot | None = None) -> _Work:
        # Read once: another thread may wait for a batch, and change them.
        max_work, measured = self._budget.max_work, self._budget.measuring
        if max_work is not None and frames * self._frame_work <= max_work:
            max_work = None
        return _Work(frames, copies, max_work, measured, None if after is None else after.number)

    def wait(self, slot: Slot) -> int:
        """Wait for the slot's submission and return its number of frames; `slot.outputs` then holds its results.

        Raises DeviceLostError if the device was lost, and DeviceTimeoutError if it does not finish within VKSSIM_TIMEOUT. After
        a timeout the device is abandoned: nothing waits for it again, and its objects are left alone.
        """
        self._wait_for_fences(slot)
        frames, slot.frames = slot.frames, 0  # first: after an interruption nobody may wait for fences that were reset
        vk.vkResetFences(self._device.handle, len(slot.awaited), slot.awaited)
        for name in slot.outputs:
            slot.readback[name].refresh()
        if slot.measured:
            self._note(slot.number, frames * self._frame_work)
        return frames

    def _wait_for_fences(self, slot: Slot) -> None:
        frames = "1 frame" if slot.frames == 1 else f"{slot.frames} frames"
        wait_for_fences(self._device, slot.awaited, self._timeout, frames)

    def is_done(self, slot: Slot) -> bool:
        """Return True if `wait` would return at once."""
        try:
            vk.vkGetFenceStatus(self._device.handle, slot.fence)
        except vk.module.VkNotReady:
            return False
        return True

    # -- profile ------------------------------------------------------------------------------------------------------

    def stage_times(self, slot: Slot) -> dict[str, float]:
        """Return the seconds of each stage of the slot's last batch by label, `upload` first; empty without `profile`."""
        if self._stages is None:
            return {}
        seconds = self._stages.seconds(slot.number)
        times: dict[str, float] = {}
        for label, value in zip(["upload", *(d.label for d in self.plan.dispatches)], seconds, strict=True):
            times[label] = times.get(label, 0.0) + value
        return times

    # -- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for submissions in flight and destroy everything; a second call does nothing.

        If the device does not answer, nothing is destroyed.
        """
        for slot in getattr(self, "slots", ()):
            if slot.frames:
                try:
                    self._wait_for_fences(slot)
                except DeviceLostError:
                    pass  # a lost device does not use the slot
                except DeviceError:  # `close` must not raise
                    self._device.abandoned = True
                slot.frames = 0
        if (self._submitting or self._started) and not self._device.abandoned:
            with suppress(DeviceError):
                self._device.wait_idle()
        self._stack.close()


def _submission(commands: Any, *, wait: Any = None, signal: Any = None) -> Any:
    return vk.VkSubmitInfo(
        pCommandBuffers=[commands],
        pWaitSemaphores=None if wait is None else [wait],
        pWaitDstStageMask=None if wait is None else [vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT],
        pSignalSemaphores=None if signal is None else [signal],
    )
