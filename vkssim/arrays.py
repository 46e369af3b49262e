"""Compute SSIM and MS-SSIM of NumPy arrays.

The device stays open between calls with images of the same size and type. `Scorer` gives control over when it is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from .backends.device_cache import DeviceCache
from .errors import FrameError
from .features.options import OptionValue
from .maps.mapper import FloatMaps, SsimMapper
from .scorer import Scorer
from .types import Doubles, FrameFormat, check_not_masked, default_range, has_colours_last


def ms_ssim(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    negative: str = "null",
    precision: str = "exact",
    enable_db: bool = False,
    clip_db: bool = False,
    backend: str = "vulkan",
    device: str | int | None = None,
) -> float | Doubles:
    """Return the multi-scale structural similarity of images, as libvmaf's float_ms_ssim computes it.

    Parameters
    ----------
    reference, distorted : array_like
        Images of one plane, (H, W), or a stack of them, (N, H, W), both of the same shape and type: uint8, uint16, float32 or
        float64, with any strides. H and W must be at least 176. Scores are computed in float32.
    data_range : float, optional
        The largest possible sample, 1e-30 to 1e30. For integers, the default is the largest of their type, 255 or 65535; 1023
        stands for 10 bits. If no sample exceeds a quarter of 65535 by default, there is a DepthWarning. Floats have no default.
    negative : {"null", "clamp"}
        The score where a mean structure is negative: NaN, or computed with 0 in its place, as the PyTorch libraries do.
    precision : {"exact", "fast"}
        "exact" rounds as libvmaf does, to be within one of its sixth decimal. "fast" adds in float32, which takes less time,
        and can be off by 0.03 for images that are bright and nearly flat.
    enable_db : bool
        Return the score in dB, -10 log10(1 - score), which is infinite for identical images.
    clip_db : bool
        Limit the dB to ceil(10 log10(2 range^2 W H)), the finest difference that images of this size and range can have, as
        libvmaf does. Without `enable_db` it does nothing.
    backend : {"vulkan", "cpu"}
        The backend that computes the scores. No other backend ever replaces it.
    device : str or int, optional
        Index, part of the name, or UUID of the Vulkan device.

    Returns
    -------
    float, or (N,) array of float64
        1 for identical images, or the dB with `enable_db`; NaN if a mean structure is negative and `negative` is "null".

    Raises
    ------
    FrameError
        Shapes or types differ or are not supported, images are too small or masked, floats have no data_range, or an integer
        sample is larger than data_range.
    DeviceError
        No Vulkan device can be used.

    Notes
    -----
    The window is an 11x11 Gaussian of standard deviation 1.5, over a pyramid of five scales. Integers of b bits are divided by
    2^(b-8); other ranges are scaled to 0..255 [1]_.

    References
    ----------
    .. [1] Z. Wang, E. P. Simoncelli, A. C. Bovik, "Multi-scale structural similarity for image quality assessment",
       Asilomar Conference on Signals, Systems and Computers, 2003.

    Examples
    --------
    >>> import numpy as np, vkssim
    >>> image = np.random.default_rng(0).random((256, 256))
    >>> vkssim.ms_ssim(image, image, data_range=1.0)
    1.0

    """
    options: dict[str, OptionValue] = {"negative": negative, "precision": precision, "enable_db": enable_db, "clip_db": clip_db}
    return _score("float_ms_ssim", options, reference, distorted, data_range, backend, device)


@overload
def ssim(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    scale: int = 1,
    window: str = "gaussian11",
    estimate: bool = False,
    precision: str = "exact",
    enable_db: bool = False,
    clip_db: bool = False,
    return_map: Literal[False] = False,
    backend: str = "vulkan",
    device: str | int | None = None,
) -> float | Doubles: ...
@overload
def ssim(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    scale: int = 1,
    window: str = "gaussian11",
    estimate: bool = False,
    precision: str = "exact",
    enable_db: bool = False,
    clip_db: bool = False,
    return_map: Literal[True],
    backend: str = "vulkan",
    device: str | int | None = None,
) -> tuple[float | Doubles, FloatMaps]: ...
def ssim(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    scale: int = 1,
    window: str = "gaussian11",
    estimate: bool = False,
    precision: str = "exact",
    enable_db: bool = False,
    clip_db: bool = False,
    return_map: bool = False,
    backend: str = "vulkan",
    device: str | int | None = None,
) -> float | Doubles | tuple[float | Doubles, FloatMaps]:
    """Return the structural similarity of images, as libvmaf's float_ssim computes it.

    Parameters
    ----------
    reference, distorted : array_like
        Images of one plane, (H, W), or a stack of them, (N, H, W), both of the same shape and type: uint8, uint16, float32 or
        float64, with any strides. Scores are computed in float32.
    data_range : float, optional
        The largest possible sample, 1e-30 to 1e30. For integers, the default is the largest of their type, 255 or 65535; 1023
        stands for 10 bits. If no sample exceeds a quarter of 65535 by default, there is a DepthWarning. Floats have no default.
    scale : int
        Downscale by this factor first, 1 to 10; 0 is libvmaf's automatic choice, min(H, W) / 256 rounded. The result must have
        room for at least one window.
    window : {"gaussian11", "uniform8"}
        The 11x11 Gaussian window of libvmaf, or 8x8 equal weights with sample variances, which divide by 63 [2]_.
    estimate : bool
        With "uniform8", leave out windows across the edges of fragments of 32 columns: in each row of a fragment, the 24
        windows that begin at its columns 0 to 23 count. In a narrower last fragment, the windows that lie inside it count [2]_.
    precision : {"exact", "fast"}
        "exact" rounds as libvmaf does, to be within one of its sixth decimal. "fast" adds in float32, which takes less time,
        and can be off by 0.03 for images that are bright and nearly flat. "uniform8" has no "fast".
    enable_db, clip_db : bool
        Return the score in dB, and limit the dB, as for `ms_ssim`; a map is never in dB.
    return_map : bool
        Also return the SSIM of each window. It excludes `estimate`, which leaves windows out.
    backend : {"vulkan", "cpu"}
        The backend that computes the scores. No other backend ever replaces it.
    device : str or int, optional
        Index, part of the name, or UUID of the Vulkan device.

    Returns
    -------
    score : float, or (N,) array of float64
        1 for identical images, or the dB with `enable_db`; it may be negative.
    map : (H', W') or (N, H', W') array of float32, where `return_map` is true
        The SSIM of every window, whose mean is the score except for rounding (1e-7). For "gaussian11", H' and W' are 10 less
        than the sides after the downscale: sample (y, x) is the window centred on (y + 5, x + 5). For "uniform8" they are 7
        less, and sample (y, x) is the window of samples (y, x) to (y + 7, x + 7).
        Rounding errors, which average out in a score, remain in single windows: with "fast", those that are bright and flat can
        be off by 0.03. All other windows are off by 1e-6 at most.

    Raises
    ------
    FrameError
        Shapes or types differ or are not supported, images are too small or masked, floats have no data_range, or an integer
        sample is larger than data_range.
    OptionError
        `estimate` is used without "uniform8" or with `return_map`, or precision "fast" with "uniform8".
    DeviceError
        No Vulkan device can be used.

    References
    ----------
    .. [1] Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality assessment: from error visibility to
       structural similarity", IEEE Transactions on Image Processing 13 (4), 2004.
    .. [2] P. Mazurek, K. Okarma, "An efficient estimation of the Structural Similarity index using the GPGPU programming
       techniques", 2010.

    Examples
    --------
    >>> import numpy as np, vkssim
    >>> image = np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)
    >>> vkssim.ssim(image, image)
    1.0

    """
    options: dict[str, OptionValue] = {"scale": scale, "window": window, "estimate": estimate, "precision": precision}
    options |= {"enable_db": enable_db, "clip_db": clip_db}
    if not return_map:
        return _score("float_ssim", options, reference, distorted, data_range, backend, device)
    references, distorteds = _stacks(reference, distorted)
    data_range = default_range(references, distorteds) if data_range is None else data_range
    scores, maps = _mapped(options, references, distorteds, data_range, backend, device)
    return (float(scores[0]), maps[0]) if np.ndim(reference) == 2 else (scores, maps)


def _score(
    feature: str,
    options: Mapping[str, OptionValue],
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    data_range: float | None,
    backend: str,
    device: str | int | None,
) -> float | Doubles:
    text = feature + "=" + ":".join(f"{name}={str(value).lower()}" for name, value in options.items())
    stacks = _stacks(reference, distorted)
    data_range = default_range(*stacks) if data_range is None else data_range
    scores = _scores(text, *stacks, data_range, backend, device)
    return float(scores[0]) if np.ndim(reference) == 2 else scores


def _stacks(reference: npt.ArrayLike, distorted: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return both as (N, H, W). Raises FrameError if they differ in shape or type, are masked, or have no images."""
    check_not_masked("reference", reference)
    check_not_masked("distorted", distorted)
    first, second = np.asarray(reference), np.asarray(distorted)
    if first.shape != second.shape or first.dtype != second.dtype:
        raise FrameError(
            f"reference is {first.shape} {first.dtype}, distorted {second.shape} {second.dtype}; they must be alike"
        )
    if has_colours_last(first.shape):
        form, axes = ("(H, W, colours)", "image[..., 0]") if first.ndim == 3 else ("(N, H, W, colours)", "images[..., 0]")
        planes = " `np.moveaxis(image, -1, 0)` makes a stack of all planes, and each gets a score" if first.ndim == 3 else ""
        raise FrameError(
            f"images have shape {first.shape}, which is {form}; one plane at a time is scored, such as the luma or"
            f" `{axes}`, in the shape (H, W) or (N, H, W).{planes}"
        )
    if first.ndim not in (2, 3):
        raise FrameError(f"images have shape {first.shape}; the shape must be (H, W) or (N, H, W), one plane at a time")
    stack = (first[None], second[None]) if first.ndim == 2 else (first, second)
    if not len(stack[0]):
        raise FrameError(f"an array of shape {first.shape} has no image")
    return stack


