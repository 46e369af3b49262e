"""The conventions of the libraries that the PyTorch front stands in for, and what it refuses."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import torch

from vkssim import torch as front
from vkssim.errors import DeviceError, FrameError, NoDeviceError, OptionError
from vkssim.torch import cuda

from ..support.commands import python_process
from ..support.differences import check_number
from ..support.tolerances import LOSS_VALUE
from . import check, doubles, maps, tensors

pytestmark = pytest.mark.usefixtures("shared_device")

FUNCTIONS = [front.fused_ssim, front.ssim, front.ms_ssim]
by_function = pytest.mark.parametrize("function", FUNCTIONS)


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("kind", ["noise", "natural"])
@pytest.mark.parametrize("size", [(11, 11), (17, 40), (64, 63), (23, 301)])
def test_fused_ssim_is_the_mean_of_the_padded_map(size: tuple[int, int], kind: str, padding: str) -> None:
    """Zeros around the images in both; "valid" leaves out the five outermost windows of the map on each side."""
    pair = tensors(kind, 2, 1, *size)
    exact = doubles(pair)
    every, _ = maps(*exact, border=5)
    expected = (every if padding == "same" else every[..., 5:-5, 5:-5]).mean()
    check(f"fused_ssim {kind} {size} {padding}", front.fused_ssim(*pair, padding), pair, expected, exact)


@pytest.mark.parametrize("size", [(1, 1), (4, 7), (10, 30)])
def test_fused_ssim_of_images_smaller_than_the_window(size: tuple[int, int]) -> None:
    pair = tensors("noise", 1, 1, *size)
    exact = doubles(pair)
    check(f"fused_ssim {size}", front.fused_ssim(*pair), pair, maps(*exact, border=5)[0].mean(), exact)


def test_positions_of_the_arguments() -> None:
    """Calls written for the other libraries name none."""
    pair = tensors("natural", 1, 3, 165, 166, grad=False)
    assert front.fused_ssim(*pair, "valid", False) == front.ssim(*pair, 1.0, True, 11, 1.5, None, (0.01, 0.03), False)
    per_image = front.ms_ssim(*pair, 1.0, False, 11, 1.5, None, [0.5, 0.5], (0.01, 0.03))
    assert torch.equal(front.MS_SSIM(1.0, False, 11, 1.5, 3, 2, [0.5, 0.5], (0.01, 0.03))(*pair), per_image)
    assert front.SSIM(1.0, True, 11, 1.5, 3, 2, (0.01, 0.03), False)(*pair) == front.ssim(*pair, data_range=1.0)
    of_bytes = front.fused_ssim(255 * pair[0], 255 * pair[1], data_range=255.0)
    check_number(LOSS_VALUE, "range", "", of_bytes.item(), front.fused_ssim(*pair).item())


IMAGE = torch.zeros(1, 3, 176, 176)


@by_function
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (IMAGE, IMAGE[..., 1:], r"176, 176.*176, 175.*must be alike"),
        (IMAGE, IMAGE.double(), r"float32.*float64.*one type, such as float32 by \.float\(\)"),
        (IMAGE, IMAGE.to("meta"), "cpu.*meta.*must be alike"),
        (IMAGE[0, 0], IMAGE[0, 0], r"\(176, 176\).*\(C, H, W\).*image\[None\]"),
        (IMAGE[None, None], IMAGE[None, None], r"\(1, 1, 1, 3, 176, 176\).*\(N, C, T, H, W\)"),
        (IMAGE[:0], IMAGE[:0], "no image"),
        (IMAGE[:, :0], IMAGE[:, :0], "no image"),
        (IMAGE.byte(), IMAGE.byte(), "uint8.*float32"),
        (IMAGE.double(), IMAGE.double(), r"float64.*backend.*cpu"),
        (IMAGE.to("meta"), IMAGE.to("meta"), "meta"),
    ],
)
def test_images_that_are_refused(function: Any, first: torch.Tensor, second: torch.Tensor, message: str) -> None:
    with pytest.raises(FrameError, match=message) as caught:
        function(first, second)
    assert isinstance(caught.value, ValueError)


def test_images_that_are_too_small() -> None:
    small, larger = torch.zeros(1, 1, 10, 20), torch.zeros(1, 1, 160, 200)
    with pytest.raises(FrameError, match=r"20x10 are too small.*11x11"):
        front.ssim(small, small)
    with pytest.raises(FrameError, match=r"20x10 are too small.*11x11"):
        front.fused_ssim(small, small, padding="valid")
    with pytest.raises(FrameError, match=r"200x160 are too small.*161x161"):
        front.ms_ssim(larger, larger)


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (("ssim", "ms_ssim"), {"win_size": 7}, "7.*11"),
        (("ssim", "ms_ssim"), {"win_sigma": 2.0}, r"2\.0.*1\.5"),
        (("ssim", "ms_ssim"), {"win": torch.ones(3, 1, 1, 11)}, "win"),
        (("fused_ssim", "ssim", "ms_ssim"), {"padding": "reflect"}, "reflect.*same.*valid"),
        (("fused_ssim", "ssim", "ms_ssim"), {"backend": "cuda"}, "cuda.*vulkan.*cpu"),
        (("fused_ssim", "ssim", "ms_ssim"), {"data_range": 0.0}, "above 0"),
        (("fused_ssim", "ssim", "ms_ssim"), {"data_range": "255"}, "data_range is '255'; it must be a number"),
        (("fused_ssim", "ssim", "ms_ssim"), {"data_range": 1e300}, r"data_range lies between 1e-15 and 1e\+15"),
        (("ms_ssim",), {"pyramid": "bilinear"}, "bilinear.*average.*libvmaf"),
        (("ms_ssim",), {"negative": "abs"}, "abs.*clamp.*null"),
        (("ms_ssim",), {"weights": [0.5, -0.5]}, "none negative"),
        (("SSIM", "MS_SSIM"), {"win_size": 7}, "7.*11"),
        (("SSIM", "MS_SSIM"), {"win_sigma": 2.0}, r"2\.0.*1\.5"),
        (("SSIM", "MS_SSIM"), {"spatial_dims": 3}, "3.*2"),
    ],
)
def test_options_that_are_refused(names: tuple[str, ...], options: dict[str, Any], message: str) -> None:
    """A module refuses what it cannot do where it is made, not at its first image."""
    for name in names:
        with pytest.raises(OptionError, match=message):
            getattr(front, name)(*([] if name.isupper() else [IMAGE, IMAGE]), **options)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(NoDeviceError, match="voodoo"):
        front.ssim(IMAGE, IMAGE, device="voodoo")


def test_shared_memory_needs_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match="CUDA"):
        front.empty((1, 3, 16, 16))


def test_staging_ends_with_its_block() -> None:
    assert not cuda._staging_allowed
    with front.host_staging():
        assert cuda._staging_allowed
        with suppress(ZeroDivisionError), front.host_staging(False):
            assert not cuda._staging_allowed
            raise ZeroDivisionError
        assert cuda._staging_allowed
    front.host_staging(False)
    assert not cuda._staging_allowed


def test_arrays_do_without_pytorch() -> None:
    result = python_process("-c", "import sys, vkssim; vkssim.ssim_and_grad; assert 'torch' not in sys.modules")
    assert result.returncode == 0, result.stderr
