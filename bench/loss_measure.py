"""The measurements of scripts/bench_loss: errors first, then times, memory and the device's ceilings.

Everything is in rows: dicts with section, loss, name, value, unit and more; or with a note in place of the figures.
"""

from __future__ import annotations

import gc
import statistics
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as _torch
from loss_peers import LOSSES, Contender, Tensor, contenders
from machine import cores
from sections import reason
from spreads import Row, compared, measured

from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.host.devices import choose_device, list_devices
from vkssim.host.executor import Executor
from vkssim.host.instance import shared_instance
from vkssim.host.sharing import TimelineSubmitter
from vkssim.loss.plan import DISTORTED, REFERENCE, loss_plan
from vkssim.loss.reference import value_and_gradient
from vkssim.loss.spec import Loss, constants
from vkssim.metrics.dispatches import KernelShape
from vkssim.shaders import load_module
from vkssim.torch.cuda import Sharing, use_sharing

torch: Any = _torch
Doubles = npt.NDArray[np.float64]
Shape = tuple[int, int, int, int]

SECTIONS = ("inference", "training", "memory", "kernels", "turns")
CUDA_SHAPE: Shape = (5, 5, 1080, 1920)
CPU_SHAPE: Shape = (1, 3, 512, 512)
LARGEST_ERROR = 1e-5
"""Relative error of a gradient, in norm, above which a contender of ours is not timed."""

_EVEN: Shape = (2, 3, 192, 256)  # every scale is even, so that all pyramids of 2x2 means are the same
_ODD: Shape = (1, 2, 187, 203)
_WARM_UP = 5
_REPEATS = 30
_FEWEST = 5
_KERNEL_SECONDS = 0.4
_SECONDS = 2.0  # of one measurement, before repeats become fewer
_TURNS = 15


@dataclass(frozen=True)
class Ceilings:
    """The rates of the device on plain work: bytes a second of a copy, read and written; float32 operations a second."""

    bandwidth: float
    rate: float


def sections(wanted: Sequence[str], shape: Shape | None, device: str | None, only: Sequence[str]) -> Iterator[list[Row]]:
    """Yield rows as they are measured, errors first; a failure becomes a note. `only`: parts of contenders' names."""
    cuda = torch.cuda.is_available()
    torch.set_num_threads(cores())
    found, absent = contenders(cuda, device)
    yield [{"section": "contenders", "name": name, "ours": name == "vkssim.torch", "note": why} for name, why in absent.items()]
    found = [one for one in found if not only or any(part in f"{one.loss} {one.name}" for part in only)]
    correct = []
    for one in found:
        rows = _guarded({"section": "errors", **_who(one)}, _errors, one)
        yield rows
        if not any("note" in row for row in rows):
            correct.append(one)
    if cuda:
        yield from _on_cuda(correct, wanted, shape or CUDA_SHAPE, device)
    if "turns" in wanted:
        found = correct if not cuda else [one for one in contenders(False, device)[0] if one.loss != "ssim same"]
        yield _guarded(
            {"section": "turns", "name": "all", "ours": True}, _turns, found, CPU_SHAPE if cuda or not shape else shape
        )


def add_ratios(rows: Sequence[Row]) -> None:
    """Add to every time how many times vkssim's it is: the fastest of ours in the same section, loss and pass.

    Where the spreads of the two overlap, the ratio is a text with both.
    """
    best: dict[tuple[str, ...], Row] = {}

    def key(row: Row) -> tuple[str, ...]:
        return row["section"], row["loss"], row.get("pass", "")

    timed = [row for row in rows if row["section"] in ("inference", "training", "turns") and "value" in row]
    for row in timed:
        if row["ours"]:
            best[key(row)] = min(row, best.get(key(row), row), key=lambda one: float(one["value"]))
    for row in timed:
        ours = best.get(key(row))
        if ours is row:
            row["ratio"] = 1.0
        elif ours is not None:
            ratio = compared(row, ours, "times")
            row["ratio"] = ratio.get("value", ratio.get("text"))


