"""Values and gradients of the PyTorch front against pytorch-msssim, and against the float64 twin."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import pytorch_msssim
import torch
from torch import Tensor

from vkssim import torch as front
from vkssim.errors import FrameError

from ..loss.images import relative, twin
from ..support.differences import check_number
from ..support.tolerances import LOSS_GRADIENT, LOSS_HALF, LOSS_MSSSIM, LOSS_VALUE
from . import check, doubles, gradients, taps, tensors

pytestmark = pytest.mark.usefixtures("shared_device")

by_backend = pytest.mark.parametrize("backend", ["vulkan", "cpu"])
SHAPES = {"ssim": [(1, 1, 11, 11), (2, 3, 37, 50), (3, 1, 70, 301)], "ms_ssim": [(1, 1, 161, 161), (2, 2, 165, 170)]}
CASES = [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]
by_case = pytest.mark.parametrize(("name", "shape"), CASES)
by_name = pytest.mark.parametrize("name", SHAPES)


@by_backend
@pytest.mark.parametrize("kind", ["noise", "natural"])
@by_case
def test_against_pytorch_msssim_in_double(name: str, shape: tuple[int, ...], kind: str, backend: str) -> None:
    pair = tensors(kind, *shape)
    exact = doubles(pair)
    expected = getattr(pytorch_msssim, name)(*exact, data_range=1.0, win=taps(shape[1]))
    value = getattr(front, name)(*pair, data_range=1.0, backend=backend)
    assert (value.shape, value.dtype, value.requires_grad) == ((), torch.float32, True)
    check(f"{name} {kind} {shape}", value, pair, expected, exact)


@by_case
def test_the_other_library_as_it_is_called(name: str, shape: tuple[int, ...]) -> None:
    """Nothing but the import differs: a range of 255, float32, its own rounded window."""
    pair = [(255 * image.detach()).requires_grad_() for image in tensors("natural", *shape)]
    value, expected = getattr(front, name)(*pair), getattr(pytorch_msssim, name)(*pair)
    check_number(LOSS_MSSSIM, "value", f"{name} {shape}", value.item(), expected.item())
    for got, wanted in zip(gradients(value, *pair), gradients(expected, *pair), strict=True):
        check_number(LOSS_MSSSIM, "gradient", f"{name} {shape}", relative(got, wanted), 0.0)


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("ssim", {"K": (0.05, 0.4)}),
    ("ssim", {"nonnegative_ssim": True}),
    ("ms_ssim", {"K": (0.05, 0.4)}),
    ("ms_ssim", {"weights": [0.2, 0.2, 0.2, 0.2, 0.2]}),
    ("ms_ssim", {"weights": [0.5, 0.5]}),
    ("ms_ssim", {"weights": [0.5]}),
]


@pytest.mark.parametrize(("name", "options"), OPTIONS)
@pytest.mark.parametrize("size_average", [True, False])
def test_options_and_modules_are_the_other_librarys(name: str, options: dict[str, Any], size_average: bool) -> None:
    pair = tensors("natural", 2, 2, 161, 166)
    exact = doubles(pair)
    options = {"data_range": 1.0, "size_average": size_average, **options}
    expected = getattr(pytorch_msssim, name)(*exact, win=taps(2), **options)
    module = getattr(front, name.upper())(channel=2, **options)
    for value in (getattr(front, name)(*pair, **options), module(*pair)):
        assert value.shape == expected.shape
        check(f"{name} {options}", value.sum(), pair, expected.sum(), exact)
    assert not list(module.parameters())


@by_backend
@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("pyramid", ["average", "libvmaf"])
def test_paddings_and_pyramids_against_the_twin(pyramid: str, padding: str, backend: str) -> None:
    pair = tensors("natural", 2, 2, 51, 60)
    rules: dict[str, Any] = {"pyramid": pyramid, "padding": padding}
    weights = (0.2, 0.3, 0.5)
    value = front.ms_ssim(*pair, data_range=1.0, weights=list(weights), backend=backend, **rules)
    reference, distorted = (image.detach().numpy() for image in pair)
    expected, by_distorted = twin(reference, distorted, weights=weights, **rules)
    _, by_reference = twin(distorted, reference, weights=weights, **rules)
    check_number(LOSS_VALUE, "torch", f"{rules}", value.item(), expected)
    for side, got, wanted in zip("XY", gradients(value, *pair), (by_reference, by_distorted), strict=True):
        check_number(LOSS_GRADIENT, f"torch, by {side}", f"{rules}", relative(got, wanted), 0.0)


@by_name
@by_backend
def test_anti_correlated_images(name: str, backend: str) -> None:
    pair = tensors("anti", 1, 1, 170, 170)
    value = getattr(front, name)(*pair, data_range=1.0, backend=backend)
    if name == "ssim":
        assert value < -0.1
        value = front.ssim(*pair, data_range=1.0, nonnegative_ssim=True, backend=backend)
    assert value == 0.0
    assert not any(gradient.any() for gradient in gradients(value, *pair))
    if name == "ms_ssim":
        value = front.ms_ssim(*pair, data_range=1.0, negative="null", backend=backend)
        assert value.isnan()
        assert all(np.isnan(gradient).all() for gradient in gradients(value, *pair))


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "channels_last": lambda image: image.contiguous(memory_format=torch.channels_last),
    "transposed": lambda image: image.mT.contiguous().mT,
    "slice": lambda image: torch.nn.functional.pad(image, (3, 2, 1, 4))[..., 1:-4, 3:-2],
    "expanded": lambda image: image[:1].expand(image.shape),
    "batch reversed": lambda image: image.flip(0).contiguous().flip(0),
}
"""The same images in memory of another layout."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_in_memory_does_not_matter(layout: str) -> None:
    plain = tensors("natural", 2, 3, 41, 53, grad=False)
    pair = [LAYOUTS[layout](image).detach().requires_grad_() for image in plain]
    same = [image.detach().clone(memory_format=torch.contiguous_format).requires_grad_() for image in pair]
    value, expected = front.ssim(pair[0], pair[1], data_range=1.0), front.ssim(same[0], same[1], data_range=1.0)
    assert value == expected
    np.testing.assert_equal(gradients(value, *pair), gradients(expected, *same))


