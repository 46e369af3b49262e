"""Runs plans and single dispatches on a device, with planes packed and unpacked as the plan's builders lay them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vkssim.host.device import Device
from vkssim.host.executor import Bytes, Executor
from vkssim.host.pipelines import PipelineBuilder
from vkssim.host.plan import BufferSpec, Dispatch, Plan, Role
from vkssim.metrics.dispatches import PlaneLayout, PlanePair
from vkssim.shaders import load_module
from vkssim.shaders.interface import INTERFACES
from vkssim.types import FrameFormat

from ..support.pictures import Picture

Floats = npt.NDArray[np.float32]

FORMATS: dict[str, tuple[type[np.generic], float]] = {
    "uint8": (np.uint8, 255.0),
    **{f"uint16 of {bits} bits": (np.uint16, 2.0**bits - 1) for bits in (9, 10, 12, 14, 16)},
    "float32": (np.float32, 255.0),
}
"""NumPy type and range of the samples that kernels read."""

UNWRITTEN = 0x7FABCDEF
"""What is in each float that no kernel writes: a NaN of bits that no CPU's arithmetic gives."""


def make_planes(format_name: str, width: int, height: int, frames: int = 2, seed: int = 0) -> tuple[FrameFormat, Picture]:
    """A format, and noise over its whole range as (frames, 2, height, width)."""
    dtype, peak = FORMATS[format_name]
    noise = np.random.default_rng(seed).random((frames, 2, height, width)) * peak
    return FrameFormat.of_array(width, height, dtype, peak), (noise if dtype is np.float32 else np.round(noise)).astype(dtype)


def pack(layout: PlanePair, planes: Picture) -> Bytes:
    """(frames, 2, H, W) samples as (frames, frame_bytes); what pads the rows is garbage, but finite as kernels leave it."""
    frames = len(planes)
    rows = np.empty((frames, 2, layout.height, layout.row_bytes // planes.itemsize), planes.dtype)
    rows[:] = 999.0 if planes.dtype == np.float32 else np.iinfo(planes.dtype).max
    rows[..., : layout.width] = planes
    return rows.reshape(frames, -1).view(np.uint8)


def unpack(layout: PlanePair, data: Bytes) -> npt.NDArray[np.float32]:
    """Float planes (frames, 2, H, W) from (frames, frame_bytes). Whole rows must have been written, without a NaN."""
    rows = data.view(np.float32).reshape(len(data), 2, layout.height, -1)
    assert np.isfinite(rows).all(), f"a row of {layout.buffer} has places that are not written, or not finite"
    return rows[..., : layout.width]


def run(device: Device, dispatches: Sequence[Dispatch], source: BufferSpec, target: BufferSpec, frames: Bytes) -> Bytes:
    """Run dispatches that read one buffer and write another over (frames, frame_bytes); returns the same of the target."""
    return run_buffers(device, Plan((source, target), (tuple(dispatches),)), {source.name: frames})[target.name].view(np.uint8)


def run_planes(
    device: Device, dispatches: Sequence[Dispatch], source: PlanePair, target: PlanePair, planes: Picture
) -> Picture:
    """Run dispatches from planes to float planes, (frames, 2, H, W) both."""
    return unpack(target, run(device, dispatches, source.spec(Role.INPUT), target.spec(Role.OUTPUT), pack(source, planes)))


def push_of(dispatch: Dispatch) -> Mapping[str, Any]:
    """The push constants of a dispatch by name."""
    return INTERFACES[stem_of(dispatch)].unpack(dispatch.push)


def stem_of(dispatch: Dispatch) -> str:
    """The source of the dispatch's kernel."""
    return dispatch.kernel.module.partition(".")[0]


# -- plans over float buffers -----------------------------------------------------------------------------------------


def run_buffers(
    device: Device, plan: Plan, contents: Mapping[str, npt.NDArray[Any]], pipelines: PipelineBuilder | None = None
) -> dict[str, Floats]:
    """Run a plan over (frames, floats) arrays by buffer name; returns the same of what the host reads.

    What is read and not written begins with garbage if `contents` lacks it; so does what is written. `pipelines` has kernels
    that other tests have compiled.
    """
    frames = len(next(iter(contents.values())))
    with Executor(device, plan, pipelines or load_module, batch=frames, slots=1) as executor:
        slot = executor.slots[0]
        for name, memory in {**slot.inputs, **slot.outputs}.items():
            if name in contents:
                memory[:] = contents[name].view(np.uint8)
            else:
                memory.view(np.uint32)[:] = UNWRITTEN
        executor.submit(slot, frames)
        assert executor.wait(slot) == frames
        return {name: memory.view(np.float32).copy() for name, memory in slot.outputs.items()}


def alone(plan: Plan, dispatch: Dispatch) -> Plan:
    """One dispatch of a plan by itself, with its sources from the host and its targets to the host."""
    roles = {**dict.fromkeys(dispatch.sources, Role.INPUT), **dict.fromkeys(dispatch.targets, Role.OUTPUT)}
    return Plan(tuple(replace(plan.buffer(name), role=role) for name, role in roles.items()), ((dispatch,),))


def pack_rows(layout: PlaneLayout, planes: npt.NDArray[np.floating]) -> Floats:
    """(frames, H, W) as (frames, floats); what pads the rows is garbage, but finite."""
    rows = np.full((len(planes), layout.height, layout.row_bytes // 4), 999.0, np.float32)
    rows[..., : layout.width] = planes
    return rows.reshape(len(planes), -1)


def unpack_rows(layout: PlaneLayout, data: Floats) -> Floats:
    """(frames, H, W) from (frames, floats)."""
    return data[:, : layout.plane_bytes // 4].reshape(len(data), layout.height, -1)[..., : layout.width]
