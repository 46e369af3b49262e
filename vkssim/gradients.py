"""Compute SSIM and MS-SSIM of NumPy arrays with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from .backends.loss_engine import LossStep
from .backends.open import evaluate
from .errors import FrameError, OptionError
from .loss.spec import MS_SSIM_WEIGHTS, Loss, Negative, Padding, Pyramid, chosen, constants
from .types import Doubles, FrameFormat, alike_arrays, default_range, has_colours_last
from .utils.float_range import SampleRows, warn_of_range
from .utils.limits import real_numbers

Array = npt.NDArray[Any]

REDUCTIONS = ("mean", "sum", "none")


def ssim_and_grad(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    padding: str = "valid",
    k: Sequence[float] = (0.01, 0.03),
    reduction: str = "mean",
    backend: str = "vulkan",
    device: str | int | None = None,
) -> tuple[float | Doubles, Array]:
    """Return the structural similarity of images and its gradient with respect to the distorted images.

    Parameters
    ----------
    reference, distorted : array_like
        Images (H, W), (N, H, W) or (N, C, H, W), both of the same shape and type: uint8, uint16, float32 or float64, with any
        strides. H and W must be at least 11 if padding is "valid". The value is computed in float32.
    data_range : float, optional
        The largest possible sample. For integers, the default is the largest of their type; floats have no default. If the
        floats of both arrays lie far outside of the range, or take a small part of it, there is a DataRangeWarning.
    padding : {"valid", "same"}
        The positions of windows: only inside the image, or centred on every sample, with zeros outside.
    k : (float, float)
        K1 and K2 of C1 = (K1 data_range)^2 and C2 = (K2 data_range)^2, both above 0.
    reduction : {"mean", "sum", "none"}
        The combination of the images' values, each of which is the mean over its channels. "none" returns every value, and
        each image's gradient is the gradient of its own value.
    backend : {"vulkan", "cpu"}
        The backend that computes; "cpu" is NumPy in float64. No other backend ever replaces it.
    device : str or int, optional
        Index, part of the name, or UUID of the Vulkan device.

    Returns
    -------
    value : float, or (N,) array of float64
        At most 1, and 1 for identical images. It is an array if reduction is "none" and the arrays have an axis of images.
    gradient : array of float32 (float64 for "cpu")
        The gradient has the shape of `distorted`; it is 0 for identical images. The value grows along it, so a loss is 1 -
        value.

    Raises
    ------
    FrameError
        Shapes differ or are not supported, images are too small or masked, floats have no data_range, or an integer sample is
        larger than data_range.
    OptionError
        A parameter has a value that is not allowed.
    DeviceError
        No Vulkan device can be used.

    Examples
    --------
    >>> import numpy as np, vkssim
    >>> image = np.random.default_rng(0).random((3, 64, 64))
    >>> value, gradient = vkssim.ssim_and_grad(image, image, data_range=1.0)
    >>> value, float(abs(gradient).max())
    (1.0, 0.0)

    """
    options: dict[str, Any] = {"k": k, "padding": chosen(Padding, padding)}
    return _value_and_grad(reference, distorted, data_range, options, reduction, backend, device)


def ms_ssim_and_grad(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    padding: str = "valid",
    k: Sequence[float] = (0.01, 0.03),
    weights: Sequence[float] = MS_SSIM_WEIGHTS,
    pyramid: str = "average",
    negative: str = "clamp",
    reduction: str = "mean",
    backend: str = "vulkan",
    device: str | int | None = None,
) -> tuple[float | Doubles, Array]:
    """Return the multi-scale structural similarity of images and its gradient with respect to the distorted images.

    Parameters
    ----------
    reference, distorted : array_like
        Images (H, W), (N, H, W) or (N, C, H, W), both of the same shape and type, as for `ssim_and_grad`. With five weights and
        padding "valid", H and W must be at least 161: 11 samples must remain on the last scale.
    data_range, padding, k : optional
        As for `ssim_and_grad`.
    weights : sequence of float
        The exponent of each scale, the finest first. The number of weights is the number of scales.
    pyramid : {"average", "libvmaf"}
        The filter that makes a scale from the previous one: 2x2 means as in PyTorch's libraries, or libvmaf's low-pass.
    negative : {"clamp", "null"}
        The result if a mean of contrast and structure is negative: 0 with gradient 0, or NaN.
    reduction, backend, device : optional
        As for `ssim_and_grad`.

    Returns
    -------
    value : float, or (N,) array of float64
        At most 1, and 1 for identical images. The value of a plane is the product over the scales of mean(cs)^weight, with l cs
        in place of cs on the last scale. It is an array if reduction is "none" and the arrays have an axis of images.
    gradient : array of float32 (float64 for "cpu")
        The gradient has the shape of `distorted`. The value grows along it, so a loss is 1 - value.

    Raises
    ------
    FrameError, OptionError, DeviceError
        As for `ssim_and_grad`.

    Examples
    --------
    >>> import numpy as np, vkssim
    >>> image = np.random.default_rng(0).random((176, 176))
    >>> value, gradient = vkssim.ms_ssim_and_grad(image, image, data_range=1.0)
    >>> value, gradient.shape
    (1.0, (176, 176))

    """
    options: dict[str, Any] = {
        "k": k,
        "padding": chosen(Padding, padding),
        "weights": real_numbers("weights", weights),
        "pyramid": chosen(Pyramid, pyramid),
        "negative": chosen(Negative, negative),
    }
    return _value_and_grad(reference, distorted, data_range, options, reduction, backend, device)


def _value_and_grad(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    data_range: float | None,
    options: dict[str, Any],
    reduction: str,
    backend: str,
    device: str | int | None,
) -> tuple[float | Doubles, Array]:
    first, second = alike_arrays(reference, distorted)
    if second.ndim not in (2, 3, 4):
        raise FrameError(f"images have shape {second.shape}; the shape must be (H, W), (N, H, W) or (N, C, H, W)")
    if not second.size:
        raise FrameError(f"an array of shape {second.shape} has no image")
    if reduction not in REDUCTIONS:
        raise OptionError(f"reduction is {reduction!r}; possible values: {', '.join(REDUCTIONS)}")
    if has_colours_last(second.shape) and options["padding"] is Padding.VALID:
        cure = "np.moveaxis(image, -1, 0)[None]" if second.ndim == 3 else "np.moveaxis(images, -1, 1)"
        raise FrameError(f"images have shape {second.shape}, with the colours last; pass (N, C, H, W): `{cure}`")
    height, width = second.shape[-2:]
    data_range = default_range(first, second) if data_range is None else data_range
    frame = FrameFormat.of_array(width, height, second.dtype, data_range)
    frame.check_samples("reference", first)
    frame.check_samples("distorted", second)
    if second.dtype.kind == "f":
        warn_of_range(frame.peak, SampleRows.of(first), SampleRows.of(second), is_loss=True)
    loss = Loss(height, width, **constants(frame.peak, options.pop("k")), **options)
    channels = second.shape[1] if second.ndim == 4 else 1
    images = second.shape[0] if second.ndim > 2 else 1
    step = LossStep(loss, gradient=True, weight=1.0 / channels / (images if reduction == "mean" else 1))
    planes = (images * channels, height, width)
    values, gradient = evaluate(step, first.reshape(planes), second.reshape(planes), backend=backend, device=device)
    assert gradient is not None
    by_image = values.reshape(images, channels).mean(axis=1)
    if reduction == "none" and second.ndim > 2:
        return by_image, gradient.reshape(second.shape)
    return float(by_image.mean() if reduction == "mean" else by_image.sum()), gradient.reshape(second.shape)
