"""The value of a loss as a node of PyTorch's graph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from ..backends.loss_engine import LossStep
from ..backends.open import evaluate
from ..loss.spec import Loss
from ..utils.float_range import SampleRows, warn_of_range
from . import composed, cuda

# This name is private in PyTorch. If it is missing, every call uses the slower path, which is also correct under transforms.
transforms_active: Callable[[], bool] = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
"""Return whether a transform of `torch.func` is active."""

NeedsGrad = tuple[bool, bool]
"""Two flags: whether the gradients by the first and by the second images are needed."""


@dataclass(frozen=True)
class LossJob:
    """A loss of (N, C, H, W) tensors on a backend, with the Vulkan device for tensors that are on the CPU.

    Its value is the mean over all planes, or (N,) means of each image over its channels.
    """

    loss: Loss
    backend: str
    device: str | int | None
    average: bool

    def gradients(
        self, first: Tensor, second: Tensor, needs_grad: NeedsGrad
    ) -> tuple[Tensor, tuple[Tensor | None, Tensor | None]]:
        """Return the value, and the gradients by the images for which `needs_grad` is set.

        The metric is symmetric, so the gradient by the second images is the one by the first, with the images exchanged.
        """
        first, second = first.detach(), second.detach()
        _look_at_range(self.loss, first, second)
        if not any(needs_grad):
            return self._compute(first, second, gradient=False)[0], (None, None)
        result, by_first = self._compute(first, second, gradient=True) if needs_grad[0] else (None, None)
        exchanged, by_second = self._compute(second, first, gradient=True) if needs_grad[1] else (None, None)
        chosen = exchanged if result is None else result
        assert chosen is not None
        return chosen, (by_first, by_second)

    def _compute(self, distorted: Tensor, reference: Tensor, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
        """Return the value, and the gradient by the distorted images, in their shape."""
        count, channels = distorted.shape[:2]
        step = LossStep(self.loss, gradient, weight=1.0 / (count * channels if self.average else channels))
        if self.backend == "vulkan" and cuda.takes(distorted.device):
            images = distorted.contiguous(), reference.contiguous()
            pool = partial(self._pooled, channels)
            return cuda.use_sharing(distorted.device, lambda sharing: sharing.compute(*images, step, pool))
        planes = (-1, self.loss.height, self.loss.width)
        arrays = (_host_copy(image).reshape(planes).numpy() for image in (reference, distorted))
        values, result = evaluate(step, *arrays, backend=self.backend, device=self.device)
        kind = np.float64 if distorted.dtype is torch.float64 else np.float32
        value = self._pooled(channels, torch.from_numpy(values.astype(kind)).to(distorted.device))
        return value, None if result is None else torch.from_numpy(result).view(distorted.shape).to(distorted)

    def _pooled(self, channels: int, values: Tensor) -> Tensor:
        return values.mean() if self.average else values.view(-1, channels).mean(dim=1)


_MAX_LOOKS = 64
_looked_at: set[tuple[float, int, int]] = set()


def _look_at_range(loss: Loss, first: Tensor, second: Tensor) -> None:
    """Issue a DataRangeWarning if the samples do not fit the range of a loss.

    Only the first batch of each range and size is looked at, because the host waits for the GPU to see its samples.
    """
    key = loss.data_range, loss.height, loss.width
    if key in _looked_at or len(_looked_at) >= _MAX_LOOKS:
        return
    if first.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return
    _looked_at.add(key)
    warn_of_range(loss.data_range, SampleRows.of(first), SampleRows.of(second), is_loss=True)


def value(first: Tensor, second: Tensor, job: LossJob) -> Tensor:
    """Return the value of two tensors as a node of the graph. Gradients flow to both, also with `torch.func` and forward mode.

    Gradients are computed together with the value, and stored until `backward` multiplies them in place by the upstream
    gradient. They need no more memory than the result itself. If no gradient is needed, nothing is stored. Derivatives of
    gradients use PyTorch's own operations (composed.py).
    """
    if _DYNAMO not in sys.modules:
        return _value(first, second, job)
    if not _untraced:
        _untraced.append(torch.compiler.disable(_value))  # otherwise Dynamo traces into Vulkan's binding
    result: Tensor = _untraced[0](first, second, job)
    return result


_DYNAMO = "torch._dynamo"  # which takes as long to import as all else of PyTorch, and only torch.compile needs it
_untraced: list[Callable[[Tensor, Tensor, LossJob], Tensor]] = []


def _value(first: Tensor, second: Tensor, job: LossJob) -> Tensor:
    needs_grad = torch.is_grad_enabled() and first.requires_grad, torch.is_grad_enabled() and second.requires_grad
    plain = not transforms_active() and not has_tangent(first, second)
    if plain and not any(needs_grad):
        return job.gradients(first, second, needs_grad)[0]  # a node costs time and has no use here
    node: Any = _PlainValue if plain else _Value
    result: Tensor = node.apply(first, second, _Call(job, needs_grad))
    return result


def differentiable_gradients(
    first: Tensor, second: Tensor, upstream: Tensor, job: LossJob, needs_grad: NeedsGrad
) -> tuple[Tensor, ...]:
    """Return the needed gradients, times the upstream gradient, as a node of the graph."""
    gradients: tuple[Tensor, ...] = _Gradients.apply(first, second, upstream, _Call(job, needs_grad), needs_grad)  # type: ignore[no-untyped-call, unused-ignore]
    return gradients


class _Call:
    """One evaluation of a job. It stores the gradients that were computed with the value until the backward pass."""

    def __init__(self, job: LossJob, needs_grad: NeedsGrad) -> None:
        self.job, self.needs_grad = job, needs_grad
        self._kept: tuple[Tensor | None, Tensor | None] | None = None

    def value(self, first: Tensor, second: Tensor) -> Tensor:
        result, gradients = self.job.gradients(first, second, self.needs_grad)
        self._kept = gradients if any(self.needs_grad) else None
        return result

    def gradients(self, first: Tensor, second: Tensor, needs_grad: NeedsGrad) -> list[Tensor]:
        """Return the needed gradients, in tensors that the caller may change: the stored ones at first, later new ones."""
        kept, self._kept = self._kept, None
        if kept is None or any(needed and gradient is None for needed, gradient in zip(needs_grad, kept, strict=True)):
            _, kept = self.job.gradients(first, second, needs_grad)
        return [gradient for needed, gradient in zip(needs_grad, kept, strict=True) if needed and gradient is not None]


class _Value(torch.autograd.Function):
    """The value as a node; its gradients are `_Gradients` of the same images."""

    @staticmethod
    def forward(first: Tensor, second: Tensor, call: _Call) -> Tensor:
        return call.value(first, second)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        first, second, ctx.call = inputs
        ctx.save_for_backward(first, second)
        ctx.save_for_forward(first, second)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        needs_grad = ctx.needs_input_grad[:2]
        plain = not torch.is_grad_enabled() and not transforms_active()
        compute: Any = _scaled_gradients if plain else _Gradients.apply
        gradients = iter(compute(*ctx.saved_tensors, upstream, ctx.call, needs_grad))
        return *(next(gradients) if needed else None for needed in needs_grad), None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        first, second = ctx.saved_tensors
        average = ctx.call.job.average
        needs_grad = tangents[0] is not None, tangents[1] is not None
        ones = first.new_ones(() if average else len(first))
        gradients = _Gradients.apply(first, second, ones, ctx.call, needs_grad)  # type: ignore[no-untyped-call, unused-ignore]
        given = [tangent for tangent in tangents[:2] if tangent is not None]
        products = [(gradient * tangent).flatten(1).sum(dim=1) for gradient, tangent in zip(gradients, given, strict=True)]
        by_image = torch.stack(products).sum(dim=0)
        return by_image.sum() if average else by_image

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], first: Tensor, second: Tensor, call: _Call) -> tuple[Tensor, int]:
        """Merge the mapped dimension into that of the images."""
        first, second = (leading(image, dim, info.batch_size) for image, dim in zip((first, second), in_dims[:2], strict=True))
        by_image = value(first.flatten(0, 1), second.flatten(0, 1), replace(call.job, average=False))
        by_image = by_image.view(info.batch_size, -1)
        return by_image.mean(dim=1) if call.job.average else by_image, 0


class _PlainValue(torch.autograd.Function):
    """`_Value` outside of transforms and of forward mode, whose rules take PyTorch longer than all else that it does here."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, call: _Call) -> Tensor:
        ctx.call = call
        ctx.save_for_backward(first, second)
        return call.value(first, second)

    backward = staticmethod(_Value.backward)


