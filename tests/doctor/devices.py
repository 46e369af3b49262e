"""Devices that do not exist, as a survey lists them."""

from __future__ import annotations

from typing import Any

from vkssim.doctor.survey import ListedDevice

from ..host.made_up import device_info


def listed(index: int = 0, name: str = "Made Up", **others: Any) -> ListedDevice:
    """Return a device that lacks nothing."""
    return ListedDevice.of(device_info(index, name, **others))
