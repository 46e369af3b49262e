"""Second derivatives: gradients of gradients, which PyTorch's own operations compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pytorch_msssim
import torch
from torch import Tensor

from vkssim import torch as front
from vkssim.loss.reference import value_and_gradient
from vkssim.loss.spec import Loss, Negative, Padding, Pyramid, constants
from vkssim.torch import composed

from ..loss.images import Doubles, images, relative
from ..support.differences import check_array, check_number
from ..support.tolerances import LOSS_COMPOSED, LOSS_SECOND, LOSS_SECOND_HALF
from . import taps, tensors

pytestmark = pytest.mark.usefixtures("shared_device")

THREE = (0.2, 0.3, 0.5)
OPTIONS: dict[str, tuple[Callable[..., Tensor], dict[str, Any]]] = {
    "fused_ssim": (front.fused_ssim, {}),
    "ssim": (front.ssim, {"data_range": 1.0, "nonnegative_ssim": True}),
    "ssim, each": (front.ssim, {"data_range": 1.0, "size_average": False, "padding": "same"}),
    "ms_ssim": (front.ms_ssim, {"data_range": 1.0, "weights": [0.4, 0.6]}),
    "ms_ssim, each": (front.ms_ssim, {"data_range": 1.0, "weights": [0.4, 0.6], "size_average": False, "pyramid": "libvmaf"}),
}
by_options = pytest.mark.parametrize("name", OPTIONS)


def _composed_and_twin(loss: Loss, kind: str, planes: int) -> tuple[tuple[Doubles, Doubles], tuple[Doubles, Doubles]]:
    """Values of planes and their gradients by the distorted ones: by PyTorch's operations, and by the twin."""
    reference, distorted = (side.astype(np.float64) for side in images(kind, planes, loss.height, loss.width))
    inputs = [torch.from_numpy(side[:, None]).requires_grad_() for side in (distorted, reference)]
    values = composed.values(loss, *inputs)
    (gradient,) = torch.autograd.grad(values.sum(), inputs[0])
    return (values.detach().numpy(), gradient[:, 0].numpy()), value_and_gradient(loss, reference, distorted)


@pytest.mark.parametrize("padding", Padding, ids=lambda it: it.value)
@pytest.mark.parametrize("pyramid", Pyramid, ids=lambda it: it.value)
@pytest.mark.parametrize("weights", [(1.0,), (0.5,), THREE, (0.0, 0.7, 1.0)], ids=str)
def test_the_formulas_are_the_twins(weights: tuple[float, ...], pyramid: Pyramid, padding: Padding) -> None:
    """Values and first derivatives, by plane; sides are odd and even on every scale."""
    options: dict[str, Any] = {**constants(1.0), "weights": weights, "padding": padding, "pyramid": pyramid}
    loss = Loss(45, 54, negative=Negative.KEEP if weights == (1.0,) else Negative.CLAMP, **options)
    (values, gradient), (expected, slopes) = _composed_and_twin(loss, "natural", 3)
    check_array(LOSS_COMPOSED, "values", values, expected)
    check_number(LOSS_COMPOSED, "gradient", f"{weights}", relative(gradient, slopes), 0.0)


@pytest.mark.parametrize("negative", [Negative.CLAMP, Negative.NULL], ids=lambda it: it.value)
def test_negative_means_have_the_twins_derivatives(negative: Negative) -> None:
    loss = Loss(24, 26, **constants(1.0), weights=(0.5, 0.5), negative=negative)
    np.testing.assert_equal(*_composed_and_twin(loss, "anti", 2))


@by_options
def test_gradgradcheck(name: str) -> None:
    """PyTorch's own comparison with differences, in double: of the gradients by both images and by what comes from above."""
    function, options = OPTIONS[name]
    inputs = tensors("natural", 2, 1, 21, 22, dtype=torch.float64)
    assert torch.autograd.gradgradcheck(lambda *pair: function(*pair, backend="cpu", **options), inputs, fast_mode=True)