def _scores(
    feature: str,
    references: npt.NDArray[Any],
    distorteds: npt.NDArray[Any],
    data_range: float | None,
    backend: str,
    device: str | int | None,
) -> Doubles:
    height, width = references.shape[1:]
    batch = _batch(references)

    def make() -> Scorer:
        return Scorer(
            width,
            height,
            dtype=references.dtype,
            data_range=data_range,
            features=[feature],
            backend=backend,
            device=device,
            batch=batch,
        )

    def score(scorer: Scorer) -> Doubles:
        scorer._count_from_zero()
        scored = scorer.score(zip(references, distorteds, strict=True))
        return np.array([scores.metrics[scorer.names[0]] for scores in scored])

    return _kept.run((width, height, references.dtype, data_range, feature, backend, device, batch), make, score)


def _mapped(
    options: Mapping[str, OptionValue],
    references: npt.NDArray[Any],
    distorteds: npt.NDArray[Any],
    data_range: float | None,
    backend: str,
    device: str | int | None,
) -> tuple[Doubles, FloatMaps]:
    height, width = references.shape[1:]
    batch = _batch(references)

    def make() -> SsimMapper:
        frame = FrameFormat.of_array(width, height, references.dtype, data_range)
        return SsimMapper(frame, options, backend=backend, device=device, batch=batch)

    key = width, height, references.dtype, data_range, *options.values(), backend, device, batch
    return _kept_mapper.run(key, make, lambda mapper: mapper.run(references, distorteds))


def _batch(images: npt.NDArray[Any]) -> int | None:
    return 1 if len(images) == 1 else None


_kept: DeviceCache[Scorer] = DeviceCache(most=1)
_kept_mapper: DeviceCache[SsimMapper] = DeviceCache(most=1)
