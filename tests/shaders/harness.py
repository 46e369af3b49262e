"""Runs single dispatches on a device, with planes packed and unpacked as the plan's builders lay them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vkssim.features.planes import PlanePair
from vkssim.host.device import Device
from vkssim.host.executor import Bytes, Executor
from vkssim.host.plan import BufferSpec, Dispatch, Plan, Role
from vkssim.shaders import load_module
from vkssim.shaders.interface import INTERFACES
from vkssim.types import FrameFormat

from ..support.pictures import Picture

FORMATS: dict[str, tuple[type[np.generic], float]] = {
    "uint8": (np.uint8, 255.0),
    **{f"uint16 of {bits} bits": (np.uint16, 2.0**bits - 1) for bits in (9, 10, 12, 14, 16)},
    "float32": (np.float32, 255.0),
}
"""NumPy type and range of the samples that kernels read."""

_UNWRITTEN = 0xFF
"""Fills outputs before a run: a float of these bytes is NaN, so that what no kernel wrote fails every comparison."""


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
    plan = Plan((source, target), (tuple(dispatches),))
    with Executor(device, plan, load_module, batch=len(frames), slots=1) as executor:
        slot = executor.slots[0]
        slot.inputs[source.name][:] = frames
        slot.outputs[target.name][:] = _UNWRITTEN
        executor.submit(slot, len(frames))
        assert executor.wait(slot) == len(frames)
        return slot.outputs[target.name].copy()


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
