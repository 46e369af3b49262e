"""Test every function of the front against the rules of PyTorch's autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from vkssim import torch as front

from ..loss.images import relative
from ..support.differences import check_number
from ..support.tolerances import LOSS_GRADIENT
from . import LOSSES, LossFunction, gradients, tensors

pytestmark = pytest.mark.usefixtures("shared_device")


@pytest.fixture(params=LOSSES)
def loss(request: pytest.FixtureRequest) -> LossFunction:
    return LOSSES[request.param]


@pytest.fixture
def pair() -> tuple[Tensor, Tensor]:
    return tensors("natural", 2, 3, 40, 52, grad=False)


def _leaf(image: Tensor) -> Tensor:
    return image.detach().clone().requires_grad_()


@pytest.mark.parametrize("wanted", [(True, False), (False, True), (True, True), (False, False)])
def test_gradients_go_to_who_asks(loss: LossFunction, pair: tuple[Tensor, Tensor], wanted: tuple[bool, bool]) -> None:
    both = [_leaf(image) for image in pair]
    expected = gradients(loss(*both), *both)
    inputs = [image.clone().requires_grad_(asks) for image, asks in zip(pair, wanted, strict=True)]
    value = loss(*inputs)
    assert value.requires_grad == any(wanted)
    assert value == loss(*both)
    if any(wanted):
        value.backward()
    for image, asks, gradient in zip(inputs, wanted, expected, strict=True):
        assert (image.grad is not None) == asks
        if image.grad is not None:
            assert (image.grad.shape, image.grad.dtype) == (image.shape, image.dtype)
            check_number(LOSS_GRADIENT, "torch, one side", "", relative(image.grad.numpy(), gradient), 0.0)


def test_upstream_gradient_of_a_scalar(loss: LossFunction, pair: tuple[Tensor, Tensor]) -> None:
    image, other = _leaf(pair[0]), pair[1]
    (plain,) = gradients(loss(image, other), image)
    for factor in (-2.0, 0.0, 1024.0):
        np.testing.assert_equal(gradients(factor * loss(image, other), image)[0], factor * plain)


@pytest.mark.parametrize("function", [front.ssim, front.ms_ssim])
def test_upstream_gradient_of_each_image(function: LossFunction) -> None:
    """A factor for each image of the batch, as a mask or a weighted mean gives."""
    image, other = tensors("natural", 3, 2, 165, 166)
    factors = torch.tensor([2.0, 0.0, -0.5])
    values = function(image, other, data_range=1.0, size_average=False)
    assert values.shape == (3,)
    for side, whole in zip((image, other), gradients((values * factors).sum(), image, other), strict=True):
        for number, factor in enumerate(factors):
            single = function(image[number : number + 1], other[number : number + 1], data_range=1.0)
            assert single == values[number]
            (alone,) = gradients(single, side)
            np.testing.assert_equal(whole[number], factor.item() * alone[number])


def test_nothing_is_stored_where_no_gradient_is_wanted(loss: LossFunction, pair: tuple[Tensor, Tensor]) -> None:
    inputs = [_leaf(image) for image in pair]
    expected = loss(*inputs)
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            value = loss(*inputs)
        assert not value.requires_grad
        assert value.grad_fn is None
        assert value == expected


def test_train_false_gives_the_value_alone() -> None:
    image, other = tensors("natural", 2, 3, 40, 52)
    value = front.fused_ssim(image, other, train=False)
    assert not value.requires_grad
    assert value == front.fused_ssim(image, other)


def test_backward_twice(loss: LossFunction, pair: tuple[Tensor, Tensor]) -> None:
    """The same gradient as long as the graph is kept, and the caller may change it: it is not the function's memory."""
    image = _leaf(pair[0])
    value = loss(image, pair[1])
    (first,) = torch.autograd.grad(value, image, retain_graph=True)
    kept = first.clone()
    assert kept.any()
    for retain_graph in (True, False):
        first.zero_()
        (first,) = torch.autograd.grad(value, image, retain_graph=retain_graph)
        assert torch.equal(first, kept)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(value, image)


def test_several_graphs_at_a_time(loss: LossFunction, pair: tuple[Tensor, Tensor]) -> None:
    """A later call does not disturb what an earlier one has kept."""
    image, other = _leaf(pair[0]), _leaf(pair[1])
    expected = gradients(loss(image, other), image)
    value = loss(image, other)
    loss(other, torch.rand_like(other)).backward()
    np.testing.assert_equal(gradients(value, image), expected)


def test_an_image_against_itself(loss: LossFunction, pair: tuple[Tensor, Tensor]) -> None:
    image = _leaf(pair[0])
    value = loss(image, image)
    assert value == 1.0
    assert not gradients(value, image)[0].any()


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_gradcheck(loss: LossFunction, padding: str) -> None:
    """PyTorch's own comparison of a function with its differences, in double."""
    inputs = tensors("natural", 2, 1, 21, 22, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda *images: loss(*images, padding=padding, backend="cpu"), inputs, fast_mode=True)
    for function in (front.ssim, front.ms_ssim):
        options: dict[str, Any] = {"weights": [1.0, 0.5]} if function is front.ms_ssim else {}
        options |= {"data_range": 1.0, "size_average": False, "padding": padding, "backend": "cpu"}
        assert torch.autograd.gradcheck(lambda *images: function(*images, **options), inputs, fast_mode=True)  # noqa: B023
