"""Runs dispatches of a loss's plan by themselves, on buffers that the host fills and reads, whatever their roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vkssim.host.device import Device
from vkssim.host.executor import Executor
from vkssim.host.plan import Dispatch, Plan, Role
from vkssim.loss.plan import Planes
from vkssim.shaders import load_module

Floats = npt.NDArray[np.float32]

UNWRITTEN = 0xFF
"""Fills every buffer before a run: a float of these bytes is NaN, so that what no kernel wrote fails every comparison."""


def run(device: Device, plan: Plan, dispatches: Sequence[Dispatch], filled: Mapping[str, Floats]) -> dict[str, Floats]:
    """Run dispatches of a plan one after the other; returns (planes, floats) of every buffer that they touch.

    `filled` are the buffers that the host fills before, (planes, floats) each.
    """
    used = {name for dispatch in dispatches for name in (*dispatch.sources, *dispatch.targets)}
    buffers = tuple(replace(plan.buffer(name), role=Role.OUTPUT) for name in sorted(used))
    count = len(next(iter(filled.values())))
    alone = Plan(buffers, tuple((dispatch,) for dispatch in dispatches))
    with Executor(device, alone, load_module, batch=count, slots=1) as executor:
        slot = executor.slots[0]
        for name, memory in slot.outputs.items():
            memory[:] = filled[name].view(np.uint8) if name in filled else UNWRITTEN
        executor.submit(slot, count)
        executor.wait(slot)
        return {name: memory.view(np.float32).copy() for name, memory in slot.outputs.items()}


def packed(layout: Planes, planes: npt.NDArray[np.float64] | Floats, ends: float = 999.0) -> Floats:
    """(P, H, W) samples as (P, floats); `ends` is what lies past the end of each row."""
    rows = np.full((len(planes), layout.height, layout.pitch), ends, np.float32)
    rows[..., : layout.width] = planes
    return rows.reshape(len(planes), -1)


def unpacked(layout: Planes, memory: Floats) -> Floats:
    """(P, H, pitch) rows, to their whole pitch, from (P, floats)."""
    return memory.reshape(len(memory), layout.height, layout.pitch)
