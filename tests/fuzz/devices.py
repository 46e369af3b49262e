"""Fuzz the selection of a device, as an argument and in the environment."""

from __future__ import annotations

import os
import uuid
from unittest.mock import patch

from vkssim.host.devices import DEVICE_VARIABLE, DeviceInfo, DeviceKind, choose_device

from .harness import Choices, refusals


def _device(index: int, name: str, kind: DeviceKind, *lacks: str) -> DeviceInfo:
    identity = uuid.UUID(int=index)
    return DeviceInfo(index, name, kind, identity, None, 1, 2, (1, 3, 0), 1, "driver", 32, 1 << 27, 1.0, lacks, None)


DEVICES = [
    _device(0, "A GPU 15", DeviceKind.DISCRETE),
    _device(1, "ünïcode ٣", DeviceKind.INTEGRATED, "everything"),
    _device(2, "llvmpipe (LLVM 15.0.6, 256 bits)", DeviceKind.CPU),
]


def one_input(data: bytes) -> None:
    """Choose by a text, by way of either."""
    choices = Choices(data)
    devices = choices.pick([DEVICES, DEVICES[1:], []])
    in_environment = choices.pick([False, True])
    text = choices.text()
    with refusals():
        if in_environment:
            with patch.dict(os.environ, {DEVICE_VARIABLE: text.replace("\0", "")}):
                assert choose_device(devices) in devices
        else:
            assert choose_device(devices, text) in devices
