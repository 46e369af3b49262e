"""Test the access to the binding: missing functions, and the errors that its failures become."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from vkssim.host import api as api_module
from vkssim.host.api import Api
from vkssim.host.errors import DOCTOR, DeviceError, DeviceLostError, DeviceMemoryError, NoDeviceError, NoLoaderError

from ..support.commands import python_process, vkssim_process

WITHOUT_LOADER = "raise OSError('cannot load library libvulkan.so')"


def _failing(monkeypatch: pytest.MonkeyPatch, function: str, error: str) -> Api:
    """A binding of which one function fails."""
    api = Api()

    def fail(*_: Any) -> None:
        raise getattr(api.module, error)

    monkeypatch.setattr(api.module, function, fail)
    return api


@pytest.mark.parametrize(
    ("function", "raised", "expected", "words"),
    [
        ("vkDeviceWaitIdle", "VkErrorDeviceLost", DeviceLostError, "device was lost"),
        ("vkDeviceWaitIdle", "VkErrorOutOfDeviceMemory", DeviceMemoryError, "out of memory"),
        ("vkDeviceWaitIdle", "VkErrorOutOfHostMemory", DeviceMemoryError, "out of the host.s memory"),
        ("vkDeviceWaitIdle", "VkErrorInitializationFailed", DeviceError, "vkDeviceWaitIdle failed: VkErrorInitializationF"),
        (
            "vkEnumeratePhysicalDevices",
            "VkErrorInitializationFailed",
            DeviceError,
            "a Vulkan driver cannot start .*`ulimit -v`.* /dev/dri",
        ),
    ],
)
def test_error_codes_become_errors(
    monkeypatch: pytest.MonkeyPatch, function: str, raised: str, expected: type[DeviceError], words: str
) -> None:
    with pytest.raises(expected, match=words):
        getattr(_failing(monkeypatch, function, raised), function)(None)


def test_a_lost_device_is_logged_not_printed(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DeviceLostError):
        _failing(monkeypatch, "vkDeviceWaitIdle", "VkErrorDeviceLost").vkDeviceWaitIdle(None)
    assert caplog.record_tuples == [("vkssim", logging.WARNING, "vkDeviceWaitIdle: the device was lost")]
    process = python_process("-c", "from vkssim.host.errors import LOG; LOG.warning('the device was lost')")
    assert (process.returncode, process.stderr) == (0, b"")


SIGN = "/dev/nvidia0 is a GPU of NVIDIA, and Vulkan lists no device of it"


@pytest.mark.parametrize(
    ("signs", "variables", "begins"),
    [
        ([], {}, ". `apt install"),
        ([SIGN], {}, f": {SIGN}. `apt install"),
        (
            [],
            {"VK_LOADER_DRIVERS_DISABLE": "*"},
            ". Unset VK_LOADER_DRIVERS_DISABLE, by which the loader leaves drivers out. `apt install",
        ),
    ],
)
def test_a_missing_driver(monkeypatch: pytest.MonkeyPatch, signs: list[str], variables: dict[str, str], begins: str) -> None:
    """The loader gives no reason where the library of its only driver does not load: signs of GPUs and variables are named."""
    api = _failing(monkeypatch, "vkCreateInstance", "VkErrorIncompatibleDriver")
    monkeypatch.setattr(api_module, "loader_messages", lambda _: "")
    monkeypatch.setattr(api_module, "unlisted_gpus", lambda: signs)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NoDeviceError) as caught:
        api.vkCreateInstance(None, None)
    assert str(caught.value).startswith(f"the Vulkan loader found no driver{begins}")
    assert str(caught.value).endswith(DOCTOR)


def test_answers_are_no_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    api = _failing(monkeypatch, "vkGetFenceStatus", "VkNotReady")
    with pytest.raises(api.module.VkNotReady):
        api.vkGetFenceStatus(None, None)


def test_missing_binding_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vulkan", None)
    with pytest.raises(NoLoaderError, match="pip install vulkan"):
        Api().module  # noqa: B018


DRIVER = '{"file_format_version": "1.0.0", "ICD": {"library_path": "/no/such/driver.so", "api_version": "1.1.0"}}'


@pytest.mark.parametrize(
    ("text", "said"),
    [("no JSON", ["JSON file", "driver.json"]), (DRIVER, ["/no/such/driver.so: cannot open shared object"])],
)
def test_a_drivers_file_that_cannot_be_used(tmp_path: Path, text: str, said: list[str]) -> None:
    """The loader's own words are passed on: by its code alone it would be out of memory."""
    path = tmp_path / "driver.json"
    path.write_text(text)
    result = vkssim_process("devices", environment={name: str(path) for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")})
    message = result.stderr.decode()
    assert result.returncode == 3
    assert all(words in message for words in said), message
    assert "host's memory" not in message
    assert "Correct or unset VK_DRIVER_FILES, which names the files" in message
    assert message.count("\n") == 1


@pytest.fixture
def without_loader(tmp_path: Path) -> dict[str, str]:
    """An environment where the binding does as it does without the loader's library."""
    (tmp_path / "vulkan.py").write_text(WITHOUT_LOADER)
    return {"PYTHONPATH": str(tmp_path)}


def test_missing_loader_says_what_to_install(without_loader: dict[str, str]) -> None:
    code = (
        "from vkssim.host.api import vk\n"
        "from vkssim.errors import NoLoaderError\n"
        "try: vk.vkCreateInstance\n"
        "except NoLoaderError as error: print(error)"
    )
    process = python_process("-c", code, environment=without_loader)
    assert b"Vulkan loader library is not installed" in process.stdout
    for name in (b"apt install libvulkan1", b"--backend cpu"):
        assert name in process.stdout


def test_without_the_loader_the_package_imports_and_the_cpu_scores(without_loader: dict[str, str]) -> None:
    code = "import numpy as np, vkssim\nimage = np.ones((16, 16), np.uint8)\nprint(vkssim.ssim(image, image, backend='cpu'))"
    assert python_process("-c", code, environment=without_loader).stdout.strip() == b"1.0"
