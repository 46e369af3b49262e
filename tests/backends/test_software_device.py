"""Test that a software device never computes in silence if a GPU is present that Vulkan cannot use."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from vkssim import ssim, ssim_and_grad
from vkssim.backends import open as opening
from vkssim.backends.open import software_warnings
from vkssim.errors import UnusableGpuWarning
from vkssim.host.devices import DEVICE_VARIABLE, DeviceInfo, DeviceKind
from vkssim.host.instance import Instance

from ..host.made_up import device_info
from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import vkssim
from ..support.pictures import clip

REASON = "/dev/nvidia0 is a GPU of NVIDIA, and Vulkan lists no device of it"
LAVAPIPE = device_info(0, "llvmpipe (LLVM 15.0.6, 256 bits)", DeviceKind.CPU)


@pytest.fixture(autouse=True)
def broken_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let the process find a broken GPU, and count how often it looks for one; no variable names a device."""
    looked: list[int] = []
    monkeypatch.delenv(DEVICE_VARIABLE)
    monkeypatch.setattr(opening, "unlisted_gpus", lambda: looked.append(1) or [REASON])
    opening._unlisted_gpus.cache_clear()
    yield looked
    opening._unlisted_gpus.cache_clear()


def test_a_device_that_was_not_chosen_by_name(instance: Instance, broken_gpu: list[int]) -> None:
    for selector in (None, 0, "0", str(LAVAPIPE.uuid)):
        warning = str(*software_warnings(LAVAPIPE, selector))
        assert warning.startswith("llvmpipe (LLVM 15.0.6, 256 bits) computes in software, although a GPU is present: /dev/nv")
        assert "`vkssim doctor`" in warning
        assert "`device=llvmpipe`" in warning
    assert broken_gpu == [1], "a process looks once"


def test_a_device_that_was_chosen_by_name(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    assert software_warnings(LAVAPIPE, "llvmpipe") == ()
    assert software_warnings(device_info(0), None) == (), "a GPU"
    monkeypatch.setenv(DEVICE_VARIABLE, "llvm")
    assert software_warnings(LAVAPIPE, None) == ()


@pytest.mark.parametrize(("lacks", "warned"), [((), False), (("a compute queue",), True)])
def test_a_gpu_that_is_listed(monkeypatch: pytest.MonkeyPatch, lacks: tuple[str, ...], warned: bool) -> None:
    """The user passed over a GPU that can be used; one that lacks something was passed over by vkssim."""
    listed: list[DeviceInfo] = [device_info(0, "Old GPU", lacks=lacks), LAVAPIPE]
    monkeypatch.setattr(opening, "list_devices", lambda _: listed)
    found = software_warnings(LAVAPIPE, 1)
    assert ["Old GPU, driver 3 lacks a compute queue" in str(warning) for warning in found] == [True] * warned


@pytest.mark.usefixtures("shared_device")
def test_the_warning_is_in_reports_and_on_the_terminal(tmp_path: Path) -> None:
    luma = clip(2, 16, 16)
    path = write(tmp_path / "clip.yuv", raw_bytes(luma))
    flags = raw_flags(luma)
    result = vkssim("score", "-r", path, "-d", path, *flags, "--feature", "float_psnr", "--json")
    assert result.exit_code == 0
    assert "--device llvmpipe uses this device" in result.stderr
    (warning,) = [text for text in json.loads(result.stdout)["warnings"] if REASON in text]
    assert "`vkssim doctor`" in warning
    named = vkssim("score", "-r", path, "-d", path, *flags, "--feature", "float_psnr", "--json", "--device", "llvmpipe")
    assert REASON not in named.stdout + named.stderr


@pytest.mark.usefixtures("shared_device")
@pytest.mark.parametrize("function", [partial(ssim, window="uniform8"), ssim_and_grad])
def test_arrays_and_losses_issue_a_python_warning(function: object) -> None:
    picture = np.zeros((16, 16), np.uint8)
    assert callable(function)
    with pytest.warns(UnusableGpuWarning, match=REASON):
        function(picture, picture, data_range=255, device=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(picture, picture, data_range=255, device="llvmpipe")