def kernel_times(loss: str, shape: Shape, device: str | None, *, gradient: bool = True) -> dict[str, float]:
    """Milliseconds of every kernel of one loss step, by the device's own timestamps: stage label -> median.

    `loss` is a key of LOSSES, `shape` is (N, C, H, W). The labels are those of the plan's dispatches, in their order. Without
    copies between host and device; without `gradient`, the kernels of inference.
    """
    images, channels, height, width = shape
    count = images * channels
    described = _described(loss, height, width)
    info = choose_device(list_devices(shared_instance()), device)
    plan = loss_plan(described, KernelShape.for_device(info), gradient=gradient)
    with Device(info) as opened, Executor(opened, plan, load_module, batch=count, slots=1, profile=True) as executor:
        slot = executor.slots[0]
        for name, image in zip((DISTORTED, REFERENCE), _images(shape), strict=True):
            rows = slot.inputs[name].view(np.float32).reshape(count, height, -1)
            rows[..., :width] = image.numpy().reshape(count, height, width)
        executor.submit(slot, count)
        executor.wait(slot)
        steps: list[dict[str, float]] = []
        ended = time.perf_counter() + _KERNEL_SECONDS
        while len(steps) < _REPEATS or time.perf_counter() < ended:  # long enough for the clocks to rise
            executor.submit(slot, count, copies=False)
            executor.wait(slot)
            steps.append(executor.stage_times(slot))
    late = steps[len(steps) // 2 :]
    return {label: 1e3 * statistics.median(step[label] for step in late) for label in late[0] if label != "upload"}


def _on_cuda(correct: list[Contender], wanted: Sequence[str], shape: Shape, device: str | None) -> Iterator[list[Row]]:
    rows = _guarded({"section": "ceilings", "name": "all", "ours": True}, _ceilings)
    yield rows
    figures = {row["name"]: row["value"] for row in rows if "value" in row}
    yield _guarded({"section": "ceilings", "name": "hand-over", "ours": True}, _hand_over)
    ceilings = Ceilings(figures["copy"] * 1e9, figures["matrix product"] * 1e12) if figures else None
    first, second = _images(shape)
    images = first.cuda(), second.cuda()
    large = []
    for one in correct:  # the first step of this size, so that its allocations can be seen
        rows = _guarded({"section": "memory", **_who(one), "shape": _text(shape)}, _first_step, one, images)
        yield [row for row in rows if "memory" in wanted or row["section"] != "memory" or "note" in row]
        if not any("note" in row for row in rows):
            large.append(one)
    for section, passes in (("inference", ("inference",)), ("training", ("forward", "backward", "step"))):
        for one in large if section in wanted else ():
            where = {"section": section, **_who(one), "shape": _text(shape)}
            yield _guarded(where, _timed, one, images, passes, where, ceilings)
    for loss in LOSSES if "kernels" in wanted else ():
        where = {"section": "kernels", "loss": loss, "name": "all", "ours": True, "shape": _text(shape)}
        yield _guarded(where, _kernels, where, shape, device)


def _guarded(where: Row, measure: Callable[..., list[Row]], *arguments: Any) -> list[Row]:
    """Return the rows, or one with a note if an exception stopped them.

    A run on a lent device is worth more than one failure.
    """
    try:
        return measure(*arguments)
    except Exception as error:
        return [{**where, "note": reason(error), "traceback": traceback.format_exc()}]
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _who(one: Contender) -> Row:
    return {"loss": one.loss, "name": one.name, "ours": one.ours}


def _text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


@lru_cache(maxsize=4)
def _images(shape: Shape) -> tuple[Tensor, Tensor]:
    """Return two images in 0..1 that have something in common, on the CPU: new ones every run, the same ones within it."""
    second = torch.rand(shape)
    return 0.7 * second + 0.3 * torch.rand(shape), second


@lru_cache(maxsize=16)
def _twin(loss: str, shape: Shape, last: bool) -> tuple[float, Doubles]:
    """Mean value and gradient by the first image, in float64 from the formulas; `last`: of the last plane alone."""
    height, width = shape[2:]
    first, second = (
        (image[-1:, -1:] if last else image).numpy().reshape(-1, height, width).astype(np.float64) for image in _images(shape)
    )
    values, gradient = value_and_gradient(_described(loss, height, width), second, first)
    count = shape[0] * shape[1]
    return float(values.mean()), gradient.reshape(-1, height, width) / count


def _described(loss: str, height: int, width: int) -> Loss:
    options: dict[str, Any] = {**constants(1.0), **LOSSES[loss]}
    return Loss(height, width, **options)


def _errors(one: Contender) -> list[Row]:
    """Relative errors, the gradient's in norm, on small fresh images; ours also for odd sides."""
    rows: list[Row] = []
    for shape in (_EVEN, _ODD) if one.ours else (_EVEN,):
        first, second = one.images(*_images(shape))
        poison = [torch.full_like(first, torch.nan) for _ in range(16)]  # samples that are never written are NaN then
        del poison
        value = one.value(first, second)
        value.backward()
        expected, gradient = _twin(one.loss, shape, last=False)
        row = {"section": "errors", **_who(one), "shape": _text(shape)}
        found = first.grad.cpu().numpy().reshape(gradient.shape)
        row |= {"value": _relative(found, gradient), "unit": "of the gradient"}
        rows.append(_judged({**row, "value_error": abs(value.item() - expected) / abs(expected)}))
        with torch.no_grad():
            rows[-1]["inference_error"] = abs(one.inference(first, second).item() - expected) / abs(expected)
    return rows


def _relative(found: npt.NDArray[Any], expected: Doubles) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def _judged(row: Row) -> Row:
    """Return the row, with a note if it is ours and its gradient is too far off, or NaN."""
    if row["ours"] and not row["value"] <= LARGEST_ERROR:
        row["note"] = f"not timed: error of the gradient {row['value']:.3g}, {LARGEST_ERROR:g} is allowed"
    return row


def _first_step(one: Contender, images: tuple[Tensor, Tensor]) -> list[Row]:
    """Memory of a step beyond the images and the gradient, in planes of their size, and the last plane's error.

    torch: the peak of its allocator. Outside: memory that the device lacks afterwards and torch does not hold, which Vulkan
    keeps for the next step; memory that was freed within the step is not seen.
    """
    one.release()
    first, second = one.images(*images)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    allocated, outside = torch.cuda.memory_allocated(), _outside()
    one.value(first, second).backward()
    torch.cuda.synchronize()
    tensor = first.numel() * first.element_size()
    peak = (torch.cuda.max_memory_allocated() - allocated) / tensor
    kept = (_outside() - outside) / tensor
    shape = tuple(first.shape)
    _, gradient = _twin(one.loss, shape, last=True)
    error = _relative(first.grad[-1, -1].cpu().numpy()[None], gradient)
    where = {**_who(one), "shape": _text(shape)}
    return [
        {"section": "memory", **where, "value": peak + kept - 1, "unit": "planes", "torch": peak, "outside": kept},
        _judged({"section": "errors", **where, "shape": f"{_text(shape)}, last", "value": error, "unit": "of the gradient"}),
    ]


def _outside() -> float:
    """Return bytes of the device in use that torch does not hold."""
    free, total = torch.cuda.mem_get_info()
    return float(total - free - torch.cuda.memory_reserved())


@dataclass(frozen=True)
class _Times:
    """The seconds of every repeat: on the device's stream, to the end of it, and until the call returned."""

    events: list[float]
    wall: list[float]
    host: list[float]


def _sample(prepare: Callable[[], Any], run: Callable[[Any], object]) -> _Times:
    """Repeats after a warm-up, each with the device at rest before; slow ones are repeated less."""
    spent = _sample_times(prepare, run, _WARM_UP).wall[-1]
    return _sample_times(prepare, run, max(_FEWEST, min(_REPEATS, int(_SECONDS / spent))))


def _sample_times(prepare: Callable[[], Any], run: Callable[[Any], object], repeats: int) -> _Times:
    times = _Times([], [], [])
    for _ in range(repeats):
        subject = prepare()
        began_event, ended_event = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        began_event.record()
        began = time.perf_counter()
        kept = run(subject)
        times.host.append(time.perf_counter() - began)
        ended_event.record()
        torch.cuda.synchronize()
        times.wall.append(time.perf_counter() - began)
        times.events.append(began_event.elapsed_time(ended_event) / 1e3)
        del kept, subject
    return times


def _timed(
    one: Contender, images: tuple[Tensor, Tensor], passes: Sequence[str], where: Row, ceilings: Ceilings | None
) -> list[Row]:
    """Return times of the passes: forward keeps the tensors for backward, a step is both."""
    first, second = one.images(*images)

    def fresh() -> None:
        first.grad = None

    def forward() -> Tensor:
        fresh()
        return one.value(first, second)

    def inference(_: object) -> Tensor:
        with torch.no_grad():
            return one.inference(first, second)

    runs: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
        "inference": (fresh, inference),
        "forward": (fresh, lambda _: one.value(first, second)),
        "backward": (forward, lambda value: value.backward()),
        "step": (fresh, lambda _: _step(one, first, second)),
    }
    rows = []
    for name in passes:
        times = _sample(*runs[name])
        median = statistics.median(times.events)
        row = {**where, "pass": name, **_milliseconds(times.events), "unit": "ms", "repeats": len(times.events)}
        row |= {"wall": statistics.median(times.wall) * 1e3, "host": statistics.median(times.host) * 1e3}
        rows.append(row | _shares(one.loss, name, first.numel(), median, ceilings))
    return rows


