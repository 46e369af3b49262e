"""A plan small enough to see through: samples to floats, and those to floats again, doubled."""

from __future__ import annotations

from vkssim.features.planes import KernelShape, PlanePair, ingest
from vkssim.host.device import Device
from vkssim.host.plan import Plan, Role
from vkssim.shaders.interface import Shape
from vkssim.types import FrameFormat

FRAME = FrameFormat.of_bits(32, 4, 8)
SOURCE, BETWEEN = PlanePair.raw(FRAME), PlanePair.floats("between", FRAME.width, FRAME.height)
TARGET = PlanePair.floats("out", FRAME.width, FRAME.height)


def doubling(device: Device) -> Plan:
    """With an input, a work and an output buffer."""
    shape = KernelShape(Shape.STRIP, device.info.subgroup_size)
    steps = ingest(shape, SOURCE, BETWEEN, 1.0), ingest(shape, BETWEEN, TARGET, 2.0)
    return Plan((SOURCE.spec(Role.INPUT), BETWEEN.spec(Role.WORK), TARGET.spec(Role.OUTPUT)), steps)
