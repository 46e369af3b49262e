"""Compute losses of CUDA tensors with Vulkan on the same GPU, with shared memory and semaphores, without copies to the host.

Tensors that `empty` made are in shared memory. Other tensors are copied once, on the device. Two timeline semaphores
synchronise PyTorch's stream with Vulkan's queue. The host waits for neither.
"""

from __future__ import annotations

import math
import uuid
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import TypeVar

import torch
from torch import Tensor

from ..backends.cuda import Cuda
from ..backends.loss_engine import LossExecutor, LossStep
from ..backends.selftest import check
from ..backends.sessions import Session, use_engine
from ..errors import DeviceError, DeviceLostError, DeviceMemoryError, UnsuitableDeviceError
from ..host.api import check_fork, is_forked
from ..host.closing import closing_on_error
from ..host.device import Device
from ..host.executor import Executor, Slot
from ..host.sharing import Timelines
from ..loss.plan import DISTORTED, GRADIENT, MEANS, REFERENCE
from ..loss.spec import Negative
from ..utils.thread_pool import Closable

_GRANULE = 1 << 21
_MAX_IDLE = 16
_MAX_LOSSES = 8
_MAX_BOUND = 16

_OUT_OF_MEMORY = (DeviceMemoryError, torch.OutOfMemoryError)

Result = TypeVar("Result")


def empty(shape: Sequence[int], *, device: torch.device | str | int | None = None) -> Tensor:
    """Return an uninitialised float32 tensor of a CUDA device, in memory that is shared with Vulkan, so losses do not copy it.

    Parameters
    ----------
    shape : sequence of int
        The shape of the tensor.
    device : torch.device, str or int, optional
        The CUDA device; by default the current one.

    Returns
    -------
    Tensor
        The tensor is contiguous. A view that begins at another address is copied like any other tensor.

    Raises
    ------
    DeviceError
        There is no CUDA device, or memory cannot be shared with it.

    """
    if not torch.cuda.is_available():
        raise DeviceError("no CUDA device: memory is shared with CUDA only; tensors on the CPU need no copy to be avoided")
    place = torch.device("cuda" if device is None else device if not isinstance(device, int) else f"cuda:{device}")
    return use_sharing(place, lambda sharing: sharing.lease(tuple(shape), sharing.stream().cuda_stream))


_staging_allowed = False  # whether tensors may go through the memory of the host


class host_staging:  # noqa: N801 - reads as a function, as torch.no_grad does
    """A permission for copies through pinned host memory, for tensors whose memory cannot be shared with Vulkan.

    A call allows them from then on, and a `with` statement until its end. Otherwise such tensors raise DeviceError, because the
    copies take many times as long as the loss itself.

    Parameters
    ----------
    allowed : bool
        False forbids them again.

    """

    def __init__(self, allowed: bool = True) -> None:
        global _staging_allowed
        self._before, _staging_allowed = _staging_allowed, allowed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        global _staging_allowed
        _staging_allowed = self._before


def empty_cache() -> None:
    """Free the GPU memory that losses keep between steps, as `torch.cuda.empty_cache` does for PyTorch."""
    for index, gpu in list(_gpus.items()):
        with suppress(DeviceError):  # a device that has failed keeps nothing
            _use(index, gpu, Sharing.empty_cache)


def takes(device: torch.device) -> bool:
    """Return whether losses of a device's tensors need shared memory. Others are on the CPU, or may go through its memory."""
    if device.type == "cpu":
        return False
    try:
        if _staging_allowed:
            use_sharing(device, lambda _: None)
    except DeviceError:
        return False
    return True


def _index_of(device: torch.device) -> int:
    if device.type != "cuda":
        raise UnsuitableDeviceError(
            f"tensors on {device} cannot be shared with Vulkan; move them to the CPU, or let them go through the host's memory:"
            " vkssim.torch.host_staging()"
        )
    return torch.cuda.current_device() if device.index is None else device.index


_gpus: dict[int, str] = {}
"""The UUIDs of the CUDA devices that share memory, by their indices."""

_refusals: dict[int, str] = {}
"""Why other CUDA devices do not."""


def use_sharing(device: torch.device, action: Callable[[Sharing], Result]) -> Result:
    """Return the result of `action` with the sharing with a CUDA device. Raises DeviceError if sharing is impossible."""
    index = _index_of(device)
    if index not in _gpus:
        _gpus[index] = _try_sharing(index)
    return _use(index, _gpus[index], action)