def _shares(loss: str, name: str, samples: int, seconds: float, ceilings: Ceilings | None) -> Row:
    """Return the share of the ceilings that a pass reaches, in percent, by the bytes and operations that it needs at least.

    Bytes: both images read, the gradient written. Operations: a multiplication and an addition for each of 11 taps in two
    directions, for four moments and, in a step, three maps carried back; a third more for the smaller scales.
    """
    if ceilings is None or name not in ("inference", "step"):
        return {}
    step = name == "step"
    least_bytes = 4 * samples * (3 if step else 2)
    operations = samples * 2 * 2 * 11 * (7 if step else 4) * (4 / 3 if loss.startswith("ms") else 1)
    return {
        "copy_share": 100 * least_bytes / ceilings.bandwidth / seconds,
        "rate_share": 100 * operations / ceilings.rate / seconds,
    }


def _ceilings() -> list[Row]:
    """Bandwidth of a copy within the device, and the rate of a matrix product in float32 without tensor cores."""
    where = {"section": "ceilings"}
    return [
        {**where, "name": "copy", "value": _copied() / 1e9, "unit": "GB/s, read and written"},
        {**where, "name": "matrix product", "value": _multiplied() / 1e12, "unit": "TFLOP/s, float32"},
    ]


def _hand_over() -> list[Row]:
    """Return the time until a stream goes on after commands of Vulkan that do nothing: no loss takes less."""
    times = use_sharing(torch.device("cuda"), _hand_over_times)
    value = statistics.median(times.wall) * 1e3
    return [{"section": "ceilings", "name": "hand-over to Vulkan and back", "value": value, "unit": "ms, without a kernel"}]


