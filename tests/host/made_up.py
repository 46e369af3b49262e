"""Plans and devices that need no shader and no driver."""

from __future__ import annotations

import uuid
from typing import Any

from vkssim.host.devices import DeviceInfo, DeviceKind
from vkssim.host.plan import BufferSpec, Dispatch, Kernel, Plan, Role


def device_info(index: int = 0, name: str = "Made Up", kind: DeviceKind = DeviceKind.DISCRETE, **others: Any) -> DeviceInfo:
    """A device that lacks nothing and does not exist."""
    values: dict[str, Any] = {
        "uuid": uuid.UUID(int=0xABCD_0000 + index),
        "pci": None,
        "vendor_id": 1,
        "device_id": 2,
        "api_version": (1, 3, 0),
        "driver_version": 3,
        "driver": "driver 3",
        "extensions": frozenset(),
        "subgroup_size": 32,
        "max_storage_bytes": 1 << 30,
        "timestamp_period_ns": 1.0,
        "lacks": (),
        "physical": None,
        **others,
    }
    return DeviceInfo(index=index, name=name, kind=kind, **values)


def dispatch(source: str = "in", target: str = "out") -> Dispatch:
    """A dispatch of a kernel that does not exist."""
    return Dispatch("stage", Kernel("nothing"), (source,), (target,), b"", (1, 1))


def plan(*steps: tuple[Dispatch, ...], buffers: tuple[str, ...] = ("in", "between", "out")) -> Plan:
    """A plan over buffers of those names, the first one input, the last one output."""
    roles = {buffers[0]: Role.INPUT, buffers[-1]: Role.OUTPUT}
    return Plan(tuple(BufferSpec(name, roles.get(name, Role.WORK), 16) for name in buffers), steps)
