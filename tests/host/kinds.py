"""Devices of other kinds, as far as any device can pretend to be one, and a plan that is small enough to see through.

So a software driver takes the paths of a GPU too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from vkssim.host import device, memory
from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.host.memory import MemoryClass
from vkssim.host.plan import Plan, Role
from vkssim.metrics.dispatches import KernelShape, PlanePair, ingest
from vkssim.shaders.interface import Shape
from vkssim.types import FrameFormat

KINDS = ("one memory", "memory of its own", "a queue for copies")


def pretend(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Devices opened from now on are of that kind. What should be the queue of another family is the kernels' own."""
    chosen = memory._memory_type  # lavapipe has no memory beside its own to stage in: it takes what it would read back from

    def without_staging(where: Device, allowed: int, memory_class: MemoryClass) -> tuple[int, int]:
        return chosen(where, allowed, MemoryClass.READBACK if memory_class is MemoryClass.UPLOAD else memory_class)

    def kernels_family(families: Sequence[Any]) -> int:
        return next(index for index, family in enumerate(families) if family.queueFlags & vk.VK_QUEUE_COMPUTE_BIT)

    monkeypatch.setattr(memory, "_memory_type", without_staging)
    monkeypatch.setattr(Device, "unified", property(lambda _: kind == "one memory"))
    monkeypatch.setattr(device, "_copy_family", kernels_family if kind == "a queue for copies" else lambda _: None)


FRAME = FrameFormat.of_bits(32, 4, 8)
SOURCE, BETWEEN = PlanePair.raw(FRAME), PlanePair.floats("between", FRAME.width, FRAME.height)
TARGET = PlanePair.floats("out", FRAME.width, FRAME.height)


def doubling(device: Device) -> Plan:
    """Samples to floats, and these to floats again, doubled: an input, a work and an output buffer."""
    shape = KernelShape(Shape.STRIP, device.info.subgroup_size)
    steps = ingest(shape, SOURCE, BETWEEN), ingest(shape, replace(BETWEEN, scale=2.0), TARGET)
    return Plan((SOURCE.spec(Role.INPUT), BETWEEN.spec(Role.WORK), TARGET.spec(Role.OUTPUT)), steps)
