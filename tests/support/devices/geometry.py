"""The shape of the kernels, and the columns of a workgroup, asked of the plan's builders so that no test depends on them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import count, takewhile

import pytest

from vkssim.metrics.dispatches import MARGIN, KernelShape, PlanePair, WindowWalk, decimate, downscale, ingest
from vkssim.shaders.interface import Shape

_HEIGHT = 16


def _floats(width: int) -> PlanePair:
    return PlanePair.floats("planes", width, _HEIGHT)


GROUPS_ACROSS: dict[str, Callable[[KernelShape, int], int]] = {
    "windows": lambda shape, columns: WindowWalk.over(shape, _floats(columns + MARGIN)).groups[0],
    "decimate": lambda shape, columns: decimate(shape, "", _floats(2 * columns), _floats(columns)).groups[0],
    "downscale": lambda shape, columns: downscale(shape, _floats(2 * columns), _floats(columns), 2).groups[0],
    "samples": lambda shape, columns: WindowWalk.samples(shape, _floats(columns)).groups[0],
    "ingest": lambda shape, columns: ingest(shape, _floats(columns), _floats(columns))[0].groups[0],
}
"""Workgroups across for that many columns of results, by the stage that makes them."""


def use_shape(patch: pytest.MonkeyPatch, shape: Shape) -> None:
    """Give every device the kernels of a shape."""
    of_device = KernelShape.for_device
    patch.setattr(KernelShape, "for_device", lambda info, _=None: of_device(info, shape))


@functools.cache
def columns_of_a_group(stage: str, shape: KernelShape) -> int:
    """The most columns that one workgroup across is enough for."""
    return sum(1 for _ in takewhile(lambda columns: GROUPS_ACROSS[stage](shape, columns) == 1, count(1)))
