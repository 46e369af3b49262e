"""The instance, and the validation layer. A machine without the layer fails these tests: it is part of the proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.host.devices import choose_device, list_devices
from vkssim.host.errors import ValidationError
from vkssim.host.instance import VALIDATION_VARIABLE, Instance

from ..clips import raw_flags, write
from ..commands import python_process, vkssim_process
from ..pictures import clip

VALIDATED = {VALIDATION_VARIABLE: "1"}

FLOATS = """
import numpy as np
from vkssim import Scorer
frames = np.random.default_rng(0).random((5, 600, 401), np.float32)
features = ["float_ms_ssim=enable_lcs=true", "float_ssim=scale=2"]
with Scorer(401, 600, dtype=np.float32, data_range=1, features=features, batch=2) as scorer:
    print(len(list(scorer.score((frame, frame) for frame in frames))))
"""


def test_closing_twice_does_nothing() -> None:
    instance = Instance()
    instance.close()
    instance.close()


def test_the_layer_is_heard() -> None:
    """The tests below prove something only if a fault would be reported: a buffer outlives its device."""
    instance = Instance(validation=True)
    with Device(choose_device(list_devices(instance))) as device:
        info = vk.VkBufferCreateInfo(size=64, usage=vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)
        vk.vkCreateBuffer(device.handle, info, None)
    with pytest.raises(ValidationError, match=r"reported 1 messages.*vkDestroyDevice"):
        instance.close()
    instance.close()


def test_scoring_integers_draws_no_message(tmp_path: Path) -> None:
    frames = clip(3, 180, 190)
    name = write(tmp_path / "clip.yuv", frames.tobytes())
    words = ("score", "-r", name, "-d", name, *raw_flags(frames, "400"), "--json", "--profile")
    process = vkssim_process(*words, environment=VALIDATED)
    assert process.returncode == 0, process.stderr.decode()
    assert b"alidation" not in process.stderr


def test_scoring_floats_draws_no_message() -> None:
    process = python_process("-c", FLOATS, environment=VALIDATED)
    assert (process.returncode, process.stdout.strip()) == (0, b"5"), process.stderr.decode()


def test_missing_layer_says_what_to_install(tmp_path: Path) -> None:
    nowhere = {**VALIDATED, "VK_LAYER_PATH": str(tmp_path), "XDG_DATA_DIRS": str(tmp_path)}
    process = vkssim_process("devices", environment=nowhere)
    assert process.returncode == 3
    assert b"apt install vulkan-validationlayers" in process.stderr
    assert b"Traceback" not in process.stderr
