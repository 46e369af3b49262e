"""The PyTorch front, and the losses' formulas written in PyTorch to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from torch import Tensor

from vkssim import torch as front
from vkssim.shaders.constants import WINDOW

from ..loss.images import images, relative
from ..support.differences import check_number
from ..support.tolerances import LOSS_GRADIENT, LOSS_VALUE

torch.set_num_threads(1)  # images this small are slower with more, above all beside other processes

LossFunction = Callable[..., Tensor]
LOSSES: dict[str, LossFunction] = {
    "fused_ssim": front.fused_ssim,
    "ssim": partial(front.ssim, data_range=1.0),
    "ms_ssim": partial(front.ms_ssim, data_range=1.0, weights=[0.4, 0.6]),
}


def taps(channels: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """The window not rounded, as pytorch-msssim's `win` takes it."""
    return torch.tensor(WINDOW, dtype=dtype).expand(channels, 1, 1, -1)


def tensors(kind: str, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = True) -> tuple[Tensor, Tensor]:
    """A reference and a distorted tensor in 0..1, leaves of a graph where `grad` says so."""
    first, second = (torch.from_numpy(side.copy()).to(dtype).requires_grad_(grad) for side in images(kind, *shape))
    return first, second


def maps(first: Tensor, second: Tensor, *, border: int = 0, c1: float = 0.01**2, c2: float = 0.03**2) -> tuple[Tensor, Tensor]:
    """SSIM and its contrast-structure part in every window of (N, 1, H, W) tensors, with `border` zeros around the images."""
    kernel = torch.outer(*2 * [torch.tensor(WINDOW, dtype=first.dtype)])[None, None]

    def mean(image: Tensor) -> Tensor:
        return functional.conv2d(image, kernel, padding=border)

    mean1, mean2 = mean(first), mean(second)
    variance1, variance2 = mean(first**2) - mean1**2, mean(second**2) - mean2**2
    covariance = mean(first * second) - mean1 * mean2
    contrast = (2 * covariance + c2) / (variance1 + variance2 + c2)
    return (2 * mean1 * mean2 + c1) / (mean1**2 + mean2**2 + c1) * contrast, contrast


def gradients(value: Tensor, *inputs: Tensor) -> list[np.ndarray[Any, Any]]:
    """The gradients of a scalar by each input, as arrays; the graph is kept."""
    return [gradient.double().numpy() for gradient in torch.autograd.grad(value, inputs, retain_graph=True)]


def doubles(inputs: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """The same images in double, leaves of a graph of their own."""
    return tuple(image.detach().double().requires_grad_() for image in inputs)


def check(where: str, value: Tensor, inputs: Sequence[Tensor], expected: Tensor, exact: Sequence[Tensor]) -> None:
    """Compare a scalar and its gradients by each input with those that were computed in double."""
    check_number(LOSS_VALUE, "torch", where, value.item(), expected.item())
    for side, got, wanted in zip("XY", gradients(value, *inputs), gradients(expected, *exact), strict=True):
        check_number(LOSS_GRADIENT, f"torch, by {side}", where, relative(got, wanted), 0.0)
