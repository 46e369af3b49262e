"""Compute losses of CUDA tensors with Vulkan on the same GPU, with shared memory and semaphores, without copies to the host.

Tensors that `empty` made are in shared memory. Other tensors are copied once, on the device. Two timeline semaphores
synchronise PyTorch's stream with Vulkan's queue. The host waits for neither.
"""

from __future__ import annotations

import functools
import math
import threading
import uuid
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

import platformdirs
import torch
from torch import Tensor

from ..errors import DeviceError, DeviceMemoryError, UnsuitableDeviceError
from ..features.planes import KernelShape
from ..host import fork
from ..host.api import vk
from ..host.binding import Binding
from ..host.device import Device
from ..host.devices import DeviceInfo, list_devices
from ..host.division import undivided
from ..host.errors import DOCTOR
from ..host.instance import shared_instance
from ..host.memory import Buffer, MemoryClass
from ..host.pipelines import PipelineBuilder
from ..host.plan import Plan, Role
from ..host.sharing import Timeline, TimelineSubmitter, memory_descriptor
from ..loss.plan import DISTORTED, GRADIENT, MEANS, REFERENCE, loss_plan
from ..loss.spec import Loss, Negative
from ..shaders import load_module

_GRANULE = 1 << 21
_MOST_IDLE = 16
_MOST_RUNNERS = 8
_MOST_BOUND = 16

_Step = tuple[Loss, bool, float, int]
"""What a step computes: the loss, whether with its gradient, the factor of the gradient, and the number of planes."""


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
    found = torch.device("cuda" if device is None else device if not isinstance(device, int) else f"cuda:{device}")
    if found.type != "cuda":
        raise DeviceError(f"memory is shared with CUDA only, not with {found}")
    sharing = sharing_with(_index_of(found))
    with sharing.lock:
        return sharing.lease(tuple(shape))


def empty_cache() -> None:
    """Free the GPU memory that losses keep between steps, as `torch.cuda.empty_cache` does for PyTorch."""
    for sharing in list(_opened.values()):
        with sharing.lock:
            sharing.empty_cache()


def compute(distorted: Tensor, reference: Tensor, loss: Loss, *, gradient: bool, weight: float) -> tuple[Tensor, Tensor | None]:
    """Return values (P,) float32 and, if `gradient` is set, their gradients by the distorted images.

    The gradients have the shape of the images and are multiplied by `weight`. The next call may overwrite the values.

    The images are contiguous float32 tensors (N, C, H, W) of one CUDA device. Raises DeviceError if memory cannot be shared
    with it.
    """
    if distorted.device.type != "cuda":
        raise DeviceError(
            f"tensors on {distorted.device} cannot be shared with Vulkan; move them to the CPU, or let them go through the"
            " host's memory: vkssim.torch.host_staging()"
        )
    index = _index_of(distorted.device)
    sharing = sharing_with(index)
    with sharing.lock, nullcontext() if torch.cuda.current_device() == index else torch.cuda.device(index):
        return sharing.compute(distorted, reference, loss, gradient=gradient, weight=weight)


def can_share(device: torch.device) -> bool:
    """Return whether memory can be shared with a device."""
    if device.type != "cuda":
        return False
    try:
        sharing_with(_index_of(device))
    except DeviceError:
        return False
    return True


