"""The functions, and those of pytorch-msssim as modules, with the arguments of the packages after which they are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from ..backends.open import check_backend
from ..errors import FrameError, OptionError
from ..loss.spec import MS_SSIM_WEIGHTS, Loss, Negative, Padding, Pyramid, chosen, constants
from ..types import has_colours_last
from ..utils.limits import integer, real_number, real_numbers
from .autograd import LossJob, value
from .traced import traced_value

_HALVES = (torch.float16, torch.bfloat16)
"""The types that are computed in float32, as an image within `torch.autocast` has one and its target has not."""

_COLOURS_FIRST = {3: "`image.permute(2, 0, 1)`", 4: "`images.permute(0, 3, 1, 2)`", 5: "`clips.permute(0, 1, 4, 2, 3)`"}
"""Code that converts tensors with the colours last to tensors with the colours first, by their number of axes."""


def fused_ssim(
    img1: Tensor,
    img2: Tensor,
    padding: str = "same",
    train: bool = True,
    *,
    data_range: float = 1.0,
    backend: str = "vulkan",
    device: str | int | None = None,
) -> Tensor:
    """Return the mean structural similarity of two batches, with the signature and the numbers of the package fused_ssim.

    Parameters
    ----------
    img1, img2 : Tensor
        Images (N, C, H, W), one image (C, H, W), or clips (N, C, T, H, W) or (N, T, C, H, W), whose frames are compared one by
        one. Both have one shape and device. The types are float32, and float16 and bfloat16, which are computed in float32 and
        need not be those of the other images; or float64 for both with `backend="cpu"`. Gradients flow to both.
    padding : {"same", "valid"}
        "same" has a window on every sample, with zeros beyond the border. "valid" has only windows completely inside.
    train : bool
        If it is False, only the value is computed and nothing is stored, as with torch.no_grad.
    data_range : float
        The largest possible sample.
    backend : {"vulkan", "cpu"}
        The backend that computes it; "cpu" is the NumPy twin in float64, for checks. No other backend ever replaces it.
    device : str or int, optional
        The Vulkan device for tensors on the CPU: index, part of the name, or UUID.

    Returns
    -------
    Tensor
        A scalar, float32 (float64 for float64 images), on the device of the images. It is at most 1, and 1 for identical
        images. The loss is 1 - value.

    Raises
    ------
    FrameError
        The images differ in shape, type or device, have fewer than 3 axes or more than 5, or are too small.
    OptionError
        An argument has an invalid value.
    DeviceError
        No Vulkan device can be used, or it cannot share memory with the images' device (see `host_staging`).

    References
    ----------
    .. [1] Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality assessment: from error visibility to
       structural similarity", IEEE Transactions on Image Processing 13 (4), 2004.

    """
    options = {"padding": chosen(Padding, padding), **constants(data_range)}
    with nullcontext() if train else torch.no_grad():
        return _value(img1, img2, options, backend, device, average=True)


def ssim(
    X: Tensor,  # noqa: N803 - pytorch-msssim's names
    Y: Tensor,  # noqa: N803
    data_range: float = 255,
    size_average: bool = True,
    win_size: int = 11,
    win_sigma: float = 1.5,
    win: Tensor | None = None,
    K: Sequence[float] = (0.01, 0.03),  # noqa: N803
    nonnegative_ssim: bool = False,
    *,
    padding: str = "valid",
    backend: str = "vulkan",
    device: str | int | None = None,
) -> Tensor:
    """Return the structural similarity of two batches, with the arguments and the numbers of pytorch-msssim.

    Parameters
    ----------
    X, Y : Tensor
        Images, one image, or clips, as for `fused_ssim`; H and W are 11 at least if padding is "valid".
    data_range : float
        The largest possible sample, 1.0 for samples from 0 to 1. If both images of the first batch of a size lie far outside of
        the range, or take a small part of it, there is a DataRangeWarning.
    size_average : bool
        Return the mean over all images; otherwise each image's own value, or that of each clip, which is the mean over its
        frames.
    win_size : int
        Taps of the window; it must be 11, since the window is compiled in.
    win_sigma : float
        Standard deviation of the window in samples; it must be 1.5.
    win : Tensor, optional
        A window of one's own; it must be None.
    K : (float, float)
        K1 and K2 of C1 = (K1 data_range)^2 and C2 = (K2 data_range)^2.
    nonnegative_ssim : bool
        A channel's negative value counts as 0, with gradient 0.
    padding : {"valid", "same"}
        Windows lie inside the images, or on every sample with zeros beyond the border.
    backend, device : optional
        As for `fused_ssim`.

    Returns
    -------
    Tensor
        A scalar, or (N,) if size_average is False and the tensors have N images or clips; float32 (float64 for float64
        images).

    Raises
    ------
    FrameError, OptionError, DeviceError
        As for `fused_ssim`.

    """
    _check_window(win_size, win_sigma, win)
    negative = Negative.CLAMP if nonnegative_ssim else Negative.KEEP
    options = {"padding": chosen(Padding, padding), "negative": negative, **constants(data_range, K)}
    return _value(X, Y, options, backend, device, average=size_average)


def ms_ssim(
    X: Tensor,  # noqa: N803
    Y: Tensor,  # noqa: N803
    data_range: float = 255,
    size_average: bool = True,
    win_size: int = 11,
    win_sigma: float = 1.5,
    win: Tensor | None = None,
    weights: Sequence[float] | None = None,
    K: Sequence[float] = (0.01, 0.03),  # noqa: N803
    *,
    pyramid: str = "average",
    padding: str = "valid",
    negative: str = "clamp",
    backend: str = "vulkan",
    device: str | int | None = None,
) -> Tensor:
    """Return the multi-scale structural similarity of two batches, with the arguments and the numbers of pytorch-msssim.

    Parameters
    ----------
    X, Y : Tensor
        Images, one image, or clips, as for `fused_ssim`; H and W are 161 at least with five weights if padding is "valid",
        since 11 samples must remain on the last scale.
    data_range, size_average, win_size, win_sigma, win : optional
        As for `ssim`.
    weights : sequence of float, optional
        The exponent of each scale, the finest first; there are as many scales as weights. By default they are the five of [1]_.
    K : (float, float)
        As for `ssim`.
    pyramid : {"average", "libvmaf"}
        How a scale is made from the previous one: by 2x2 means, or by the low-pass of libvmaf's float_ms_ssim.
    padding : {"valid", "same"}
        Windows lie inside the images, or on every sample with zeros beyond the border.
    negative : {"clamp", "null"}
        The value of a channel whose mean is negative: 0, with gradient 0, or NaN.
    backend, device : optional
        As for `fused_ssim`.

    Returns
    -------
    Tensor
        As for `ssim`.

    Raises
    ------
    FrameError, OptionError, DeviceError
        As for `fused_ssim`.

    References
    ----------
    .. [1] Z. Wang, E. P. Simoncelli, A. C. Bovik, "Multi-scale structural similarity for image quality assessment",
       Asilomar Conference on Signals, Systems and Computers, 2003.

    """
    _check_window(win_size, win_sigma, win)
    options = {
        "padding": chosen(Padding, padding),
        "pyramid": chosen(Pyramid, pyramid),
        "negative": chosen(Negative, negative),
        "weights": MS_SSIM_WEIGHTS if weights is None else real_numbers("weights", weights),
        **constants(data_range, K),
    }
    return _value(X, Y, options, backend, device, average=size_average)


def _check_window(win_size: int, win_sigma: float, win: Tensor | None) -> None:
    """Raise OptionError for any window except the one that is compiled in."""
    if win is not None:
        raise OptionError("win is given; the window is compiled in, 11 taps of standard deviation 1.5: leave win out")
    if (real_number("win_size", win_size), real_number("win_sigma", win_sigma)) != (11.0, 1.5):
        raise OptionError(f"the window is {win_size} taps of standard deviation {win_sigma}; 11 taps of 1.5 are possible")


def _value(
    first: Tensor, second: Tensor, options: dict[str, Any], backend: str, device: str | int | None, *, average: bool
) -> Tensor:
    check_backend(backend)
    _check_images(first, second, backend, options["padding"])
    if first.ndim == 3:  # one image, whose value is a scalar in any case
        first, second, average = first[None], second[None], True
    elif first.ndim == 5:  # the frames of a clip are planes as the channels of an image are
        first, second = first.flatten(1, 2), second.flatten(1, 2)
    height, width = first.shape[2:]
    make = _job if torch.compiler.is_compiling() else _kept_job  # torch.compile warns of caches
    job = make(backend, device, average, height=height, width=width, **options)
    first, second = (image.float() if image.dtype in _HALVES else image for image in (first, second))
    return traced_value(first, second, job) if torch.compiler.is_compiling() else value(first, second, job)


def _job(backend: str, device: str | int | None, average: bool, **options: Any) -> LossJob:
    return LossJob(Loss(**options), backend, device, average)


_kept_job = lru_cache(maxsize=64)(_job)  # to make a job takes a tenth of a small step's time


def _check_images(first: Tensor, second: Tensor, backend: str, padding: Padding) -> None:
    both = f"the images are {_described(first)} and {_described(second)}"
    if (first.shape, first.device) != (second.shape, second.device):
        raise FrameError(f"{both}; they must be alike")
    if first.dtype != second.dtype and not {first.dtype, second.dtype} <= {*_HALVES, torch.float32}:
        raise FrameError(f"{both}; give both one type, such as float32 by .float()")
    if first.ndim not in (3, 4, 5):
        raise FrameError(
            f"the images are {_described(first)}; (C, H, W), (N, C, H, W) and clips (N, C, T, H, W) are possible: give a plane"
            " with `image[None]`"
        )
    # With zeros outside, images may be 3 samples wide.
    if has_colours_last(first.shape[-4:]) and (padding is Padding.VALID or first.ndim != 4):
        raise FrameError(
            f"the images are {_described(first)}, with the colours last; give them first: {_COLOURS_FIRST[first.ndim]}"
        )
    if not first.numel():
        raise FrameError(f"no image in a tensor that is {_described(first)}")
    if first.device.type == "meta":
        raise FrameError(f"the images are {_described(first)}, without samples")
    if first.dtype is torch.float64 and backend != "cpu":
        raise FrameError(
            f"the images are {_described(first)}; float32 at most is computed on a device: .float(), or backend='cpu'"
        )
    if first.dtype not in (*_HALVES, torch.float32, torch.float64):
        raise FrameError(f"the images are {_described(first)}; float32, float16 and bfloat16 are possible")


def _described(image: Tensor) -> str:
    return f"{tuple(image.shape)} {str(image.dtype).removeprefix('torch.')} on {image.device}"


# -- modules -----------------------------------------------------------------------------------------------------------


class _Similarity(nn.Module):
    """A function of two batches with its `arguments`, which may be changed between calls."""

    def __init__(self, function: Callable[..., Tensor], given: Mapping[str, Any]) -> None:
        super().__init__()
        _check_window(given["win_size"], given["win_sigma"], None)
        if integer("spatial_dims", given["spatial_dims"]) != 2:
            raise OptionError(f"spatial_dims is {given['spatial_dims']}; images of 2 dimensions are possible")
        chosen(Padding, given["padding"])
        self.function = function
        self.arguments = {name: given[name] for name in signature(function).parameters if name in given}

    def extra_repr(self) -> str:
        """Return the arguments."""
        return ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())

    def forward(self, X: Tensor, Y: Tensor) -> Tensor:  # noqa: N803 - pytorch-msssim's names
        """Return the similarity of two batches, as the function of the same name does."""
        return self.function(X, Y, **self.arguments)


class SSIM(_Similarity):
    """`ssim` as a module.

    Parameters
    ----------
    data_range, size_average, win_size, win_sigma : optional
        As for `ssim`.
    channel, spatial_dims : int
        `channel` may be any number, because the images have their channels; `spatial_dims` must be 2.
    K, nonnegative_ssim, padding, backend, device : optional
        As for `ssim`.

    Raises
    ------
    OptionError
        An argument has an invalid value.

    """

    def __init__(
        self,
        data_range: float = 255,
        size_average: bool = True,
        win_size: int = 11,
        win_sigma: float = 1.5,
        channel: int = 3,
        spatial_dims: int = 2,
        K: Sequence[float] = (0.01, 0.03),  # noqa: N803 - pytorch-msssim's names
        nonnegative_ssim: bool = False,
        *,
        padding: str = "valid",
        backend: str = "vulkan",
        device: str | int | None = None,
    ) -> None:
        super().__init__(ssim, dict(locals()))


class MS_SSIM(_Similarity):  # noqa: N801
    """`ms_ssim` as a module.

    Parameters
    ----------
    data_range, size_average, win_size, win_sigma : optional
        As for `ms_ssim`.
    channel, spatial_dims : int
        `channel` may be any number, because the images have their channels; `spatial_dims` must be 2.
    weights, K, pyramid, padding, negative, backend, device : optional
        As for `ms_ssim`.

    Raises
    ------
    OptionError
        An argument has an invalid value.

    """

    def __init__(
        self,
        data_range: float = 255,
        size_average: bool = True,
        win_size: int = 11,
        win_sigma: float = 1.5,
        channel: int = 3,
        spatial_dims: int = 2,
        weights: Sequence[float] | None = None,
        K: Sequence[float] = (0.01, 0.03),  # noqa: N803
        *,
        pyramid: str = "average",
        padding: str = "valid",
        negative: str = "clamp",
        backend: str = "vulkan",
        device: str | int | None = None,
    ) -> None:
        chosen(Pyramid, pyramid)
        chosen(Negative, negative)
        super().__init__(ms_ssim, dict(locals()))
