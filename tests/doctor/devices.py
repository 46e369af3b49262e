"""Devices that do not exist, as a survey lists them."""

from __future__ import annotations

from typing import Any

from vkssim.host.devices import DeviceInfo

from ..host.made_up import device_info


def listed(index: int = 0, name: str = "Made Up", **others: Any) -> DeviceInfo:
    """Return a device that lacks nothing."""
    return device_info(index, name, **others)