def _hand_over_times(sharing: Sharing) -> _Times:
    device, stream = sharing.device, sharing.stream().cuda_stream
    submitter = TimelineSubmitter(device, sharing.timelines)
    with ExitStack() as stack:
        pool = device.create(stack, "CommandPool", vk.VkCommandPoolCreateInfo(queueFamilyIndex=device.queue_family))
        info = vk.VkCommandBufferAllocateInfo(commandPool=pool, level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1)
        nothing = vk.vkAllocateCommandBuffers(device.handle, info)[0]
        begin = vk.VkCommandBufferBeginInfo(flags=vk.VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT)
        vk.vkBeginCommandBuffer(nothing, begin)
        vk.vkEndCommandBuffer(nothing)
        submit = partial(submitter.submit, nothing, signals=True)
        times = _sample(lambda: None, lambda _: sharing.hand_over(submit, stream))
        torch.cuda.synchronize()
    return times


def _copied(count: int = 1 << 28) -> float:
    source = torch.rand(count, device="cuda")
    target = torch.empty_like(source)
    times = _sample(lambda: None, lambda _: target.copy_(source))
    return float(2 * source.numel() * source.element_size() / statistics.median(times.events))


def _multiplied(size: int = 8192) -> float:
    matrix = torch.rand(size, size, device="cuda")
    allowed, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, False
    times = _sample(lambda: None, lambda _: matrix @ matrix)
    torch.backends.cuda.matmul.allow_tf32 = allowed
    return 2 * size**3 / statistics.median(times.events)


def _kernels(where: Row, shape: Shape, device: str | None) -> list[Row]:
    rows = []
    for wanted, gradient in (("inference", False), ("step", True)):
        stages = kernel_times(where["loss"], shape, device, gradient=gradient)
        stages["all kernels"] = sum(stages.values())
        rows += [{**where, "pass": wanted, "name": name, "value": value, "unit": "ms"} for name, value in stages.items()]
    return rows


def _turns(found: list[Contender], shape: Shape) -> list[Row]:
    """Loss steps on CPU tensors by the wall clock, contenders by turns.

    Whatever else runs makes torch's threads wait for one another: `least`, of the quickest step, shows by how much.
    """
    rows: list[Row] = []
    steps: dict[Contender, Callable[[], object]] = {}
    for one in found:
        prepared = partial(_step, one, *one.images(*_images(shape)))
        failed = _guarded({"section": "turns", **_who(one), "shape": _text(shape)}, _rehearsed, prepared)
        rows += failed
        if not failed:
            steps[one] = prepared
    times: dict[Contender, list[float]] = {one: [] for one in steps}
    for _ in range(_TURNS):
        for one, step in steps.items():
            began = time.perf_counter()
            step()
            times[one].append(time.perf_counter() - began)
    for one, spent in times.items():
        row = {"section": "turns", **_who(one), "shape": _text(shape), **_milliseconds(spent), "unit": "ms"}
        rows.append({**row, "least": min(spent) * 1e3, "repeats": _TURNS})
    return rows


def _rehearsed(step: Callable[[], object]) -> list[Row]:
    """Compiles and opens whatever the first steps do; no rows."""
    for _ in range(2):
        step()
    return []


def _step(one: Contender, first: Tensor, second: Tensor) -> None:
    first.grad = None
    one.value(first, second).backward()


def _milliseconds(times: Sequence[float]) -> Row:
    """Return `value`, the median in ms, `range`, its spread, and `spread`, the width of this range in percent of the median."""
    row = measured([1e3 * seconds for seconds in times])
    low, high = row["range"]
    return {**row, "spread": 100 * (high - low) / row["value"]}
