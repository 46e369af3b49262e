"""Compute SSIM, MS-SSIM, PSNR and VMAF of NumPy arrays.

The device stays open between calls, with its compiled kernels. `Scorer` gives control over when it has memory for frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, Self, Unpack, overload

import numpy as np
import numpy.typing as npt

from .backends.open import check_backend
from .backends.sessions import Session, use_engine
from .errors import FrameError, OptionError
from .maps.mapper import FloatMaps, SsimMapper
from .metrics import FEATURES, reads_chroma
from .metrics.float_ms_ssim import FloatMsSsimOptions
from .metrics.float_ssim import FloatSsimOptions
from .metrics.options import OptionValue, documents, option_text, parse_options
from .metrics.vmaf_model import DEFAULT_MODEL
from .scorer import Scorer
from .shaders.constants import GAUSSIAN, UNIFORM
from .types import Doubles, FrameFormat, alike_arrays, default_range, has_colours_last
from .utils.float_range import SampleRows, warn_of_range

_SSIM_DEFAULTS: dict[str, OptionValue] = {"scale": 1}
"""The options of float_ssim that have another default for arrays: nothing is downscaled unless this is requested."""


@documents(FloatMsSsimOptions)
def ms_ssim(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    channel_axis: int | None = None,
    backend: str = "vulkan",
    device: str | int | None = None,
    **options: Unpack[FloatMsSsimOptions],
) -> float | Doubles:
    """Return the multi-scale structural similarity of images, as libvmaf's float_ms_ssim computes it.

    Parameters
    ----------
    reference, distorted : array_like
        Images of one plane, (H, W), or a stack of them, (N, H, W), both of the same shape and type: uint8, uint16, float32 or
        float64, with any strides. H and W must be at least 176. Scores are computed in float32.
    data_range : float, optional
        The largest possible sample, 1e-30 to 1e30. For integers, the default is the largest of their type, 255 or 65535; 1023
        stands for 10 bits. If no sample exceeds a quarter of 65535 by default, there is a DepthWarning. Floats have no default,
        and if they lie far outside of the range, or take a small part of it, there is a DataRangeWarning.
    channel_axis : int, optional
        The axis of the channels, such as -1 for images (H, W, 3) or (N, H, W, 3). The score of an image is then the mean over
        its channels. By default, images have one plane.
    backend : {"vulkan", "cpu"}
        The backend that computes the scores. No other backend ever replaces it.
    device : str or int, optional
        Index, part of the name, or UUID of the Vulkan device.
    **options
        Options of float_ms_ssim that add no scores, as `vkssim features` and docs/metrics.md list them.

    Returns
    -------
    float, or (N,) array of float64
        1 for identical images, or the dB with `enable_db`; NaN if a mean structure is negative and `negative` is "null".

    Raises
    ------
    FrameError
        Shapes or types differ or are not supported, images are too small or masked, floats have no data_range, an integer
        sample is larger than data_range, or there is no such axis.
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
    images = _Images.of(reference, distorted, channel_axis)
    return images.scores(_computed("float_ms_ssim", images, data_range, backend, device, options)[0])