class _Gradients(torch.autograd.Function):
    """The needed gradients, times the upstream gradient; composed.py makes them differentiable."""

    @staticmethod
    def forward(first: Tensor, second: Tensor, upstream: Tensor, call: _Call, needs_grad: NeedsGrad) -> tuple[Tensor, ...]:
        return _scaled_gradients(first, second, upstream, call, needs_grad)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        first, second, upstream, call, ctx.needs_grad = inputs
        ctx.job = call.job
        ctx.save_for_backward(first, second, upstream)
        ctx.save_for_forward(first, second, upstream)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Return second derivatives: those of the gradients by the images, and by the upstream gradient, which scales them."""
        inputs = _in_double(ctx.saved_tensors)
        pull: Any = torch.func.vjp(_composed_gradients(ctx.job, ctx.needs_grad), *inputs)[1]
        gradients = pull(_in_double(upstream))
        return *(tensor.to(like) for tensor, like in zip(gradients, ctx.saved_tensors, strict=True)), None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor, ...]:
        pairs = zip(ctx.saved_tensors, tangents[:3], strict=True)
        given = [torch.zeros_like(like) if tangent is None else tangent for like, tangent in pairs]
        function = _composed_gradients(ctx.job, ctx.needs_grad)
        gradients = torch.func.jvp(function, _in_double(ctx.saved_tensors), _in_double(given))[1]
        return tuple(tensor.to(ctx.saved_tensors[0]) for tensor in gradients)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        first: Tensor,
        second: Tensor,
        upstream: Tensor,
        call: _Call,
        needs_grad: NeedsGrad,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """Merge the mapped dimension into that of the images."""
        first, second, upstream = (
            leading(tensor, dim, info.batch_size) for tensor, dim in zip((first, second, upstream), in_dims[:3], strict=True)
        )
        images = first.shape[1]
        if call.job.average:
            upstream = (upstream / images)[:, None].expand(-1, images)
        single = _Call(replace(call.job, average=False), needs_grad)
        gradients = _Gradients.apply(  # type: ignore[no-untyped-call, unused-ignore]
            first.flatten(0, 1), second.flatten(0, 1), upstream.flatten(), single, needs_grad
        )
        return tuple(gradient.view(first.shape) for gradient in gradients), (0,) * len(gradients)


def _scaled_gradients(
    first: Tensor, second: Tensor, upstream: Tensor, call: _Call, needs_grad: NeedsGrad
) -> tuple[Tensor, ...]:
    """Return the needed gradients, times the upstream gradient: one number, or one number for each image."""
    by_image = upstream if upstream.ndim == 0 else upstream.view(-1, 1, 1, 1)
    return tuple(_scaled(gradient, by_image) for gradient in call.gradients(first, second, needs_grad))


def _scaled(gradient: Tensor, factor: Tensor) -> Tensor:
    """Return the product, in place if its shape is that of the gradient."""
    try:
        return gradient.mul_(factor)
    except RuntimeError:  # torch.autograd.grad(..., is_grads_batched=True) passes many factors at a time
        return gradient * factor


def _composed_gradients(job: LossJob, needs_grad: NeedsGrad) -> Any:
    """Return the function of (first, second, upstream) that computes `_Gradients` in double precision."""

    def whole(first: Tensor, second: Tensor) -> Tensor:
        by_image = composed.values(job.loss, first, second)
        return by_image.mean() if job.average else by_image

    def gradients(first: Tensor, second: Tensor, upstream: Tensor) -> tuple[Tensor, ...]:
        pull: Any = torch.func.vjp(whole, first, second)[1]
        return tuple(gradient for gradient, needed in zip(pull(upstream), needs_grad, strict=True) if needed)

    return gradients


def _in_double(tensors: Any) -> tuple[Tensor, ...]:
    """Return the tensors in double precision, on the CPU if their device does not support it."""
    return tuple(tensor.to(None if tensor.device.type in ("cpu", "cuda") else "cpu", torch.float64) for tensor in tensors)


def leading(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    """Return the tensor with the mapped dimension first; a tensor without it is expanded."""
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def has_tangent(*images: Tensor) -> bool:
    """Return whether one of the tensors has a tangent of forward-mode differentiation."""
    return any(unpack_dual(image).tangent is not None for image in images)


def _host_copy(image: Tensor) -> Tensor:
    """Return the images on the host: the images themselves if they are there, otherwise a copy through pinned memory."""
    if image.device.type == "cpu":
        return image
    return torch.empty(image.shape, dtype=image.dtype, pin_memory=image.device.type == "cuda").copy_(image)