def _use(index: int, gpu: str, action: Callable[[Sharing], Result]) -> Result:
    return use_engine(gpu, index, partial(Sharing, index), action, sharing=True, harmless=_OUT_OF_MEMORY)


def _try_sharing(index: int) -> str:
    """Return the UUID of a CUDA device, after memory was shared with it."""
    check_fork()
    if index in _refusals:
        raise UnsuitableDeviceError(_refusals[index])
    try:
        gpu = str(uuid.UUID(str(torch.cuda.get_device_properties(index).uuid)))  # this initialises CUDA for PyTorch
        _use(index, gpu, lambda _: None)
        return gpu
    except (DeviceLostError, DeviceMemoryError):  # it may succeed later
        raise
    except (DeviceError, RuntimeError, ImportError) as error:
        _refusals[index] = (
            f"memory of cuda:{index} cannot be shared with Vulkan: {error}. To go through the host's memory instead, at"
            " many times the cost: vkssim.torch.host_staging()"
        )
        raise UnsuitableDeviceError(_refusals[index]) from error


class _Block:
    """Shared memory: a Vulkan buffer and its address in CUDA."""

    def __init__(self, device: Device, cuda: Cuda, size: int) -> None:
        self._stack = ExitStack()
        with closing_on_error(self._stack):
            self.buffer, self.address = cuda.shared_buffer(device, self._stack, size)
        self.close = self._stack.close


class _Memory:
    """The blocks of a device. They and the device exist until the sharing and all tensors in the blocks are gone."""

    def __init__(self, release_device: Callable[[], None]) -> None:
        self.by_address: dict[int, _Block] = {}
        self.idle: defaultdict[tuple[int, int], list[_Block]] = defaultdict(list)  # by size and stream, like PyTorch's cache
        weakref.finalize(self, _close, self.by_address, release_device).atexit = False


def _close(blocks: dict[int, _Block], release_device: Callable[[], None]) -> None:
    """Close all blocks, and let their device be closed. In a fork they are the parent's."""
    if not is_forked():
        for block in blocks.values():
            block.close()
        release_device()


class _BlockOwner:
    """The owner of a block that a tensor refers to; when the tensor is freed, the block is free again."""

    def __init__(self, memory: _Memory, block: _Block, shape: tuple[int, ...]) -> None:
        self._memory = memory
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<f4", "data": (block.address, False), "version": 3}