@by_backend
@by_name
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype, name: str, backend: str) -> None:
    """Computed in float32 from the rounded samples; only the gradient is rounded, after the scale that keeps it in range."""
    pair = tensors("natural", 2, 2, 161, 166, dtype=dtype)
    exact = doubles(pair)
    value = getattr(front, name)(*pair, data_range=1.0, backend=backend)
    assert value.dtype == torch.float32
    expected = getattr(pytorch_msssim, name)(*exact, data_range=1.0, win=taps(2))
    check_number(LOSS_VALUE, "torch", f"{name} {dtype}", value.item(), expected.item())
    scaled = torch.autograd.grad(2.0**12 * value, pair)
    assert [gradient.dtype for gradient in scaled] == [dtype, dtype]
    for got, wanted in zip(scaled, gradients(2.0**12 * expected, *exact), strict=True):
        check_number(LOSS_HALF, f"{dtype}", name, relative(got.double().numpy(), wanted), 0.0)


@by_name
@by_backend
def test_half_precision_against_float(name: str, backend: str) -> None:
    """As the output of a network within `torch.autocast`, and its target: each gradient has the type of its image."""
    restored, clean = tensors("natural", 2, 2, 161, 166)
    half = restored.detach().bfloat16().requires_grad_()
    rounded = half.detach().float().requires_grad_()
    function = partial(getattr(front, name), data_range=1.0, backend=backend)
    value, expected = function(half, clean), function(rounded, clean)
    assert value == expected
    by_half, by_clean = torch.autograd.grad(value, (half, clean))
    by_rounded, by_other = torch.autograd.grad(expected, (rounded, clean))
    assert (by_half.dtype, by_clean.dtype) == (torch.bfloat16, torch.float32)
    assert torch.equal(by_half, by_rounded.bfloat16())
    assert torch.equal(by_clean, by_other)
    assert function(clean.detach(), half.detach()) == function(clean.detach(), rounded.detach())