@overload
def ssim(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    channel_axis: int | None = None,
    mask: npt.ArrayLike | None = None,
    return_map: Literal[False] = False,
    backend: str = "vulkan",
    device: str | int | None = None,
    **options: Unpack[FloatSsimOptions],
) -> float | Doubles: ...
@overload
def ssim(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    channel_axis: int | None = None,
    mask: npt.ArrayLike | None = None,
    return_map: Literal[True],
    backend: str = "vulkan",
    device: str | int | None = None,
    **options: Unpack[FloatSsimOptions],
) -> tuple[float | Doubles, FloatMaps]: ...
@documents(FloatSsimOptions, **_SSIM_DEFAULTS)
def ssim(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    channel_axis: int | None = None,
    mask: npt.ArrayLike | None = None,
    return_map: bool = False,
    backend: str = "vulkan",
    device: str | int | None = None,
    **options: Unpack[FloatSsimOptions],
) -> float | Doubles | tuple[float | Doubles, FloatMaps]:
    """Return the structural similarity of images, as libvmaf's float_ssim computes it.

    Parameters
    ----------
    reference, distorted : array_like
        Images as for `ms_ssim`, but of any size that has a window after the downscale.
    data_range : float, optional
        The largest possible sample, with the default and the warnings of `ms_ssim`. Floats have no default.
    channel_axis : int, optional
        The axis of the channels, as for `ms_ssim`. A map has the channels on the same axis.
    mask : array_like, optional
        The weight of the window around each sample, bool or numbers of 0 or more: (H, W) for all images, or (N, H, W). The
        score is the weighted mean of the map. The window around (y, x) is that of the map's sample (y - 5, x - 5), for
        "uniform8" (y - 4, x - 4); samples at the border, in the middle of no window, do not count. It needs `scale` 1.
    return_map : bool
        Also return the SSIM of each window. It excludes `estimate`, which leaves windows out.
    backend, device : optional
        As for `ms_ssim`.
    **options
        Options of float_ssim that add no scores, as `vkssim features` and docs/metrics.md list them. `scale` is 1 by default.

    Returns
    -------
    score : float, or (N,) array of float64
        1 for identical images, or the dB with `enable_db`; it may be negative.
    map : (H', W') or (N, H', W') array of float32, if `return_map` is true
        The SSIM of every window, whose mean is the score except for rounding (1e-7). For "gaussian11", H' and W' are 10 less
        than the sides after the downscale: sample (y, x) is the window centred on (y + 5, x + 5). For "uniform8" they are 7
        less, and sample (y, x) is the window of samples (y, x) to (y + 7, x + 7).
        Rounding errors, which average out in a score, remain in single windows: with "fast", those that are bright and flat can
        be off by 0.03. All other windows are off by 1e-6 at most.

    Raises
    ------
    FrameError, DeviceError
        As for `ms_ssim`; FrameError also for a mask of another shape, with negative weights, or without weight for an image.
    OptionError
        `estimate` is used without "uniform8" or with `return_map` or `mask`, `mask` with another `scale` than 1, or precision
        "fast" with "uniform8".

    Notes
    -----
    The window "uniform8" has 8x8 equal weights and sample variances, which divide by 63 [2]_. `estimate` leaves out its windows
    across the edges of fragments of 32 columns: in each row of a fragment, the 24 windows that begin at its columns 0 to 23
    count. In a narrower last fragment, the windows that lie inside it count. A map is never in dB.

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
    settings = {**_SSIM_DEFAULTS, **options}
    images = _Images.of(reference, distorted, channel_axis)
    weights = None if mask is None else _weights(mask, images, settings)
    with_map = return_map or mask is not None
    scores, maps = _computed("float_ssim", images, data_range, backend, device, settings, with_map=with_map, weights=weights)
    return (images.scores(scores), images.maps(maps)) if return_map and maps is not None else images.scores(scores)


def psnr(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    channel_axis: int | None = None,
    backend: str = "vulkan",
    device: str | int | None = None,
) -> float | Doubles:
    """Return the peak signal-to-noise ratio of images, as libvmaf's float_psnr computes it.

    Parameters
    ----------
    reference, distorted : array_like
        Images as for `ms_ssim`, but of any size.
    data_range : float, optional
        The largest possible sample, with the default and the warnings of `ms_ssim`. Floats have no default.
    channel_axis : int, optional
        The axis of the channels, as for `ms_ssim`; the noise of an image is then the mean over all of its channels.
    backend, device : optional
        As for `ms_ssim`.

    Returns
    -------
    float, or (N,) array of float64
        10 log10(data_range^2 / mean squared difference), in dB. Its limit is 6 b + 12 for integers of b bits, 60 for 8 bits,
        and 148 for floats; identical images have this value.

    Raises
    ------
    FrameError, DeviceError
        As for `ms_ssim`.

    Examples
    --------
    >>> import numpy as np, vkssim
    >>> image = np.full((64, 64), 100, np.uint8)
    >>> print(f"{vkssim.psnr(image, image + np.uint8(10)):.4f}")
    28.1308

    """
    images = _Images.of(reference, distorted, channel_axis).as_planes()
    return images.scores(_computed("float_psnr", images, data_range, backend, device, {})[0])


def vmaf(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
    model: str = DEFAULT_MODEL,
    transform: str = "none",
    backend: str = "vulkan",
    device: str | int | None = None,
) -> float | Doubles:
    """Return the VMAF of the frames of a clip, or of one image, as libvmaf computes it.

    Parameters
    ----------
    reference, distorted : array_like
        The luma of consecutive frames, (N, H, W), or one image, (H, W), both of the same shape and type, uint8 or uint16, with
        any strides. H and W must be at least 33.
    data_range : float, optional
        The largest possible sample, as for `ms_ssim`: 255 for uint8, and 1023, 4095 or 65535 for the depths of uint16.
    model : str
        A version, such as ``"vmaf_v0.6.1"``, ``"vmaf_v0.6.1neg"`` or ``"vmaf_4k_v0.6.1"``, whose file the package
        ffmpeg-quality-metrics has, or the path of a JSON file.
    transform : {"none", "phone"}
        Whether the model's curve for phones is applied, libvmaf's `enable_transform`.
    backend, device : optional
        As for `ms_ssim`.

    Returns
    -------
    float, or (N,) array of float64
        The score of each frame, 0 to 100. It depends on the frames before and after it, by their motion; the first frame, and
        an image, have none.

    Raises
    ------
    FrameError, DeviceError
        As for `ms_ssim`.
    OptionError
        There is no such model, or it needs features that do not exist here.

    Notes
    -----
    VMAF is a support vector machine over the metrics vif, adm and motion [1]_.

    References
    ----------
    .. [1] Z. Li, A. Aaron, I. Katsavounidis, A. Moorthy, M. Manohara, "Toward a practical perceptual video quality metric",
       Netflix Technology Blog, 2016.

    Examples
    --------
    >>> import numpy as np, vkssim
    >>> frames = np.random.default_rng(0).integers(0, 256, (3, 64, 64), np.uint8)
    >>> vkssim.vmaf(frames, frames).shape
    (3,)

    """
    settings = {"model": model, "transform": transform}
    images = _Images.of(reference, distorted)
    return images.scores(_computed("vmaf", images, data_range, backend, device, settings)[0])


@dataclass(frozen=True, eq=False)
class _Images:
    """The images of a call as stacks of planes, and the form of its results."""

    reference: npt.NDArray[Any]
    """(C N, H, W): the planes of all images, channel by channel."""
    distorted: npt.NDArray[Any]
    channels: int
    axis: int | None
    """The axis of the channels in the arrays of the call."""
    single: bool
    """Whether the arrays are one image and not a stack."""

    @classmethod
    def of(cls, reference: npt.ArrayLike, distorted: npt.ArrayLike, axis: int | None = None) -> Self:
        """Return the images of two arrays. Raises FrameError if their shape is none of images, or has no image."""
        first, second = alike_arrays(reference, distorted)
        shape = first.shape
        if axis is None:
            first, second = first[None], second[None]
        elif isinstance(axis, Integral) and -len(shape) <= axis < len(shape):
            first, second = np.moveaxis(first, axis, 0), np.moveaxis(second, axis, 0)
        else:
            raise FrameError(f"channel_axis is {axis}; images of shape {shape} have the axes 0 to {len(shape) - 1}")
        _check_shape(shape, first.shape[1:], axis)
        planes = -1, *first.shape[-2:]
        return cls(first.reshape(planes), second.reshape(planes), len(first), axis, first.ndim == 3)

    def as_planes(self) -> _Images:
        """Return each image as one plane, its channels below each other, for a score that no neighbours of samples change."""
        if self.channels == 1:
            return self
        count = len(self.reference) // self.channels
        reference, distorted = (
            array.reshape(self.channels, count, *array.shape[1:]).swapaxes(0, 1).reshape(count, -1, array.shape[2])
            for array in (self.reference, self.distorted)
        )
        return replace(self, reference=reference, distorted=distorted, channels=1)

    def scores(self, scores: Doubles) -> float | Doubles:
        """Return the scores of planes as those of images, each the mean over the channels."""
        means = scores.reshape(self.channels, -1).mean(axis=0)
        return float(means[0]) if self.single else means

    def maps(self, maps: FloatMaps) -> FloatMaps:
        """Return the maps of planes in the form of the arrays of the call."""
        shaped = maps.reshape(self.channels, -1, *maps.shape[1:])
        shaped = shaped[:, 0] if self.single else shaped
        return shaped[0] if self.axis is None else np.moveaxis(shaped, 0, self.axis)


def _check_shape(shape: tuple[int, ...], image: tuple[int, ...], axis: int | None) -> None:
    """Raise FrameError if arrays of a shape are no images; `image` is the shape without the channels."""
    if axis is None and has_colours_last(shape):
        form = "(H, W, colours)" if len(shape) == 3 else "(N, H, W, colours)"
        plane = "image[..., 0]" if len(shape) == 3 else "images[..., 0]"
        raise FrameError(
            f"images have shape {shape}, which is {form}; channel_axis=-1 gives the mean over the colours, and `{plane}` one of"
            " them"
        )
    if len(image) not in (2, 3):
        axes = "(H, W) or (N, H, W)" if axis is None else "(H, W) or (N, H, W) beside the axis of the channels"
        raise FrameError(f"images have shape {shape}; the shape must be {axes}")
    if 0 in shape:
        raise FrameError(f"an array of shape {shape} has no image")


def _weights(mask: npt.ArrayLike, images: _Images, options: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """Return the weight of each window of each plane, (C N, H', W'). Raises FrameError, or OptionError for the options."""
    if options["scale"] != 1:
        raise OptionError(f"mask has the weight of each sample, and scale is {options['scale']}; it needs scale=1")
    side = UNIFORM if options.get("window") == "uniform8" else len(GAUSSIAN)
    height, width = images.reference.shape[1:]
    count = len(images.reference) // images.channels
    weights = np.asarray(mask, np.float64)
    if weights.shape not in ((height, width), (count, height, width)) or (images.single and weights.ndim == 3):
        form = f"({height}, {width})" + ("" if images.single else f" or ({count}, {height}, {width})")
        raise FrameError(f"mask has shape {weights.shape}; it must be {form}")
    rows, columns = (slice(side // 2, side // 2 + length - side + 1) for length in (height, width))
    windows = np.broadcast_to(weights, (count, height, width))[:, rows, columns]
    if not (np.isfinite(windows).all() and (windows >= 0).all() and windows.any(axis=(1, 2)).all()):
        raise FrameError("mask must have weights of 0 or more, and for each image a window that counts")
    return np.broadcast_to(windows, (images.channels, *windows.shape)).reshape(-1, *windows.shape[1:])


def _computed(
    feature: str,
    images: _Images,
    data_range: float | None,
    backend: str,
    device: str | int | None,
    options: Mapping[str, Any],
    *,
    with_map: bool = False,
    weights: npt.NDArray[np.float64] | None = None,
) -> tuple[Doubles, FloatMaps | None]:
    """Return the score of each plane, and the maps if they are requested."""
    references, distorteds = images.reference, images.distorted
    count, height, width = references.shape
    dtype, batch = references.dtype, 1 if count == 1 else None
    if data_range is None:
        data_range = default_range(references, distorteds)
    frame = FrameFormat.of_array(width, height, dtype, data_range)
    if dtype.kind == "f":
        warn_of_range(frame.peak, SampleRows.of(references), SampleRows.of(distorteds))
    known = FEATURES[feature].options
    settled = parse_options(feature, known, options)
    for name, option in known.items():
        if option.adds and settled[name]:
            raise OptionError(
                f"{name} adds scores, and this function returns one; vkssim.Scorer returns all scores of a metric"
            )
    text = f"{feature}={':'.join(f'{name}={option_text(value)}' for name, value in settled.items())}"
    if reads_chroma([text]):
        raise OptionError(
            f"{text} reads Cb and Cr; vkssim.Scorer takes frames as (Y, Cb, Cr), and this function the luma alone"
        )

    def make(session: Session | None) -> SsimMapper | Scorer:
        selected: dict[str, Any] = {"backend": backend, "device": session, "batch": batch}
        if with_map:
            return SsimMapper(frame, settled, **selected)
        return Scorer(width, height, dtype=dtype, data_range=frame.peak, features=[text], **selected)

    def compute(engine: SsimMapper | Scorer) -> tuple[Doubles, FloatMaps | None]:
        if isinstance(engine, Scorer):
            engine._begin_stack()
            scores = engine.score(zip(references, distorteds, strict=True))
            return np.array([scored.metrics[feature] for scored in scores]), None
        return engine.run(references, distorteds, weights)

    check_backend(backend, device)
    if backend == "vulkan":
        return use_engine(device, (with_map, frame, dtype, text, batch), make, compute)
    with make(None) as engine:
        return compute(engine)
