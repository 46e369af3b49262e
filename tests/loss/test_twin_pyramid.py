"""The losses' twin: its values and gradients against the formula in PyTorch, and against PyTorch's libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import pytorch_msssim
import torch
import torch.nn.functional as functional

from vkssim.loss.reference import shrink, shrink_adjoint
from vkssim.loss.spec import MS_SSIM_WEIGHTS, Negative, Padding, Pyramid
from vkssim.metrics.ssim import decimate

from ..loss.images import KINDS, Doubles, images, relative, twin
from ..support.differences import check_array, check_number
from ..support.tolerances import TWIN_DECIMATE, TWIN_DOUBLE, TWIN_SUMMIT
from ..torch import gradients, maps, taps

THREE: dict[str, Any] = {"weights": (0.3, 0.3, 0.4)}
FIVE: dict[str, Any] = {"weights": MS_SSIM_WEIGHTS}

by_padding = pytest.mark.parametrize("padding", Padding, ids=lambda padding: padding.value)
by_pyramid = pytest.mark.parametrize("pyramid", Pyramid, ids=lambda pyramid: pyramid.value)
by_kind = pytest.mark.parametrize("kind", KINDS)


def _doubles(kind: str, *shape: int) -> tuple[Doubles, Doubles]:
    first, second = images(kind, *shape)
    return first.astype(np.float64), second.astype(np.float64)


@by_padding
@pytest.mark.parametrize("options", [{}, THREE], ids=["ssim", "three scales"])
def test_identical_images_are_a_summit(padding: Padding, options: dict[str, Any]) -> None:
    for kind in ("identical", "bright", "noise", "flat"):
        image, _ = _doubles(kind, 45, 53)
        value, gradient = twin(image, image, padding=padding, **options)
        assert value == 1.0, kind
        check_array(TWIN_SUMMIT, kind, gradient, np.zeros_like(gradient))


def test_planes_know_nothing_of_each_other() -> None:
    reference, distorted = _doubles("natural", 3, 45, 50)
    _, together = twin(reference, distorted, **THREE)
    for plane, first, second in zip(together, reference, distorted, strict=True):
        check_number(TWIN_DOUBLE, "planes", "", relative(3 * plane, twin(first, second, **THREE)[1]), 0.0)


@by_padding
def test_anti_correlated_images(padding: Padding) -> None:
    """One scale keeps the sign; several clamp it, gradient and all, or have no value."""
    reference, distorted = _doubles("anti", 45, 50)
    assert twin(reference, distorted, padding=padding)[0] < -0.1
    value, gradient = twin(reference, distorted, padding=padding, **THREE)
    assert value == 0.0
    assert not gradient.any()
    value, gradient = twin(reference, distorted, padding=padding, negative=Negative.NULL, **THREE)
    assert np.isnan(value)
    assert np.isnan(gradient).all()


@by_pyramid
@pytest.mark.parametrize("size", [(2, 3), (5, 5), (12, 11), (17, 40), (64, 33)])
def test_adjoint_of_shrink(pyramid: Pyramid, size: tuple[int, int]) -> None:
    """<shrink(a), b> = <a, adjoint(b)> for any a and b."""
    rng = np.random.default_rng(0)
    fine, coarse = rng.random((2, *size)), rng.random((2, *((side + 1) // 2 for side in size)))
    got = (fine * shrink_adjoint(pyramid, coarse, size)).sum()
    expected = (shrink(pyramid, fine) * coarse).sum()
    check_number(TWIN_DOUBLE, "adjoint", f"{pyramid.value} {size}", got / expected, 1.0)


@pytest.mark.parametrize("size", [(11, 12), (16, 16), (33, 21)])
def test_pyramids_are_those_of_their_libraries(size: tuple[int, int]) -> None:
    _, image = _doubles("natural", 1, *size)
    padding = [side % 2 for side in size]
    pooled = functional.avg_pool2d(torch.from_numpy(image), 2, padding=padding).numpy()
    check_array(TWIN_DOUBLE, f"average {size}", shrink(Pyramid.AVERAGE, image), pooled)
    decimated = decimate(image[0].astype(np.float32))
    check_array(TWIN_DECIMATE, f"libvmaf {size}", shrink(Pyramid.LIBVMAF, image)[0], decimated)


@by_padding
@by_kind
@pytest.mark.parametrize("size", [(11, 11), (11, 13), (12, 17), (40, 31)])
def test_ssim_against_the_formula_in_pytorch(padding: Padding, kind: str, size: tuple[int, int]) -> None:
    border = 5 - padding.margin
    first, second = (torch.from_numpy(side).requires_grad_() for side in _doubles(kind, 1, 1, *size))
    expected = maps(first, second, border=border)[0].mean()
    value, gradient = twin(first.detach().numpy(), second.detach().numpy(), padding=padding)
    check_number(TWIN_DOUBLE, "value", f"{kind} {size}", value, expected.item())
    check_array(TWIN_DOUBLE, f"{kind} {size}", gradient, gradients(expected, second)[0])


@by_padding
def test_ms_ssim_against_the_formula_in_pytorch(padding: Padding) -> None:
    first, second = (torch.from_numpy(side).requires_grad_() for side in _doubles("natural", 1, 1, 47, 54))
    expected = torch.ones((), dtype=torch.float64)
    pair: tuple[torch.Tensor, ...] = first, second
    for scale, weight in enumerate(THREE["weights"]):
        term, contrast = maps(*pair, border=5 - padding.margin)
        expected = expected * (term if scale == 2 else contrast).mean() ** weight
        pair = tuple(functional.avg_pool2d(image, 2, padding=[side % 2 for side in image.shape[2:]]) for image in pair)
    value, gradient = twin(first.detach().numpy(), second.detach().numpy(), padding=padding, **THREE)
    check_number(TWIN_DOUBLE, "value", padding.value, value, expected.item())
    check_number(TWIN_DOUBLE, "gradient", padding.value, relative(gradient, gradients(expected, second)[0]), 0.0)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"anti"}))
@pytest.mark.parametrize(
    ("size", "options", "function"),
    [((11, 30), {}, pytorch_msssim.ssim), ((163, 166), FIVE, pytorch_msssim.ms_ssim)],
    ids=["ssim", "ms_ssim"],
)
def test_against_pytorch_msssim(kind: str, size: tuple[int, int], options: dict[str, Any], function: Any) -> None:
    """In double, with the window not rounded to float32."""
    first, second = (torch.from_numpy(side).requires_grad_() for side in _doubles(kind, 2, 3, *size))
    expected = function(first, second, data_range=1.0, win=taps(3))
    value, gradient = twin(first.detach().numpy(), second.detach().numpy(), **options)
    check_number(TWIN_DOUBLE, "value", f"{kind} {size}", value, expected.item())
    check_array(TWIN_DOUBLE, f"{kind} {size}", gradient, gradients(expected, second)[0])