def test_the_modules_show_their_arguments() -> None:
    text = repr(front.MS_SSIM(data_range=1.0, pyramid="libvmaf"))
    assert text.startswith("MS_SSIM(data_range=1.0, size_average=True, ")
    assert "pyramid='libvmaf'" in text
    assert "nonnegative_ssim=True" in repr(front.SSIM(nonnegative_ssim=True))


@by_name
@by_backend
def test_one_image_is_a_batch_of_one(name: str, backend: str) -> None:
    pair = tensors("natural", 2, 161, 166)
    batch = [image.detach()[None].requires_grad_() for image in pair]
    expected = getattr(front, name)(*batch, data_range=1.0, backend=backend)
    for size_average in (True, False):
        value = getattr(front, name)(*pair, data_range=1.0, size_average=size_average, backend=backend)
        assert (value.shape, value.item()) == ((), expected.item())
        for got, wanted in zip(gradients(value, *pair), gradients(expected, *batch), strict=True):
            np.testing.assert_equal(got, wanted[0])


@pytest.mark.parametrize("shape", [(2, 3, 4, 41, 53), (2, 4, 3, 41, 53)])
def test_a_clip_is_the_mean_of_its_frames(shape: tuple[int, ...]) -> None:
    """(N, C, T, H, W) or (N, T, C, H, W): the value is the same."""
    pair = tensors("natural", *shape)
    values = front.ssim(*pair, data_range=1.0, size_average=False)
    frames = [image.detach().flatten(1, 2).requires_grad_() for image in pair]
    expected = front.ssim(frames[0], frames[1], data_range=1.0, size_average=False)
    assert values.shape == (2,)
    assert values.tolist() == expected.tolist()
    assert front.ssim(*pair, data_range=1.0).item() == front.ssim(frames[0], frames[1], data_range=1.0).item()
    for got, wanted in zip(gradients(values.sum(), *pair), gradients(expected.sum(), *frames), strict=True):
        np.testing.assert_equal(got, wanted.reshape(shape))


def test_clips_of_few_frames_are_the_other_librarys() -> None:
    """With fewer frames than its window has taps, pytorch-msssim's SSIM does not filter over time either."""
    pair = tensors("natural", 2, 3, 4, 41, 53)
    exact = doubles(pair)
    with pytest.warns(UserWarning, match="Skipping Gaussian Smoothing at dimension 2"):
        expected = pytorch_msssim.ssim(*exact, data_range=1.0, win=taps(3).unsqueeze(1))
    check("clips", front.ssim(*pair, data_range=1.0), pair, expected, exact)


def test_colours_last_are_met_with_what_to_pass() -> None:
    images = torch.rand(2, 32, 48, 3)
    with pytest.raises(FrameError, match=r"with the colours last; give them first: `images\.permute\(0, 3, 1, 2\)`"):
        front.ssim(images, images, data_range=1.0, backend="cpu")
    with pytest.raises(FrameError, match=r"give them first: `clips\.permute\(0, 1, 4, 2, 3\)`"):
        front.ssim(images[None], images[None], data_range=1.0, backend="cpu")
    for padding in ("valid", "same"):
        with pytest.raises(FrameError, match=r"give them first: `image\.permute\(2, 0, 1\)`"):
            front.ssim(images[0], images[0], data_range=1.0, padding=padding, backend="cpu")
    right = images.permute(0, 3, 1, 2)
    assert front.ssim(right, right, data_range=1.0, backend="cpu").item() == pytest.approx(1)
