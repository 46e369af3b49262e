"""The metrics, one file each. A metric builds its share of a frame's plan, and turns sums into scores in double precision.

A metric uses the kernels of `shaders`, the plan of `host`, and its NumPy twin beside it (`ssim`, `window`, `uniform`,
`samples`). It opens no device and no file. Read `base` first, then `float_ssim`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ..errors import OptionError
from ..types import FrameFormat
from ..utils.wording import did_you_mean
from .base import FrameScorer, Metric
from .cambi import SMALLEST_SIDE
from .cambi_metric import LARGEST_ENCODED_SIDE, CambiScorer
from .float_ms_ssim import FloatMsSsimScorer
from .float_psnr import FloatPsnrScorer
from .float_ssim import FloatSsimScorer
from .integer_adm import AdmScorer
from .integer_motion import MotionScorer
from .integer_vif import VifScorer
from .options import OptionValue, option_text, split_feature
from .speed_chroma import SpeedChromaMetric
from .vmaf import OF_ENCODING, VmafMetric
from .vmaf_model import AUTOMATIC_HFR, AUTOMATIC_MODELS, MIN_HIGH_FPS

FEATURES: Mapping[str, type[Metric]] = {
    metric.name: metric
    for metric in (
        *(FloatMsSsimScorer, FloatSsimScorer, FloatPsnrScorer),
        *(VifScorer, AdmScorer, MotionScorer, CambiScorer, SpeedChromaMetric, VmafMetric),
    )
}
"""All metrics by name."""


def make_metric(feature: str, frame: FrameFormat) -> Metric:
    """Return a metric for frames of one format.

    `feature` is a name, or a name with options as `name=key=value:key=value`. Raises OptionError for an unknown name or option,
    and FrameError if the frames are too small.
    """
    name, options = split_feature(feature)
    if name not in FEATURES:
        available = ", ".join(sorted(FEATURES))
        raise OptionError(f"unknown feature {name!r}{did_you_mean(name, FEATURES)}. Available features: {available}")
    return FEATURES[name](frame, options)


def make_scorer(feature: str, frame: FrameFormat) -> FrameScorer:
    """Return a metric that is computed from the pixels of one plane alone. Raises as `make_metric` does."""
    metric = make_metric(feature, frame)
    (scorer,) = *metric.scorers, *metric.chroma_scorers(frame)
    return scorer


def files_of(features: Sequence[str]) -> list[str]:
    """Return the paths of the files that the scores of features depend on, such as a model of VMAF."""
    split = map(split_feature, features)
    return [file for name, options in split if name in FEATURES for file in FEATURES[name].files(options)]


def reads_chroma(features: Sequence[str]) -> bool:
    """Return whether the scores of features depend on Cb and Cr, besides the luma. Raises OptionError for a missing model."""
    split = map(split_feature, features)
    return any(FEATURES[name].reads_chroma(options) for name, options in split if name in FEATURES)


def for_clips(
    features: Sequence[str],
    fps: Fraction | float | None = None,
    encoded_size: tuple[int, int] | None = None,
    encoded_bits: int | None = None,
) -> list[str]:
    """Return features with the facts about the clips that VMAF's model v1 takes, unless they state them.

    It is v1_hfr for a high frame rate. The size and the depth are those in which the distorted clip was encoded, if its frames
    were made larger or deeper afterwards.
    """
    facts: dict[str, OptionValue] = {}
    if fps is not None and fps >= MIN_HIGH_FPS:
        facts["model"] = AUTOMATIC_HFR
    if encoded_size is not None and SMALLEST_SIDE <= max(encoded_size) <= LARGEST_ENCODED_SIDE:  # else cambi refuses it
        facts["enc_width"], facts["enc_height"] = encoded_size
    if encoded_bits is not None:
        facts["enc_bitdepth"] = encoded_bits
    return [_with_facts(feature, facts) for feature in features]


def _with_facts(feature: str, facts: Mapping[str, OptionValue]) -> str:
    name, given = split_feature(feature)
    if name not in FEATURES or given.get("model") not in AUTOMATIC_MODELS:
        return feature
    stated = {option for option in given if option in OF_ENCODING and given[option] != "0"}
    if "enc_width" in stated or "enc_height" in stated:
        stated |= {"enc_width", "enc_height"}
    return with_options(feature, **{option: value for option, value in facts.items() if option not in stated})


def with_options(feature: str, **options: OptionValue) -> str:
    """Return a feature, such as ``"float_ssim=scale=1"``, with those of the given options that its metric has."""
    name, given = split_feature(feature)
    added = {option: value for option, value in options.items() if option in FEATURES[name].options}
    words = [f"{option}={option_text(value)}" for option, value in {**given, **added}.items()]
    return f"{name}={':'.join(words)}" if words else name
