"""Timestamps that a device takes while it runs commands."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from .api import vk
from .device import Device


class Timestamps:
    """`number` timestamps for each of a number of slots, on a device with `timestamp_bits`. The stack destroys them."""

    def __init__(self, device: Device, stack: ExitStack, slots: int, number: int) -> None:
        self._device = device
        self._count = number
        self._next = 0
        info = vk.VkQueryPoolCreateInfo(queryType=vk.VK_QUERY_TYPE_TIMESTAMP, queryCount=slots * number)
        handle = vk.vkCreateQueryPool(device.handle, info, None)
        self._pool = device.own(stack, "query pool", handle, vk.vkDestroyQueryPool)

    def reset(self, commands: Any, slot: int) -> None:
        """Record that the timestamps of a slot are taken anew."""
        self._next = 0
        vk.vkCmdResetQueryPool(commands, self._pool, slot * self._count, self._count)

    def write(self, commands: Any, slot: int) -> None:
        """Record the next timestamp of a slot, which is taken when all earlier commands have finished."""
        place = slot * self._count + self._next
        self._next += 1
        vk.vkCmdWriteTimestamp(commands, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, self._pool, place)

    def seconds(self, slot: int) -> list[float]:
        """Return the seconds from each timestamp of a slot to the next one, once its commands have finished."""
        stamps = np.zeros(self._count, np.uint64)
        vk.vkGetQueryPoolResults(
            self._device.handle,
            self._pool,
            slot * self._count,
            self._count,
            stamps.nbytes,
            vk.ffi.from_buffer(stamps),
            8,
            vk.VK_QUERY_RESULT_64_BIT | vk.VK_QUERY_RESULT_WAIT_BIT,
        )
        valid = np.uint64((1 << self._device.timestamp_bits) - 1)  # counters of fewer bits start again at 0
        ticks = np.diff(stamps) & valid
        seconds: list[float] = (ticks.astype(np.float64) * self._device.info.timestamp_period_ns * 1e-9).tolist()
        return seconds
