"""Runs plans over named float buffers: for kernels that read or write more than one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vkssim.features.planes import PlaneLayout
from vkssim.host.device import Device
from vkssim.host.executor import Executor
from vkssim.host.plan import Dispatch, Plan, Role
from vkssim.shaders import load_module

Floats = npt.NDArray[np.float32]

UNWRITTEN = 0x7FABCDEF
"""What is in each float that no kernel writes: a NaN of bits that no processor's arithmetic gives."""


def run_buffers(device: Device, plan: Plan, contents: Mapping[str, Floats]) -> dict[str, Floats]:
    """Run a plan over (frames, floats) arrays by buffer name; returns the same of what the host reads.

    What is read and not written begins with garbage if `contents` lacks it; so does what is written.
    """
    frames = len(next(iter(contents.values())))
    with Executor(device, plan, load_module, batch=frames, slots=1) as executor:
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
