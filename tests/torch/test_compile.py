"""The functions under `torch.compile`: one operator, no graph broken off, the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import pytorch_msssim
import torch
from torch import Tensor
from torch.func import grad, vmap

from vkssim import torch as front
from vkssim.errors import FrameError, OptionError
from vkssim.torch.traced import value_and_gradients

from . import tensors

# Dynamo and AOT autograd are what may trip over the functions; what Inductor makes of the rest takes it seconds a function.
BACKEND = "aot_eager"

FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "fused_ssim": front.fused_ssim,
    "ssim": lambda *pair: front.ssim(pair[0], pair[1], data_range=1.0, size_average=False).sum(),
    "ms_ssim": lambda *pair: front.ms_ssim(pair[0], pair[1], data_range=1.0, weights=[0.4, 0.6]),
    "SSIM": front.SSIM(1.0, padding="same"),
    "MS_SSIM": front.MS_SSIM(1.0, weights=[0.4, 0.6], pyramid="libvmaf"),
}

pytestmark = [
    pytest.mark.usefixtures("shared_device"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, fullgraph=True, **{"backend": BACKEND, **options})


def _gradients(function: Callable[..., Tensor], *pair: Tensor, wanted: tuple[bool, bool]) -> list[Tensor | None]:
    leaves = [image.clone().requires_grad_(asked) for image, asked in zip(pair, wanted, strict=True)]
    function(*leaves).backward()
    return [leaf.grad for leaf in leaves]


def _same(first: Tensor | None, second: Tensor | None) -> bool:
    """Return whether two gradients are equal to the bit, or neither exists."""
    if first is None or second is None:
        return first is second
    return torch.equal(first, second)


@pytest.mark.parametrize(
    ("name", "wanted"), [("fused_ssim", (True, False)), *((name, (True, True)) for name in FUNCTIONS)], ids=str
)
def test_a_step(name: str, wanted: tuple[bool, bool]) -> None:
    """Between operations of PyTorch's own, before and behind. Which gradients are wanted is the operator's matter alone."""
    function = FUNCTIONS[name]
    pair = tensors("natural", 2, 3, 40, 44, grad=False)

    def step(first: Tensor, second: Tensor) -> Tensor:
        return 2 * (1 - function(first.flip(-1), second.flip(-1)))

    expected = _gradients(step, *pair, wanted=wanted)
    for got, plain in zip(_gradients(_compiled(step), *pair, wanted=wanted), expected, strict=True):
        assert _same(got, plain)


@pytest.mark.parametrize("function", [FUNCTIONS["fused_ssim"], FUNCTIONS["MS_SSIM"]], ids=["fused_ssim", "MS_SSIM"])
def test_inference(function: Callable[..., Tensor]) -> None:
    pair = tensors("natural", 2, 3, 40, 44, grad=False)
    value = _compiled(function)(*pair)
    assert not value.requires_grad
    assert value == function(*pair)


def test_sizes_that_change() -> None:
    """The second size makes PyTorch compile once more, for all sizes; no later one does."""
    compiled = _compiled(front.fused_ssim)
    for height, width in ((20, 30), (21, 33), (25, 40), (40, 25)):
        pair = tensors("natural", 1, 2, height, width, grad=False)
        assert compiled(*pair) == front.fused_ssim(*pair)
        torch._dynamo.config.error_on_recompile = height > 20
    torch._dynamo.config.error_on_recompile = False


PAIRS: dict[str, list[Tensor]] = {
    "float16": [*tensors("natural", 1, 2, 30, 33, dtype=torch.float16, grad=False)],
    "bfloat16": [*tensors("natural", 1, 2, 30, 33, dtype=torch.bfloat16, grad=False)],
    "channels last": [image.to(memory_format=torch.channels_last) for image in tensors("natural", 2, 3, 30, 33, grad=False)],
    "one image": [*tensors("natural", 3, 24, 33, grad=False)],
    "clips": [*tensors("natural", 1, 3, 2, 24, 33, grad=False)],
}


@pytest.mark.parametrize("name", PAIRS)
def test_types_layouts_and_shapes(name: str) -> None:
    plain, compiled = (
        _gradients(call, *PAIRS[name], wanted=(True, True)) for call in (front.fused_ssim, _compiled(front.fused_ssim))
    )
    assert all(map(_same, plain, compiled))


def test_vmap_within() -> None:
    stacks = tensors("natural", 3, 2, 2, 24, 31, grad=False)
    assert torch.equal(_compiled(vmap(front.fused_ssim))(*stacks), vmap(front.fused_ssim)(*stacks))


def test_a_second_derivative_is_right_or_an_error() -> None:
    """AOT autograd has none, and PyTorch says so, but for 2.11; a graph that is run as it is has the operator's own."""
    pair = tensors("natural", 1, 2, 30, 33, grad=False)

    def penalty(function: Callable[..., Tensor]) -> Tensor:
        leaf = pair[0].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(function(leaf, pair[1]), leaf, create_graph=True)
        (1e6 * gradient.pow(2).sum() + leaf.sum()).backward()
        assert leaf.grad is not None
        return leaf.grad

    expected = penalty(front.fused_ssim)
    assert (expected - 1).abs().max() > 1
    assert torch.equal(penalty(_compiled(front.fused_ssim, backend="eager")), expected)

    def of_its_own_operations(first: Tensor, second: Tensor) -> Tensor:
        score: Tensor = pytorch_msssim.ssim(first, second, data_range=1.0)
        return score

    try:
        dropped = penalty(_compiled(of_its_own_operations))
    except RuntimeError:
        with pytest.raises(RuntimeError, match="double backward"):
            penalty(_compiled(front.fused_ssim))
    else:
        assert torch.equal(dropped, torch.ones_like(dropped)), "PyTorch has them by now, and the operator should as well"