def _index_of(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index


@functools.cache
def _refusals() -> dict[int, str]:
    return {}


_opening = threading.Lock()
_opened: dict[int, Sharing] = {}


def sharing_with(index: int) -> Sharing:
    """Return the sharing with a CUDA device; the first call makes it.

    It exists until the end of the process, because tensors may outlive any other owner. Raises DeviceError if sharing is
    impossible.
    """
    fork.check()  # before the lock: in a fork, a thread of the parent may hold it
    with _opening:
        if index in _refusals():
            raise UnsuitableDeviceError(_refusals()[index])
        if index not in _opened:
            try:
                _opened[index] = Sharing(index)
            except (DeviceError, RuntimeError, ImportError) as error:
                _refusals()[index] = (
                    f"memory of cuda:{index} cannot be shared with Vulkan: {error}. To go through the host's memory instead, at"
                    " many times the cost: vkssim.torch.host_staging()"
                )
                raise UnsuitableDeviceError(_refusals()[index]) from error
        return _opened[index]


class _Cuda:
    """The calls of CUDA's runtime that PyTorch does not offer. Each raises DeviceError with the name of CUDA's error."""

    def __init__(self) -> None:
        try:
            from cuda.bindings import runtime
        except ImportError as error:
            raise DeviceError("the package cuda-bindings is not installed: `pip install vkssim[torch]`") from error
        self._runtime = runtime
        self._signal_parameters = runtime.cudaExternalSemaphoreSignalParams()
        self._wait_parameters = runtime.cudaExternalSemaphoreWaitParams()

    def _call(self, name: str, *arguments: Any) -> Any:
        code, *results = getattr(self._runtime, name)(*arguments)
        if int(code) != 0:
            raise DeviceError(f"{name} failed: {code.name}")
        return results[0] if results else None

    def import_memory(self, descriptor: int, size: int) -> tuple[Any, int]:
        """Import memory by its file descriptor, and return it with its address."""
        runtime = self._runtime
        handle = runtime.cudaExternalMemoryHandleDesc()
        handle.type = runtime.cudaExternalMemoryHandleType.cudaExternalMemoryHandleTypeOpaqueFd
        handle.handle.fd = descriptor
        handle.size = size
        handle.flags = runtime.cudaExternalMemoryDedicated
        memory = self._call("cudaImportExternalMemory", handle)
        whole = runtime.cudaExternalMemoryBufferDesc()
        whole.offset, whole.size, whole.flags = 0, size, 0
        return memory, int(self._call("cudaExternalMemoryGetMappedBuffer", memory, whole))

    def release_memory(self, memory: Any, address: int) -> None:
        """Release memory of `import_memory`."""
        self._call("cudaFree", address)
        self._call("cudaDestroyExternalMemory", memory)

    def import_timeline(self, descriptor: int) -> Any:
        """Import a semaphore by its file descriptor, and return it."""
        runtime = self._runtime
        handle = runtime.cudaExternalSemaphoreHandleDesc()
        handle.type = runtime.cudaExternalSemaphoreHandleType.cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd
        handle.handle.fd = descriptor
        handle.flags = 0
        return self._call("cudaImportExternalSemaphore", handle)

    def signal(self, semaphore: Any, value: int, stream: int) -> None:
        """Set the semaphore to the value when the stream reaches this point."""
        self._signal_parameters.params.fence.value = value
        self._call("cudaSignalExternalSemaphoresAsync", [semaphore], [self._signal_parameters], 1, stream)

    def wait(self, semaphore: Any, value: int, stream: int) -> None:
        """Make the stream wait until the semaphore has the value."""
        self._wait_parameters.params.fence.value = value
        self._call("cudaWaitExternalSemaphoresAsync", [semaphore], [self._wait_parameters], 1, stream)


class _Block:
    """Shared memory: a Vulkan buffer and its address in CUDA."""

    def __init__(self, device: Device, cuda: _Cuda, size: int) -> None:
        self._stack = ExitStack()
        with ExitStack() as guard:
            guard.callback(self._stack.close)
            self.buffer = Buffer(device, self._stack, size, MemoryClass.SHARED)
            imported, self.address = cuda.import_memory(memory_descriptor(device, self.buffer), self.buffer.memory_size)
            self._stack.callback(cuda.release_memory, imported, self.address)
            guard.pop_all()

    def close(self) -> None:
        self._stack.close()


class _Lease:
    """The owner of a block that a tensor refers to; when the tensor is freed, the block is free again."""

    def __init__(self, block: _Block, shape: tuple[int, ...]) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": "<f4",
            "data": (block.address, False),
            "version": 3,
            "strides": None,
        }


