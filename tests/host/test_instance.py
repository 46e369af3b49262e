"""The instance, and the validation layer. A machine without the layer fails these tests: it is part of the proof."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from vkssim.host import executor
from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.host.devices import choose_device, list_devices
from vkssim.host.errors import ValidationError
from vkssim.host.executor import Executor
from vkssim.host.instance import VALIDATION_VARIABLE, Instance
from vkssim.shaders import load_module

from ..support.commands import python_process, vkssim_process
from .kinds import doubling, pretend

VALIDATED = {VALIDATION_VARIABLE: "1"}

LEAK = """
from vkssim import Scorer
from vkssim.backends.sessions import close_sessions
from vkssim.errors import ValidationError
from vkssim.host.api import vk
scorer = Scorer(64, 64, bits=8, features="float_psnr")
info = vk.VkBufferCreateInfo(size=64, usage=vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)
vk.vkCreateBuffer(scorer._backend._used.session.device.handle, info, None)
scorer.close()
try:
    close_sessions()
except ValidationError as error:
    print(error)
"""


def test_the_layer_is_heard() -> None:
    """The tests below prove something only if a fault would be reported: a buffer outlives its device."""
    instance = Instance(validation=True)
    with Device(choose_device(list_devices(instance))) as device:
        info = vk.VkBufferCreateInfo(size=64, usage=vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)
        vk.vkCreateBuffer(device.handle, info, None)
    with pytest.raises(ValidationError, match=r"reported 1 message: .*vkDestroyDevice"):
        instance.close()
    instance.close()


@pytest.mark.parametrize(
    ("left_out", "kind"),
    [
        (None, "a queue for copies"),
        ("between kernels", "one memory"),
        ("after the upload", "memory of its own"),
        ("after the upload", "a queue for copies"),
    ],
)
def test_a_missing_barrier_is_heard(left_out: str | None, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synchronisation validation sees what nothing orders: kernels that write and read a buffer, and a copy before them, also
    where it is a submission of its own.
    """
    made, submission, barriers = vk.vkCmdPipelineBarrier, executor._submission, itertools.count()

    def barrier(*arguments: Any) -> None:
        if next(barriers) != {"after the upload": 0, "between kernels": 1}.get(left_out or ""):
            made(*arguments)

    monkeypatch.setattr(vk, "vkCmdPipelineBarrier", barrier)
    if left_out == "after the upload":
        monkeypatch.setattr(executor, "_submission", lambda commands, **_: submission(commands))  # without semaphores
    pretend(monkeypatch, kind)
    instance = Instance(validation=True)
    info = choose_device(list_devices(instance))
    with Device(info) as device, Executor(device, doubling(device), load_module) as opened:
        opened.submit(opened.slots[0], 1)
        opened.wait(opened.slots[0])
    if left_out is None:
        instance.close()
    else:
        with pytest.raises(ValidationError, match=r"READ.AFTER.WRITE"):
            instance.close()


def test_a_message_is_raised_logged_and_fails_the_process(tmp_path: Path) -> None:
    """By whoever closes the device; in the file that all processes share; and at the end, should nobody have minded."""
    log = tmp_path / "messages"
    process = python_process("-c", LEAK, environment={VALIDATION_VARIABLE: str(log)})
    assert process.returncode == 3, process.stderr.decode()
    assert process.stdout.startswith(b"the validation layer reported 1 message: ")
    assert b"vkDestroyDevice" in process.stderr
    (line,) = log.read_text().splitlines()
    assert "vkDestroyDevice" in line


def test_missing_layer_says_what_to_install(tmp_path: Path) -> None:
    nowhere = {**VALIDATED, "VK_LAYER_PATH": str(tmp_path), "XDG_DATA_DIRS": str(tmp_path)}
    process = vkssim_process("devices", environment=nowhere)
    assert process.returncode == 3
    assert b"apt install vulkan-validationlayers" in process.stderr
    assert b"Traceback" not in process.stderr
