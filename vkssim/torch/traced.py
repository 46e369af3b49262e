"""The losses under `torch.compile`: each is one operator of the graph, so the graph does not break."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import OptionError
from ..loss.spec import Loss, Negative, Padding, Pyramid
from .autograd import LossJob, differentiable_gradients, has_tangent, leading, transforms_active

# A CUDA graph would record the signals to Vulkan, but not the work of Vulkan.
_TAGS: dict[str, Any] = {"tags": (torch.Tag.cudagraph_unsafe,)} if hasattr(torch.Tag, "cudagraph_unsafe") else {}
_is_batched = torch._C._functorch.is_batchedtensor


@torch.library.custom_op("vkssim::value_and_gradients", mutates_args=(), **_TAGS)
def value_and_gradients(
    first: Tensor, second: Tensor, by_first: bool, by_second: bool, average: bool, numbers: list[float], words: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the value and both gradients; a gradient that is not needed is empty. `numbers` and `words` are of `_packed`."""
    if has_tangent(first, second):
        raise OptionError("forward-mode differentiation of a compiled loss is not possible; leave it out of torch.compile")
    job = _job(first, average, numbers, words)
    result, computed = job.gradients(first, second, (by_first, by_second))
    gradients = [first.new_empty(0) if gradient is None else gradient for gradient in computed]
    return result, gradients[0], gradients[1]


@value_and_gradients.register_fake
def _(first: Tensor, second: Tensor, by_first: bool, by_second: bool, average: bool, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    gradients = [first.new_empty(first.shape if needs_grad else 0) for needs_grad in (by_first, by_second)]
    return first.new_empty(() if average else first.shape[:1]), gradients[0], gradients[1]


@value_and_gradients.register_vmap
def _(
    info: Any,
    in_dims: tuple[int | None, ...],
    first: Tensor,
    second: Tensor,
    by_first: bool,
    by_second: bool,
    average: bool,
    *settings: Any,
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[int, int, int]]:
    """Merge the mapped dimension into that of the images."""
    size = info.batch_size
    first, second = (leading(image, dim, size) for image, dim in zip((first, second), in_dims[:2], strict=True))
    folded = first.flatten(0, 1), second.flatten(0, 1)
    by_image, *gradients = value_and_gradients(*folded, by_first, by_second, False, *settings)
    by_image = by_image.view(size, -1)
    if average:
        gradients = [gradient / first.shape[1] for gradient in gradients]
        by_image = by_image.mean(dim=1)
    shaped = [gradient.view(first.shape) if gradient.numel() else gradient.expand(size, 0) for gradient in gradients]
    return (by_image, shaped[0], shaped[1]), (0, 0, 0)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    first, second, by_first, by_second, *ctx.settings = inputs
    ctx.needs_grad = by_first, by_second
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(first, second, *output[1:])


def _backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    first, second, *gradients = ctx.saved_tensors
    if torch.is_grad_enabled():  # the gradients will be differentiated themselves
        needed_gradients = iter(differentiable_gradients(first, second, upstream, _job(first, *ctx.settings), ctx.needs_grad))
        both = [next(needed_gradients) if needed else None for needed in ctx.needs_grad]
    else:
        by_image = upstream if upstream.ndim == 0 else upstream.view(-1, 1, 1, 1)
        both = [by_image * gradient if needed else None for needed, gradient in zip(ctx.needs_grad, gradients, strict=True)]
    return *both, *(None,) * (2 + len(ctx.settings))


value_and_gradients.register_autograd(_backward, setup_context=_setup_context)


def _packed(job: LossJob) -> tuple[list[float], str]:
    """Return a job as arguments of the operator: the constants, the range and the weights, and the choices between spaces."""
    loss = job.loss
    choices = f"{loss.padding.value} {loss.pyramid.value} {loss.negative.value}"
    device = "" if job.device is None else job.device
    return [loss.c1, loss.c2, loss.data_range, *loss.weights], f"{choices} {job.backend} {device}"


def _job(images: Tensor, average: bool, numbers: list[float], words: str) -> LossJob:
    """Return the job of `_packed`."""
    c1, c2, data_range, *weights = numbers
    padding, pyramid, negative, backend, device = words.split(" ", 4)
    choices = Padding(padding), tuple(weights), Pyramid(pyramid), Negative(negative)
    height, width = images.shape[2:]
    loss = Loss(height, width, c1, c2, *choices, data_range=data_range)
    return LossJob(loss, backend, device or None, average)


def traced_value(first: Tensor, second: Tensor, job: LossJob) -> Tensor:
    """Return the value of two tensors as `autograd.value` does, in a graph that is being traced.

    Raises OptionError within torch.compile under a transform of `torch.func` other than vmap.
    """
    if transforms_active() and not (_is_batched(first) or _is_batched(second)):
        raise OptionError(
            "torch.func's derivatives of a loss are not possible within torch.compile; leave them out of the compiled function,"
            " or take the gradient by backward()"
        )
    enabled = torch.is_grad_enabled()
    needs_grad = enabled and first.requires_grad, enabled and second.requires_grad
    results: tuple[Tensor, Tensor, Tensor] = value_and_gradients(first, second, *needs_grad, job.average, *_packed(job))
    return results[0]
