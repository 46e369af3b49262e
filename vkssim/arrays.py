"""Compute SSIM, MS-SSIM and VMAF of NumPy arrays.

The device stays open between calls, with its compiled kernels. `Scorer` gives control over when it has memory for frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack, overload

import numpy as np
import numpy.typing as npt

from .backends.open import check_backend
from .backends.sessions import Session, use_engine
from .errors import FrameError, OptionError
from .maps.mapper import FloatMaps, SsimMapper
from .metrics import FEATURES
from .metrics.float_ms_ssim import FloatMsSsimOptions
from .metrics.float_ssim import FloatSsimOptions
from .metrics.options import OptionValue, documents, option_text, parse_options
from .metrics.vmaf_model import DEFAULT_MODEL
from .scorer import Scorer
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
    return _computed("float_ms_ssim", reference, distorted, data_range, backend, device, options)[0]


@overload
def ssim(
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    *,
    data_range: float | None = None,
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
        As for `ms_ssim`.
    OptionError
        `estimate` is used without "uniform8" or with `return_map`, or precision "fast" with "uniform8".

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
    scores, maps = _computed("float_ssim", reference, distorted, data_range, backend, device, settings, with_map=return_map)
    return scores if maps is None else (scores, maps)


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
    return _computed("vmaf", reference, distorted, data_range, backend, device, settings)[0]


def _computed(
    feature: str,
    reference: npt.ArrayLike,
    distorted: npt.ArrayLike,
    data_range: float | None,
    backend: str,
    device: str | int | None,
    options: Mapping[str, Any],
    *,
    with_map: bool = False,
) -> tuple[float | Doubles, FloatMaps | None]:
    """Return scores, and maps if they are requested, in the form of the call: for two images (H, W) one of each."""
    first, second = alike_arrays(reference, distorted)
    references, distorteds = _stacks(first, second)
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
        return engine.run(references, distorteds)

    check_backend(backend, device)
    if backend == "vulkan":
        scores, maps = use_engine(device, (with_map, frame, dtype, text, batch), make, compute)
    else:
        with make(None) as engine:
            scores, maps = compute(engine)
    if first.ndim == 3:
        return scores, maps
    return float(scores[0]), None if maps is None else maps[0]


def _stacks(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return two arrays of one shape as (N, H, W). Raises FrameError if it is no shape of images, or has none."""
    if has_colours_last(first.shape):
        form, axes = ("(H, W, colours)", "image[..., 0]") if first.ndim == 3 else ("(N, H, W, colours)", "images[..., 0]")
        planes = " `np.moveaxis(image, -1, 0)` makes a stack of all planes, and each gets a score" if first.ndim == 3 else ""
        raise FrameError(
            f"images have shape {first.shape}, which is {form}; one plane at a time is scored, such as the luma or"
            f" `{axes}`, in the shape (H, W) or (N, H, W).{planes}"
        )
    if first.ndim not in (2, 3):
        raise FrameError(f"images have shape {first.shape}; the shape must be (H, W) or (N, H, W), one plane at a time")
    if first.ndim == 2:
        first, second = first[None], second[None]
    if not len(first):
        raise FrameError(f"an array of shape {first.shape} has no image")
    return first, second
