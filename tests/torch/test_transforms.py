"""The functions under `torch.func` and forward-mode differentiation, against calls one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import grad, grad_and_value, hessian, jacrev, jvp, vjp, vmap

from vkssim import torch as front

from . import LOSSES, LossFunction, tensors

# PyTorch's forward mode makes its decompositions by a function of its own that it has deprecated.
pytestmark = [
    pytest.mark.usefixtures("shared_device"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning"),
]


@pytest.fixture(params=LOSSES)
def loss(request: pytest.FixtureRequest) -> LossFunction:
    return partial(LOSSES[request.param], nonnegative_ssim=True) if request.param == "ssim" else LOSSES[request.param]


@pytest.fixture
def pair() -> tuple[Tensor, Tensor]:
    return tensors("natural", 2, 3, 30, 41, grad=False)


@pytest.fixture
def stacks() -> tuple[Tensor, Tensor]:
    """Three batches each."""
    return tensors("natural", 3, 2, 2, 24, 31, grad=False)


def _plain(loss: LossFunction, *pair: Tensor) -> tuple[Tensor, ...]:
    """The gradients by backward()."""
    leaves = [image.clone().requires_grad_() for image in pair]
    return torch.autograd.grad(loss(*leaves), leaves)


def test_grad(loss: LossFunction, pair: tuple[Tensor, Tensor]) -> None:
    expected = _plain(loss, *pair)
    for got, wanted in zip(grad(loss, argnums=(0, 1))(*pair), expected, strict=True):
        assert torch.equal(got, wanted)
    got, value = grad_and_value(loss)(*pair)
    assert torch.equal(got, expected[0])
    assert value == loss(*pair)


def test_vjp_may_be_pulled_twice(loss: LossFunction, pair: tuple[Tensor, Tensor]) -> None:
    (expected, _) = _plain(loss, *pair)
    pull: Callable[[Tensor], tuple[Tensor, ...]] = vjp(lambda image: loss(image, pair[1]), pair[0])[1]
    for factor in (1.0, -2.0):
        assert torch.equal(pull(torch.tensor(factor))[0], factor * expected)


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (1, 0)], ids=str)
def test_vmap(loss: LossFunction, stacks: tuple[Tensor, Tensor], dims: tuple[int | None, int | None]) -> None:
    given = [stack[0] if dim is None else stack.movedim(0, dim) for stack, dim in zip(stacks, dims, strict=True)]
    expected = [loss(*(one if dim is None else one.select(dim, n) for one, dim in zip(given, dims, strict=True)))
                for n in range(3)]  # fmt: skip
    torch.testing.assert_close(vmap(loss, in_dims=dims)(*given), torch.stack(expected), rtol=1e-6, atol=0)


def test_vmap_of_each_image(stacks: tuple[Tensor, Tensor]) -> None:
    def each(first: Tensor, second: Tensor) -> Tensor:
        return front.ssim(first, second, data_range=1.0, size_average=False)

    assert torch.equal(vmap(each)(*stacks), torch.stack([each(*pair) for pair in zip(*stacks, strict=True)]))


def test_grad_and_vmap(loss: LossFunction, stacks: tuple[Tensor, Tensor]) -> None:
    """In either order; the sum over what is mapped has the same gradient."""
    expected = torch.stack([_plain(loss, *pair)[0] for pair in zip(*stacks, strict=True)])
    for got in (vmap(grad(loss))(*stacks), grad(lambda images: vmap(loss)(images, stacks[1]).sum())(stacks[0])):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-9)


def test_several_upstream_gradients_at_a_time(pair: tuple[Tensor, Tensor]) -> None:
    image = pair[0].clone().requires_grad_()
    values = front.ssim(image, pair[1], data_range=1.0, size_average=False)
    (rows,) = torch.autograd.grad(values, image, torch.eye(2), is_grads_batched=True)
    assert torch.equal(rows.sum(dim=0), torch.autograd.grad(front.ssim(image, pair[1], 1.0, False).sum(), image)[0])
    assert torch.equal(jacrev(lambda one: front.ssim(one, pair[1], data_range=1.0, size_average=False))(pair[0]), rows)


@pytest.mark.parametrize("sides", [(0,), (1,), (0, 1)], ids=str)
def test_forward_mode(loss: LossFunction, pair: tuple[Tensor, Tensor], sides: tuple[int, ...]) -> None:
    """The tangent is the gradient's product with those of the images, and nobody drops it in silence."""
    tangents = {side: torch.linspace(-1, 1, pair[0].numel()).view_as(pair[0]) ** (side + 1) for side in sides}
    expected = sum((_plain(loss, *pair)[side] * tangent).sum() for side, tangent in tangents.items())

    def moved(*given: Tensor) -> Tensor:
        images = list(pair)
        for side, image in zip(sides, given, strict=True):
            images[side] = image
        return loss(*images)

    value, got, *_ = jvp(moved, tuple(pair[side] for side in sides), tuple(tangents.values()))
    assert value == loss(*pair)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-7)
    with forward_ad.dual_level(), torch.no_grad():
        result = moved(*(forward_ad.make_dual(pair[side], tangent) for side, tangent in tangents.items()))
        torch.testing.assert_close(forward_ad.unpack_dual(result).tangent, got, rtol=0, atol=0)


def test_forward_mode_of_each_image(pair: tuple[Tensor, Tensor]) -> None:
    def each(image: Tensor) -> Tensor:
        return front.ssim(image, pair[1], data_range=1.0, size_average=False)

    _, got, *_ = jvp(each, (pair[0],), (torch.ones_like(pair[0]),))
    expected = torch.stack([_plain(lambda image, n=n: each(image)[n], pair[0])[0].sum() for n in range(2)])
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-7)


def test_hessian() -> None:
    """Forward over reverse, reverse over reverse and autograd's own are one matrix, which is symmetric."""
    image, other = tensors("natural", 1, 1, 11, 12, dtype=torch.float64, grad=False)

    def value(samples: Tensor) -> Tensor:
        return front.ssim(samples.view_as(image), other, data_range=1.0, backend="cpu")

    flat = image.flatten()
    expected = torch.autograd.functional.hessian(value, flat)
    torch.testing.assert_close(expected, expected.T)
    assert expected.abs().max() > 0
    torch.testing.assert_close(hessian(value)(flat), expected)
    torch.testing.assert_close(jacrev(jacrev(value))(flat), expected)


def test_penalty_of_each_of_many(loss: LossFunction, stacks: tuple[Tensor, Tensor]) -> None:
    """A second derivative under vmap."""

    def penalty(image: Tensor, other: Tensor) -> Tensor:
        steep: Tensor = grad(loss)(image, other)
        return 1e3 * steep.pow(2).sum()

    expected = []
    for image, other in zip(*stacks, strict=True):
        leaf = image.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(leaf, other), leaf, create_graph=True)
        expected.append(torch.autograd.grad(1e3 * gradient.pow(2).sum(), leaf)[0])
    torch.testing.assert_close(vmap(grad(penalty))(*stacks), torch.stack(expected), rtol=1e-4, atol=1e-7)


def test_a_graph_that_waits_is_untouched(loss: LossFunction, pair: tuple[Tensor, Tensor]) -> None:
    """What waits for a backward pass is not taken by a transform of the same images in between."""
    image = pair[0].clone().requires_grad_()
    value = loss(image, pair[1])
    between = grad(loss)(image.detach(), pair[1])
    (gradient,) = torch.autograd.grad(value, image)
    assert torch.equal(gradient, between)
