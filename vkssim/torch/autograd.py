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


@torch.compiler.disable  # type: ignore[untyped-decorator] # what follows the calls would meet Vulkan's binding
def value(first: Tensor, second: Tensor, loss: Loss, where: Where, *, average: bool) -> Tensor:
    """The value of two (N, C, H, W) tensors: the mean over all planes, or (N,), each image's over its channels.

    Gradients flow to both. They are computed with the value and kept until `backward` multiplies them, where they lie, by
    what comes from above: no more memory than the result itself. Nothing is kept where no gradient is wanted.
    """
    wanted = tuple(torch.is_grad_enabled() and image.requires_grad for image in (first, second))
    job = _Job(loss, where, average)
    if not any(wanted):
        return job.compute(first.detach(), second.detach(), gradient=False)[0]
    result: Tensor = _Value.apply(first, second, job, wanted)  # type: ignore[no-untyped-call]
    return result


class _Value(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, job: _Job, wanted: tuple[bool, bool]) -> Tensor:
        ctx.save_for_backward(first, second)
        ctx.job, ctx.wanted = job, wanted
        result, ctx.gradients = job.gradients(first, second, wanted)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:  # a second time through the same graph: the first has used them up
            _, gradients = ctx.job.gradients(*ctx.saved_tensors, ctx.wanted)
        by_image = upstream if upstream.ndim == 0 else upstream.view(-1, 1, 1, 1)
        return *(None if gradient is None else gradient.mul_(by_image) for gradient in gradients), None, None


@dataclass(frozen=True)
class _Job:
    loss: Loss
    where: Where
    average: bool

    def gradients(
        self, first: Tensor, second: Tensor, wanted: tuple[bool, bool]
    ) -> tuple[Tensor, tuple[Tensor | None, Tensor | None]]:
        """The value, and the gradients by the images for which they are wanted: the metric is symmetric, so the second one's is
        the first one's with the images exchanged.
        """
        first, second = first.detach(), second.detach()
        result, by_first = self.compute(first, second, gradient=True) if wanted[0] else (None, None)
        exchanged, by_second = self.compute(second, first, gradient=True) if wanted[1] else (None, None)
        chosen = exchanged if result is None else result
        assert chosen is not None
        return chosen, (by_first, by_second)

    def compute(self, distorted: Tensor, reference: Tensor, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
        """The value, and the gradient by the distorted images in their shape."""
        count, channels = distorted.shape[:2]
        weight = 1.0 / (count * channels if self.average else channels)
        on_device = distorted.device.type != "cpu" and self.where.backend == "vulkan"
        if on_device and not (staging.is_allowed() and not cuda.can_share(distorted.device)):
            values, result = cuda.compute(
                distorted.contiguous(), reference.contiguous(), self.loss, gradient=gradient, weight=weight
            )
        else:
            values, result = self._on_host(distorted, reference, gradient=gradient, weight=weight)
        return values.mean() if self.average else values.view(count, channels).mean(dim=1), result

    def _on_host(self, distorted: Tensor, reference: Tensor, *, gradient: bool, weight: float) -> tuple[Tensor, Tensor | None]:
        planes = (-1, self.loss.height, self.loss.width)
        arrays = (_host_copy(image).reshape(planes).numpy() for image in (reference, distorted))
        values, result = evaluate(
            self.loss, *arrays, gradient=gradient, weight=weight, backend=self.where.backend, device=self.where.device
        )
        kind = np.float64 if distorted.dtype is torch.float64 else np.float32
        made = torch.from_numpy(values.astype(kind)).to(distorted.device)
        return made, None if result is None else torch.from_numpy(result).view(distorted.shape).to(distorted)


def _host_copy(image: Tensor) -> Tensor:
    """The images on the host: themselves where they are there already, else a copy by way of pinned memory."""
    if image.device.type == "cpu":
        return image
    return torch.empty(image.shape, dtype=image.dtype, pin_memory=image.device.type == "cuda").copy_(image)
