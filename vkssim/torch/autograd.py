"""The values of planes as a node of PyTorch's graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..loss.evaluate import evaluate
from ..loss.spec import Loss
from . import cuda, staging


@dataclass(frozen=True)
class Where:
    """Where a loss is computed: the backend, and the Vulkan device of tensors that are on the CPU."""

    backend: str
    device: str | int | None


def plane_values(first: Tensor, second: Tensor, loss: Loss, where: Where) -> Tensor:
    """The value of each of the N C planes of two (N, C, H, W) tensors, (N C,); gradients flow to both.

    The gradient is computed with the value and kept until `backward` multiplies it, where it lies, by what comes from above: as
    much memory as the result itself. Nothing is kept where no gradient is wanted.
    """
    wanted = tuple(torch.is_grad_enabled() and image.requires_grad for image in (first, second))
    if not any(wanted):
        return _compute(first.detach(), second.detach(), loss, where, gradient=False)[0]
    values: Tensor = _PlaneValues.apply(first, second, loss, where, wanted)
    return values


class _PlaneValues(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, loss: Loss, where: Where, wanted: tuple[bool, bool]) -> Tensor:
        ctx.save_for_backward(first, second)
        ctx.loss, ctx.where, ctx.wanted = loss, where, wanted
        values, ctx.gradients = _gradients(first, second, loss, where, wanted)
        return values

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:  # a second time through the same graph: the first has used them up
            _, gradients = _gradients(*ctx.saved_tensors, ctx.loss, ctx.where, ctx.wanted)
        by_plane = upstream.view(*gradients[0 if ctx.wanted[0] else 1].shape[:2], 1, 1)
        return *(None if gradient is None else gradient.mul_(by_plane) for gradient in gradients), None, None, None


def _gradients(
    first: Tensor, second: Tensor, loss: Loss, where: Where, wanted: tuple[bool, bool]
) -> tuple[Tensor, list[Tensor | None]]:
    """Values, and the gradients by the images for which they are wanted: the metric is symmetric, so the second one's is the first
    one's with the images exchanged.
    """
    gradients: list[Tensor | None] = [None, None]
    values = None
    for image, (distorted, reference) in enumerate(((first, second), (second, first))):
        if wanted[image]:
            computed, gradients[image] = _compute(distorted.detach(), reference.detach(), loss, where, gradient=True)
            values = computed if values is None else values
    assert values is not None
    return values, gradients


def _compute(distorted: Tensor, reference: Tensor, loss: Loss, where: Where, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """Values (P,) and the gradient by the distorted images, in their shape, of each plane's value."""
    if distorted.device.type == "cpu":
        return _on_host(distorted, reference, loss, where, gradient=gradient)
    if where.backend == "vulkan":
        if not staging.is_allowed():
            return cuda.compute(distorted.contiguous(), reference.contiguous(), loss, gradient=gradient)
        if cuda.can_share(distorted.device):
            return cuda.compute(distorted.contiguous(), reference.contiguous(), loss, gradient=gradient)
    values, slopes = _on_host(_to_host(distorted), _to_host(reference), loss, where, gradient=gradient)
    return values.to(distorted.device), None if slopes is None else slopes.to(distorted.device)


def _to_host(image: Tensor) -> Tensor:
    pinned = image.device.type == "cuda"
    return torch.empty(image.shape, dtype=image.dtype, pin_memory=pinned).copy_(image)


def _on_host(distorted: Tensor, reference: Tensor, loss: Loss, where: Where, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
    planes = (-1, loss.height, loss.width)
    arrays = (image.numpy() for image in (reference.reshape(planes), distorted.reshape(planes)))
    values, slopes = evaluate(loss, *arrays, gradient=gradient, backend=where.backend, device=where.device)
    result = torch.from_numpy(values.astype(np.float64 if distorted.dtype is torch.float64 else np.float32))
    if slopes is None:
        return result, None
    return result, torch.from_numpy(slopes).view(distorted.shape).to(distorted.dtype)
