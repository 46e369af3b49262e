"""Test the access to the binding: missing functions, and the errors that its failures become."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from vkssim.host import api as api_module
from vkssim.host.api import Api
from vkssim.host.errors import DOCTOR, DeviceError, DeviceLostError, DeviceMemoryError, NoDeviceError, NoLoaderError

from ..support.commands import python_process

WITHOUT_LOADER = "raise OSError('cannot load library libvulkan.so')"


def _failing(monkeypatch: pytest.MonkeyPatch, function: str, error: str) -> Api:
    """A binding of which one function fails."""
    api = Api()

    def fail(*_: Any) -> None:
        raise getattr(api.module, error)

    monkeypatch.setattr(api.module, function, fail)
    return api


@pytest.mark.parametrize(
    ("raised", "expected", "words"),
    [
        ("VkErrorDeviceLost", DeviceLostError, "device was lost"),
        ("VkErrorOutOfDeviceMemory", DeviceMemoryError, "out of memory"),
        ("VkErrorOutOfHostMemory", DeviceMemoryError, "out of the host.s memory"),
        ("VkErrorInitializationFailed", DeviceError, "vkDeviceWaitIdle failed: VkErrorInitializationFailed"),
    ],
)
def test_error_codes_become_errors(
    monkeypatch: pytest.MonkeyPatch, raised: str, expected: type[DeviceError], words: str
) -> None:
    with pytest.raises(expected, match=words):
        _failing(monkeypatch, "vkDeviceWaitIdle", raised).vkDeviceWaitIdle(None)


def test_a_driver_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader gives no reason, as where memory is limited; the usual ones are named."""
    api = _failing(monkeypatch, "vkEnumeratePhysicalDevices", "VkErrorInitializationFailed")
    with pytest.raises(DeviceError, match=r"a Vulkan driver cannot start .*`ulimit -v`.* /dev/dri"):
        api.vkEnumeratePhysicalDevices(None)


def _without_driver(monkeypatch: pytest.MonkeyPatch, signs: list[str]) -> str:
    """Return the message where the loader finds no driver and gives no reason, on a machine with these signs of GPUs."""
    api = _failing(monkeypatch, "vkCreateInstance", "VkErrorIncompatibleDriver")
    monkeypatch.setattr(api_module, "complaints", lambda _: "")
    monkeypatch.setattr(api_module, "unusable_gpus", lambda _: signs)
    with pytest.raises(NoDeviceError) as caught:
        api.vkCreateInstance(None, None)
    return str(caught.value)


@pytest.mark.parametrize("signs", [[], ["/dev/nvidia0 is a GPU of NVIDIA, and Vulkan lists no device of it"]])
def test_a_missing_driver_names_the_gpus_that_are_present(monkeypatch: pytest.MonkeyPatch, signs: list[str]) -> None:
    """The loader gives no reason where the library of its only driver does not load."""
    message = _without_driver(monkeypatch, signs)
    assert message.startswith("the Vulkan loader found no driver" + "".join(f": {sign}" for sign in signs) + ". Install")
    assert message.endswith(DOCTOR)


def test_a_variable_that_leaves_drivers_out_is_named_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_LOADER_DRIVERS_DISABLE", "*")
    message = _without_driver(monkeypatch, [])
    said = "the Vulkan loader found no driver. Unset VK_LOADER_DRIVERS_DISABLE, by which the loader leaves drivers out. Or: "
    assert message.startswith(f"{said}Install")


def test_answers_are_no_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    api = _failing(monkeypatch, "vkGetFenceStatus", "VkNotReady")
    with pytest.raises(api.module.VkNotReady):
        api.vkGetFenceStatus(None, None)


def test_missing_binding_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vulkan", None)
    with pytest.raises(NoLoaderError, match="pip install vulkan"):
        Api().module  # noqa: B018


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