def test_derivatives_by_functions_within_are_an_error_or_right() -> None:
    """An error where the graph must be whole; else they are left to PyTorch's ordinary way."""
    pair = tensors("natural", 1, 2, 30, 33, grad=False)
    with pytest.raises(Exception, match=r"torch.func.s derivatives of a loss are not possible within torch.compile"):
        _compiled(grad(front.fused_ssim))(*pair)
    torch._dynamo.reset()
    got = torch.compile(grad(front.fused_ssim), backend=BACKEND)(*pair)
    assert torch.equal(got, grad(front.fused_ssim)(*pair))


@pytest.mark.filterwarnings(r"ignore:.torch\.jit\.script. is deprecated:FutureWarning:torch\.")  # PyTorch 2.15 warns of itself
def test_forward_mode_through_the_operator_is_an_error() -> None:
    pair = tensors("natural", 1, 2, 30, 33, grad=False)
    options = (True, False, True, [1e-4, 9e-4, 1.0, 1.0], "valid average keep vulkan ")
    with torch.autograd.forward_ad.dual_level():
        image = torch.autograd.forward_ad.make_dual(pair[0], torch.ones_like(pair[0]))
        with pytest.raises(OptionError, match="forward-mode"):
            value_and_gradients(image, pair[1], *options)


def test_images_that_are_refused() -> None:
    """Where the graph may be broken off the error is the function's own; else it stands in PyTorch's."""
    image = torch.zeros(1, 1, 9, 20)
    with pytest.raises(FrameError, match="20x9 are too small"):
        torch.compile(front.ssim, backend=BACKEND)(image, image)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="20x9 are too small"):
        _compiled(front.ssim)(image, image)


@pytest.mark.filterwarnings(r"ignore:The \.grad attribute of a Tensor that is not a leaf:UserWarning:torch\.")  # the same
@pytest.mark.parametrize("wanted", [(True, False), (False, True), (True, True)], ids=str)
def test_the_operator_keeps_pytorchs_rules(wanted: tuple[bool, bool]) -> None:
    pair = [
        image.requires_grad_(asked) for image, asked in zip(tensors("natural", 2, 1, 22, 21, grad=False), wanted, strict=True)
    ]
    options = (*wanted, False, [1e-4, 9e-4, 1.0, 0.5, 0.5], "same average clamp vulkan ")
    tests = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static")
    torch.library.opcheck(value_and_gradients, (*pair, *options), test_utils=tests)