class Sharing:
    """One CUDA device and the Vulkan device that is the same GPU. Callers hold `lock`."""

    def __init__(self, index: int) -> None:
        self.lock = threading.RLock()
        self._index = index
        self._cuda = _Cuda()
        self._stack = ExitStack()
        with ExitStack() as guard, torch.cuda.device(index):
            guard.callback(self._stack.close)
            self._stack.callback(shared_instance().check)
            info = _same_gpu(index)
            self.device = self._stack.enter_context(Device(info, sharing=True))
            self._shape = KernelShape.for_device(info)
            self._pipelines = PipelineBuilder(self.device, self._stack, load_module, platformdirs.user_cache_path("vkssim"))
            self._to_vulkan, self._to_cuda = (Timeline(self.device, self._stack) for _ in range(2))
            torch.cuda.current_stream()  # this initialises CUDA before anything is imported
            self._handed = self._cuda.import_timeline(self._to_vulkan.descriptor)
            self._returned = self._cuda.import_timeline(self._to_cuda.descriptor)
            guard.pop_all()
        self._submitter = TimelineSubmitter(self.device, self._to_vulkan.handle, self._to_cuda.handle)
        self._turn = 0
        self._stream: torch.cuda.Stream | None = None
        self._by_address: dict[int, _Block] = {}
        self._staging: dict[str, Tensor] = {}
        self._copies: dict[str, Tensor] = {}  # views of the staging memory, with the shape of the last image
        self._idle: defaultdict[tuple[int, int], list[_Block]] = defaultdict(list)  # by size and stream, like PyTorch's cache
        self._runners: OrderedDict[_Step, _Runner] = OrderedDict()
        self._last: tuple[_Step, _Runner] | None = None

    # -- memory -------------------------------------------------------------------------------------------------------

    def lease(self, shape: tuple[int, ...]) -> Tensor:
        """Return a tensor of a shape in a shared block. The block is free again when the tensor is freed."""
        size = -(-4 * max(1, math.prod(shape)) // _GRANULE) * _GRANULE
        key = size, torch.cuda.current_stream(self._index).cuda_stream
        block = self._idle[key].pop() if self._idle[key] else self._new_block(size)
        lease = _Lease(block, shape)
        weakref.finalize(lease, self._idle[key].append, block).atexit = False
        return torch.as_tensor(lease, device=f"cuda:{self._index}")

    def _new_block(self, size: int) -> _Block:
        if sum(map(len, self._idle.values())) >= _MOST_IDLE:
            self._release_idle()
        try:
            block = _Block(self.device, self._cuda, size)
        except DeviceMemoryError:
            self._release_idle()
            torch.cuda.empty_cache()
            block = _Block(self.device, self._cuda, size)
        self._by_address[block.address] = block
        return block

    def _release_idle(self) -> None:
        torch.cuda.synchronize(self._index)
        for runner in self._runners.values():
            runner.forget_bound()
        for blocks in self._idle.values():
            while blocks:
                block = blocks.pop()
                del self._by_address[block.address]
                block.close()

    def empty_cache(self) -> None:
        """Release all blocks that no tensor uses."""
        torch.cuda.synchronize(self._index)
        self._last = None
        while self._runners:
            self._runners.popitem()[1].close()
        self._copies.clear()
        self._staging.clear()
        self._release_idle()

    def _copied(self, name: str, image: Tensor) -> Tensor:
        """Return a copy of a tensor in shared memory.

        There is one copy for each name, as large as the largest tensor so far. This is safe because the stream finishes all
        work on a copy before it makes the next one.
        """
        copy = self._copies.get(name)
        if copy is None or copy.shape != image.shape:
            copy = self._copies[name] = self._place(name, image.numel()).view(image.shape)
        return copy.copy_(image)

    def _place(self, name: str, count: int) -> Tensor:
        place = self._staging.get(name)
        if place is None or place.numel() < count:
            self._copies.pop(name, None)
            self._staging.pop(name, None)
            place = self._staging[name] = self.lease((count,))
        return place[:count]

    # -- running ------------------------------------------------------------------------------------------------------

    def compute(
        self, distorted: Tensor, reference: Tensor, loss: Loss, *, gradient: bool, weight: float
    ) -> tuple[Tensor, Tensor | None]:
        """Return values (P,) and the gradient in the shape of the images, in chunks of planes that a buffer can hold."""
        size = loss.height * loss.width
        most = max(1, self.device.info.max_storage_bytes // (4 * size))
        if distorted.numel() <= most * size:
            return self._run(distorted, reference, loss, gradient=gradient, weight=weight)
        chunks = [image.view(-1, loss.height, loss.width).split(most) for image in (distorted, reference)]
        values, gradients = [], []
        for first, second in zip(*chunks, strict=True):
            value, result = self._run(first, second, loss, gradient=gradient, weight=weight)
            values.append(value.clone())
            gradients += [] if result is None else [result]
        return torch.cat(values), torch.cat(gradients).view(distorted.shape) if gradients else None

    def _run(
        self, distorted: Tensor, reference: Tensor, loss: Loss, *, gradient: bool, weight: float
    ) -> tuple[Tensor, Tensor | None]:
        stream = torch.cuda.current_stream(self._index)
        if self._stream is not None and self._stream != stream:
            stream.wait_stream(self._stream)  # semaphores must not count down, and copies in use must not be overwritten
        self._stream = stream
        runner = self._runner((loss, gradient, weight, distorted.numel() // (loss.height * loss.width)))
        tensors = {MEANS: runner.means}
        for name, image in ((DISTORTED, distorted), (REFERENCE, reference)):
            tensors[name] = image if image.data_ptr() in self._by_address else self._copied(name, image)
        result = self.lease(tuple(distorted.shape)) if gradient else None
        if result is not None:
            tensors[GRADIENT] = result
        blocks = {name: self._by_address[tensor.data_ptr()] for name, tensor in tensors.items()}
        commands = runner.commands(blocks)
        self.hand_over(commands, stream)
        values, slopes = runner.finish()
        if result is not None and slopes is not None:
            result.view(-1, loss.height, loss.width).mul_(slopes.view(-1, 1, 1))
        return values, result

    def hand_over(self, commands: Any, stream: torch.cuda.Stream) -> None:
        """Run recorded commands after what was asked of the stream, and have the stream go on after them.

        An H100 takes 0.32 to 0.34 ms to change to Vulkan and back, whatever the commands are (docs/adr/0020).
        """
        self._turn += 1
        self._cuda.signal(self._handed, self._turn, stream.cuda_stream)
        self._submitter.submit(commands, self._turn)
        self._cuda.wait(self._returned, self._turn, stream.cuda_stream)

    def _runner(self, step: _Step) -> _Runner:
        if self._last is not None and self._last[0] == step:  # quicker than to compute the hash of a loss
            return self._last[1]
        if step not in self._runners:
            if len(self._runners) >= _MOST_RUNNERS:
                torch.cuda.synchronize(self._index)
                self._runners.popitem(last=False)[1].close()
            loss, gradient, weight, count = step
            means = self.lease((count, len(loss.weights), 4))
            plan = loss_plan(loss, self._shape, gradient=gradient, weight=weight, packed=True).plan
            self._runners[step] = _Runner(self.device, self._pipelines, plan, loss, means)
        self._runners.move_to_end(step)
        self._last = step, self._runners[step]
        return self._runners[step]


class _Runner:
    """A loss for a number of planes: its plan, its work buffers, and the recorded commands for each set of blocks.

    `means` is the shared tensor (P, scales, 4) into which the plan writes its numbers.
    """

    def __init__(self, device: Device, pipelines: PipelineBuilder, plan: Plan, loss: Loss, means: Tensor) -> None:
        plan.validate()
        pipelines.build(plan.kernels)
        self._device, self._pipelines, self._plan, self._loss = device, pipelines, plan, loss
        self.means = means
        self._count = len(means)
        self._deficits, self._kept = means[..., 0], means[:, 0, 3]
        self._weights = torch.tensor(loss.weights, dtype=torch.float64, device=means.device)
        self._stack = ExitStack()
        with ExitStack() as guard:
            guard.callback(self._stack.close)
            self._work = {
                spec.name: Buffer(device, self._stack, spec.frame_bytes * self._count, MemoryClass.WORK)
                for spec in plan.buffers
                if spec.role is Role.WORK
            }
            guard.pop_all()
        self._bound: OrderedDict[tuple[int, ...], tuple[ExitStack, Any]] = OrderedDict()

    def finish(self) -> tuple[Tensor, Tensor | None]:
        """Return values (P,), as in loss/wang.py, and the remaining factor of a single scale's gradient."""
        if self._loss.negative is Negative.KEEP:  # one scale of weight 1
            return self._kept, None
        means = 1.0 - self._deficits.double()
        bases = means.clamp(min=0.0) if self._loss.negative is Negative.CLAMP else means.masked_fill(means < 0.0, float("nan"))
        values = (bases**self._weights).prod(dim=1).float()
        if len(self._loss.weights) > 1:
            return values, None
        weight, base = self._loss.weights[0], bases[:, 0]
        slopes = torch.where(base == 0.0, 0.0, weight * base ** (weight - 1.0)) if weight else torch.zeros_like(base)
        return values, slopes.float()

    def commands(self, blocks: dict[str, _Block]) -> Any:
        """Return the plan's recorded commands for some blocks."""
        key = tuple(block.address for block in blocks.values())
        if key not in self._bound:
            if len(self._bound) >= _MOST_BOUND:
                torch.cuda.synchronize()
                self.forget_bound()
            self._bound[key] = self._record({name: block.buffer for name, block in blocks.items()})
        return self._bound[key][1]

    def _record(self, shared: dict[str, Buffer]) -> tuple[ExitStack, Any]:
        with ExitStack() as stack:
            binding = Binding(self._device, stack, self._plan, self._pipelines, {**self._work, **shared})
            commands = recorded(self._device, stack, lambda made: binding.record(made, undivided(self._plan, self._count)))
            return stack.pop_all(), commands

    def forget_bound(self) -> None:
        """Destroy the commands; the device must be idle."""
        while self._bound:
            self._bound.popitem()[1][0].close()

    def close(self) -> None:
        """Destroy everything; the device must be idle."""
        self.forget_bound()
        self._stack.close()


def recorded(device: Device, stack: ExitStack, record: Callable[[Any], None]) -> Any:
    """Return a command buffer that a function recorded, for `Sharing.hand_over`. The stack destroys it."""
    pool = vk.vkCreateCommandPool(device.handle, vk.VkCommandPoolCreateInfo(queueFamilyIndex=device.queue_family), None)
    device.own(stack, "command pool", pool, vk.vkDestroyCommandPool)
    info = vk.VkCommandBufferAllocateInfo(commandPool=pool, level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1)
    commands = vk.vkAllocateCommandBuffers(device.handle, info)[0]
    # A step may be submitted before the previous one has finished.
    begin = vk.VkCommandBufferBeginInfo(flags=vk.VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT)
    vk.vkBeginCommandBuffer(commands, begin)
    record(commands)
    vk.vkEndCommandBuffer(commands)
    return commands


def _same_gpu(index: int) -> DeviceInfo:
    """Return the Vulkan device of the same GPU as a CUDA device. Raises DeviceError if there is none."""
    properties = torch.cuda.get_device_properties(index)
    wanted = uuid.UUID(str(properties.uuid))
    devices = list_devices(shared_instance())
    for info in devices:
        if info.uuid == wanted:
            if info.lacks:
                raise UnsuitableDeviceError(f"{info.description} lacks {', '.join(info.lacks)}")
            return info
    there_are = "; ".join(f"{info.name} ({info.uuid})" for info in devices) or "none"
    raise DeviceError(f"no Vulkan device is {properties.name} ({wanted}); there are: {there_are}. {DOCTOR}")
