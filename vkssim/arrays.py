"""SSIM and MS-SSIM of NumPy arrays.

The device stays open from one call to the next of the same size and kind; `Scorer` is for who wants to decide that.
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
from .types import Doubles, FrameFormat, check_not_masked, has_colours_last


def ms_ssim(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    negative: str = "null",
    exact: bool | str = "auto",
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
        float64, of any strides. H and W are 176 at least. Scores are computed in float32.
    data_range : float, optional
        The largest sample there can be. Integers have the largest of their type by default, 255 or 65535; 1023 says 10 bits.
        Floats have no default.
    negative : {"null", "clamp"}
        What a negative mean structure gives: NaN, or 0 in its place as the PyTorch libraries do.
    exact : bool or "auto"
        Round every sum as libvmaf does, to its sixth decimal, at some cost of time; "auto" does so up to 2^17 pixels.
    enable_db : bool
        Give the score in dB, -10 log10(1 - score): infinite for identical images.
    clip_db : bool
        Limit the dB to what the images' size and range can tell apart, ceil(10 log10(2 range^2 W H)), as libvmaf does. Without
        `enable_db` it does nothing.
    backend : {"vulkan", "cpu"}
        Where scores are computed. It is never another than the one asked for.
    device : str or int, optional
        Index, part of the name, or UUID of the Vulkan device.

    Returns
    -------
    float, or (N,) array of float64
        1 for identical images, or what `enable_db` makes of it; NaN where a mean structure is negative and `negative` is
        "null".

    Raises
    ------
    FrameError
        Shapes or types differ or are not possible, images are too small or masked, floats come without data_range, or an
        integer sample is larger than it.
    DeviceError
        No Vulkan device can be used.

    Notes
    -----
    The 11x11 Gaussian window of standard deviation 1.5 over a pyramid of five scales; integers of b bits are divided by
    2^(b-8), other ranges scaled to 0..255 [1]_.

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
    options = {"negative": negative, "exact": exact, "enable_db": enable_db, "clip_db": clip_db}
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
    exact: bool | str = "auto",
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
    exact: bool | str = "auto",
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
    exact: bool | str = "auto",
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
        float64, of any strides. Scores are computed in float32.
    data_range : float, optional
        The largest sample there can be. Integers have the largest of their type by default, 255 or 65535; 1023 says 10 bits.
        Floats have no default.
    scale : int
        Downscale by this factor first, 1 to 10; 0 is libvmaf's automatic choice, min(H, W) / 256 rounded. At least a window
        must remain.
    window : {"gaussian11", "uniform8"}
        The 11x11 Gaussian window of libvmaf, or 8x8 equal weights with sample variances, divided by 63 [2]_.
    estimate : bool
        With "uniform8" leave out the windows across the edges of fragments of 32 columns: of each row of a fragment the 24
        windows that begin at its columns 0 to 23 count, of a narrower last one those that lie inside [2]_.
    exact : bool or "auto"
        Round every sum as libvmaf does, to its sixth decimal, at some cost of time; "auto" does so up to 2^17 pixels. For
        "gaussian11" only.
    enable_db, clip_db : bool
        Give the score in dB, and limit the dB, as for `ms_ssim`; a map is never in dB.
    return_map : bool
        Also give SSIM window by window. Not with `estimate`, which leaves windows out.
    backend : {"vulkan", "cpu"}
        Where scores are computed. It is never another than the one asked for.
    device : str or int, optional
        Index, part of the name, or UUID of the Vulkan device.

    Returns
    -------
    score : float, or (N,) array of float64
        1 for identical images, or what `enable_db` makes of it; may be negative.
    map : (H', W') or (N, H', W') array of float32, where `return_map` is true
        SSIM of every window, whose mean is the score but for rounding (1e-7). For "gaussian11" H' and W' are 10 less than the
        sides after the downscale: sample (y, x) is the window centred on (y + 5, x + 5). For "uniform8" they are 7 less, and
        sample (y, x) is the window of samples (y, x) to (y + 7, x + 7).
        Rounding of "gaussian11" that averages away in a score stays in single windows: without `exact` bright and flat ones
        can be off by 0.01, with it by 1e-5. Those of "uniform8" are off by 1e-6 at most.

    Raises
    ------
    FrameError
        Shapes or types differ or are not possible, images are too small or masked, floats come without data_range, or an
        integer sample is larger than it.
    OptionError
        `estimate` without "uniform8" or with `return_map`, or `exact` with "uniform8".
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
    options: dict[str, OptionValue] = {"scale": scale, "window": window, "estimate": estimate, "exact": exact}
    options |= {"enable_db": enable_db, "clip_db": clip_db}
    if not return_map:
        return _score("float_ssim", options, reference, distorted, data_range, backend, device)
    references, distorteds = _stacks(reference, distorted)
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
    scores = _scores(text, *_stacks(reference, distorted), data_range, backend, device)
    return float(scores[0]) if np.ndim(reference) == 2 else scores


def _stacks(reference: npt.ArrayLike, distorted: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return both as (N, H, W). Raises FrameError where they are not alike, masked, or no images."""
    check_not_masked("reference", reference)
    check_not_masked("distorted", distorted)
    first, second = np.asarray(reference), np.asarray(distorted)
    if first.shape != second.shape or first.dtype != second.dtype:
        raise FrameError(
            f"reference is {first.shape} {first.dtype}, distorted {second.shape} {second.dtype}; they must be alike"
        )
    if has_colours_last(first.shape):
        form, axes = ("(H, W, colours)", "image[..., 0]") if first.ndim == 3 else ("(N, H, W, colours)", "images[..., 0]")
        planes = " `np.moveaxis(image, -1, 0)` is a stack of all, of which each gets a score" if first.ndim == 3 else ""
        raise FrameError(
            f"images have shape {first.shape}, which is {form}; one plane at a time is scored, such as the luma or"
            f" `{axes}`, in the shape (H, W) or (N, H, W).{planes}"
        )
    if first.ndim not in (2, 3):
        raise FrameError(f"images have shape {first.shape}; (H, W) or (N, H, W) is possible, one plane at a time")
    stack = (first[None], second[None]) if first.ndim == 2 else (first, second)
    if not len(stack[0]):
        raise FrameError(f"no image in an array of shape {first.shape}")
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