class Sharing(Closable):
    """One CUDA device and the Vulkan device that is the same GPU. One thread uses it at a time."""

    def __init__(self, index: int, session: Session) -> None:
        self.stream: Callable[[], torch.cuda.Stream] = partial(torch.cuda.current_stream, index)
        self._index = index
        self._place = torch.device("cuda", index)
        self.session, self.device = session, session.device
        self._stack = ExitStack()
        with closing_on_error(self._stack):
            self._cuda = Cuda(self.device.info.uuid)
            self._handed, self._returned = (self._cuda.timeline(self.device, self._stack) for _ in range(2))
            self.timelines = Timelines(self._handed.handle, self._returned.handle)
            self._memory = _Memory(session.hold())
        self._turn = 0
        self._last_stream: torch.cuda.Stream | None = None
        self._last_handle: int | None = None
        self._staging: dict[str, Tensor] = {}
        self._copies: dict[str, Tensor] = {}  # views of the staging memory, with the shape of the last image
        self._losses: OrderedDict[LossStep, _TensorLoss] = OrderedDict()
        self._last: tuple[LossStep, _TensorLoss] | None = None

    # -- memory -------------------------------------------------------------------------------------------------------

    def lease(self, shape: tuple[int, ...], stream: int) -> Tensor:
        """Return a tensor of a shape in a shared block, for work on a stream. The block is free again when it is freed."""
        size = -(-4 * max(1, math.prod(shape)) // _GRANULE) * _GRANULE
        idle = self._memory.idle[size, stream]
        block = idle.pop() if idle else self._new_block(size)
        lease = _BlockOwner(self._memory, block, shape)
        weakref.finalize(lease, idle.append, block).atexit = False
        return tensor_of(lease, self._place)

    def _new_block(self, size: int) -> _Block:
        if sum(map(len, self._memory.idle.values())) >= _MAX_IDLE:
            self._release_idle()
        block = self.in_memory(lambda: _Block(self.device, self._cuda, size))
        self._memory.by_address[block.address] = block
        return block

    def in_memory(self, make: Callable[[], Result]) -> Result:
        """Return the result of `make`, which needs memory. If there is too little, unused memory is freed first."""
        try:
            return make()
        except DeviceMemoryError:
            self._release_idle()
            self.session.make_room()
            torch.cuda.empty_cache()
            return make()

    def _release_idle(self) -> None:
        torch.cuda.synchronize(self._index)
        for loss in self._losses.values():
            loss.unbind()
        for blocks in self._memory.idle.values():
            while blocks:
                block = blocks.pop()
                del self._memory.by_address[block.address]
                block.close()

    def empty_cache(self) -> None:
        """Release all blocks that no tensor uses."""
        torch.cuda.synchronize(self._index)
        self._close_losses()
        self._release_idle()

    def _close_losses(self) -> None:
        self._last = None
        while self._losses:
            self._losses.popitem()[1].close_executor()
        self._copies.clear()
        self._staging.clear()

    def close(self) -> None:
        """Wait for the device and close it. Blocks in use, and the device with them, are closed after their last tensor."""
        with suppress(RuntimeError):  # of a failed device
            torch.cuda.synchronize(self._index)
        self._close_losses()
        self._stack.close()
        del self._memory

    def _copied(self, name: str, image: Tensor, stream: int) -> Tensor:
        """Return a copy of a tensor in shared memory.

        There is one copy for each name, as large as the largest tensor so far. This is safe because the stream finishes all
        work on a copy before it makes the next one.
        """
        copy = self._copies.get(name)
        if copy is None or copy.shape != image.shape:
            count, place = image.numel(), self._staging.get(name)
            if place is None or place.numel() < count:
                for places in (self._copies, self._staging):
                    places.pop(name, None)
                del place, copy  # so that the smaller block is free
                place = self._staging[name] = self.lease((count,), stream)
            copy = self._copies[name] = place[:count].view(image.shape)
        return copy.copy_(image)

    # -- running ------------------------------------------------------------------------------------------------------

    def compute(
        self, distorted: Tensor, reference: Tensor, step: LossStep, pool: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor | None]:
        """Return pooled values, float32, and the gradient by the distorted images, if the step has one, in their shape.

        The images are contiguous float32 tensors (N, C, H, W). They are computed in chunks of planes for which there is memory.
        `pool` takes the values (P,) and must return a new tensor, because the next call, of whatever thread, overwrites them.
        """
        stream = self._followed()
        loss = step.loss
        size = loss.height * loss.width
        planes = distorted.numel() // size
        made = self._loss(step)
        executor = made.room_for(planes)
        if planes <= executor.batch:
            value, result = self._run(made, executor, distorted, reference, planes, stream)
            return pool(value), result
        chunks = [image.view(-1, loss.height, loss.width).split(executor.batch) for image in (distorted, reference)]
        values, gradients = [], []
        for first, second in zip(*chunks, strict=True):
            value, result = self._run(made, executor, first, second, len(first), stream)
            values.append(value.clone())
            gradients += [] if result is None else [result]
        return pool(torch.cat(values)), torch.cat(gradients).view(distorted.shape) if gradients else None

    def _followed(self) -> int:
        """Return the current stream, after the work of the stream of the last call.

        Semaphores must not count down, and copies in use must not be overwritten.
        """
        stream = self.stream()
        handle: int = stream.cuda_stream
        if handle != self._last_handle:
            if self._last_stream is not None:
                stream.wait_stream(self._last_stream)
            self._last_stream, self._last_handle = stream, handle
        return handle

    def _run(
        self, made: _TensorLoss, executor: Executor, distorted: Tensor, reference: Tensor, planes: int, stream: int
    ) -> tuple[Tensor, Tensor | None]:
        blocks = self._memory.by_address
        if distorted.data_ptr() not in blocks:
            distorted = self._copied(DISTORTED, distorted, stream)
        if reference.data_ptr() not in blocks:
            reference = self._copied(REFERENCE, reference, stream)
        bound = {
            MEANS: blocks[made.means.data_ptr()],
            DISTORTED: blocks[distorted.data_ptr()],
            REFERENCE: blocks[reference.data_ptr()],
        }
        result = self.lease(tuple(distorted.shape), stream) if made.has_gradient else None
        if result is not None:
            bound[GRADIENT] = blocks[result.data_ptr()]
        slot = made.slot(executor, bound)
        self.hand_over(lambda turn: executor.start(slot, planes, turn), stream)
        values, slopes = made.finish(planes)
        if result is not None and slopes is not None:
            result.view(planes, *distorted.shape[-2:]).mul_(slopes.view(-1, 1, 1))
        return values, result

    def hand_over(self, submit: Callable[[int], None], stream: int) -> None:
        """Have Vulkan compute after the work of a stream, and the stream go on after it; `submit` gets the number of the turn.

        An H100 takes 0.32 to 0.34 ms to change to Vulkan and back, whatever it computes there (docs/adr/0017).
        """
        self._turn = turn = self._turn + 1
        with self._cuda.current():
            self._handed.signal(turn, stream)
            submit(turn)
            self._returned.wait(turn, stream)

    def _loss(self, step: LossStep) -> _TensorLoss:
        if self._last is not None and self._last[0] == step:  # quicker than to compute the hash of a loss
            return self._last[1]
        made = self._losses.get(step)
        if made is None:
            if len(self._losses) >= _MAX_LOSSES:
                self._losses.popitem(last=False)[1].close_executor()
            made = _TensorLoss(self, step)
            check(self.device.info, made.plan, self.session)
            self._losses[step] = made
        self._losses.move_to_end(step)
        self._last = step, made
        return made


class _TensorLoss(LossExecutor):
    """A loss of tensors: the slots for each set of blocks, and the last step, which PyTorch computes.

    `means` is the shared tensor (planes, scales, 4) into which the plan writes its numbers.
    """

    means: Tensor

    def __init__(self, sharing: Sharing, step: LossStep) -> None:
        super().__init__(sharing.session, step, sharing.timelines)
        self._sharing = sharing
        self._weights: Tensor | None = None
        self._columns: dict[int, tuple[Tensor, Tensor]] = {}  # of the means: deficits and means, by the number of planes
        self._bound: OrderedDict[tuple[int, ...], tuple[ExitStack, Slot]] = OrderedDict()

    def new_executor(self, batch: int, slots: int) -> Executor:
        """Return an executor with its means. Unused memory is freed if there is too little."""
        self.means = self._sharing.lease((batch, len(self.loss.weights), 4), self._sharing.stream().cuda_stream)
        return self._sharing.in_memory(lambda: super(_TensorLoss, self).new_executor(batch, slots))

    def finish(self, planes: int) -> tuple[Tensor, Tensor | None]:
        """Return values (P,), as in loss/spec.py, and the remaining factor of a single scale's gradient."""
        if planes not in self._columns:
            self._columns[planes] = self.means[:planes, :, 0], self.means[:planes, 0, 3]
        deficits, kept = self._columns[planes]
        if self.loss.negative is Negative.KEEP:  # one scale of weight 1
            return kept, None
        if self._weights is None:
            self._weights = torch.tensor(self.loss.weights, dtype=torch.float64, device=deficits.device)
        means = 1.0 - deficits.double()
        bases = means.clamp(min=0.0) if self.loss.negative is Negative.CLAMP else means.masked_fill(means < 0.0, float("nan"))
        values = (bases**self._weights).prod(dim=1).float()
        if len(self.loss.weights) > 1:
            return values, None
        weight, base = self.loss.weights[0], bases[:, 0]
        slopes = torch.where(base == 0.0, 0.0, weight * base ** (weight - 1.0)) if weight else torch.zeros_like(base)
        return values, slopes.float()

    def slot(self, executor: Executor, blocks: dict[str, _Block]) -> Slot:
        """Return the executor's slot over some blocks."""
        key = tuple([block.address for block in blocks.values()])
        found = self._bound.get(key)
        if found is None:
            if len(self._bound) >= _MAX_BOUND:
                self.device.wait_idle()
                self.unbind()
            with ExitStack() as stack:
                slot = executor.bind(stack, {name: block.buffer for name, block in blocks.items()})
                found = self._bound[key] = stack.pop_all(), slot
        return found[1]

    def unbind(self) -> None:
        """Destroy the slots; the device must be idle."""
        while self._bound:
            self._bound.popitem()[1][0].close()

    def close_executor(self) -> None:
        """Wait for the device and destroy the slots and the executor; a second call does nothing."""
        if self._bound:
            with suppress(DeviceError):
                self.device.wait_idle()
        self.unbind()
        self._columns.clear()
        super().close_executor()


def tensor_of(lease: _BlockOwner, device: torch.device) -> Tensor:
    """Return the tensor over the block of a lease, which it keeps."""
    return torch.as_tensor(lease, device=device)