@pytest.mark.parametrize("side", [0, 1])
def test_gradgradcheck_by_one_image(side: int) -> None:
    pair = tensors("natural", 1, 1, 14, 13, dtype=torch.float64, grad=False)
    leaf, other = pair[side].requires_grad_(), pair[1 - side]

    def value(image: Tensor) -> Tensor:
        return front.ssim(*((image, other) if side == 0 else (other, image)), data_range=1.0, backend="cpu")

    assert torch.autograd.gradgradcheck(value, leaf, fast_mode=True)


def test_third_derivatives() -> None:
    image, other = tensors("natural", 1, 1, 12, 13, dtype=torch.float64)

    def gradient(*pair: Tensor) -> tuple[Tensor, ...]:
        value = front.ssim(pair[0], pair[1], data_range=1.0, backend="cpu")
        return torch.autograd.grad(value**2, pair, create_graph=True)

    assert torch.autograd.gradgradcheck(gradient, (image, other), fast_mode=True)


def _penalty(value: Tensor, image: Tensor) -> Tensor:
    """The gradient by the image of a gradient's square."""
    (gradient,) = torch.autograd.grad(value, image, create_graph=True)
    (penalty,) = torch.autograd.grad(1e6 * gradient.pow(2).sum(), image)
    return penalty


def test_a_gradient_penalty_beside_another_loss() -> None:
    """What autograd adds to the second derivative does not hide that it is missing."""
    image, other = tensors("natural", 1, 3, 40, 44)
    value = front.ssim(image, other.detach(), data_range=1.0)
    expected = 1 + _penalty(value, image)
    (gradient,) = torch.autograd.grad(front.ssim(image, other.detach(), data_range=1.0), image, create_graph=True)
    (1e6 * gradient.pow(2).sum() + image.sum()).backward()
    assert image.grad is not None
    torch.testing.assert_close(image.grad, expected)
    assert (image.grad - 1).abs().max() > 1


@pytest.mark.parametrize("size_average", [True, False])
@pytest.mark.parametrize(
    ("name", "size"), [("ssim", (45, 50)), ("SSIM", (45, 50)), ("ms_ssim", (161, 166)), ("MS_SSIM", (161, 166))]
)
def test_against_pytorch_msssim(name: str, size: tuple[int, int], size_average: bool) -> None:
    image, other = tensors("natural", 2, 3, *size)
    exact, of_exact = image.detach().double().requires_grad_(), other.detach().double()
    options: dict[str, Any] = {"data_range": 1.0, "size_average": size_average}
    if name.isupper():
        loss = getattr(front, name)(**options)
        their = getattr(pytorch_msssim, name.lower())
    else:
        loss, their = (lambda *pair: getattr(front, name)(*pair, **options)), getattr(pytorch_msssim, name)
    got = _penalty(loss(image, other.detach()).sum(), image)
    expected = _penalty(their(exact, of_exact, win=taps(3), **options).sum(), exact)
    check_number(LOSS_SECOND, name, f"{size_average}", relative(got.numpy(), expected.numpy()), 0.0)


@by_options
def test_gradients_that_may_be_differentiated_have_the_same_bits(name: str) -> None:
    function, options = OPTIONS[name]
    pair = tensors("natural", 2, 3, 30, 41)
    value = function(*pair, **options).sum()
    again = torch.autograd.grad(value, pair, create_graph=True)
    for one, other in zip(torch.autograd.grad(value, pair), again, strict=True):
        assert torch.equal(one, other)
        assert other.requires_grad


def test_images_of_half_precision() -> None:
    image, other = tensors("natural", 1, 1, 30, 41, dtype=torch.bfloat16)
    single = image.detach().float().requires_grad_()
    got = _penalty(front.ssim(image, other.detach(), data_range=1.0), image)
    expected = _penalty(front.ssim(single, other.detach().float(), data_range=1.0), single)
    assert got.dtype is torch.bfloat16
    check_number(LOSS_SECOND_HALF, "", "", relative(got.float().numpy(), expected.numpy()), 0.0)
