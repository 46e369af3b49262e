"""vmaf: Netflix's VMAF, which a model predicts from other metrics, like libvmaf's models of versions 0 and 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, TypedDict

import numpy as np

from ..errors import OptionError
from ..types import Doubles, FrameFormat
from ..utils.values import Value, values_of
from .base import FrameScorer, Metric
from .cambi_metric import CambiScorer, EncodedBits, EncodedHeight, EncodedWidth
from .integer_adm import AdmScorer
from .integer_motion import MotionScorer
from .integer_vif import VifScorer
from .options import OptionValue, split_feature
from .speed_chroma import SpeedChromaMetric
from .vmaf_model import DEFAULT_MODEL, FeatureOptions, VmafModel, is_file, model_of_size, predict, read_model

_EXTRACTORS: Mapping[str, type[Metric]] = {
    metric.name: metric for metric in (VifScorer, AdmScorer, MotionScorer, CambiScorer, SpeedChromaMetric)
}

_ADVISED_BITS = 10  # for models of version 1

OF_ENCODING = ("enc_width", "enc_height", "enc_bitdepth")  # options of cambi that tell how the clip was encoded

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")


class VmafOptions(TypedDict, total=False):
    """The options of vmaf."""

    model: Annotated[
        str,
        Value(
            default=DEFAULT_MODEL,
            help="the model: a version, such as vmaf_v0.6.1neg or vmaf_4k_v0.6.1, v1 or v1_hfr for the one of version 1 that"
            " suits the size (files take v1_hfr from 45 fps on, and the size and depth of the encoding), or the path of a JSON"
            " file, without a colon",
        ),
    ]
    transform: Annotated[
        str,
        Value(
            default="none",
            choices=["none", "phone"],
            help="transform the score by the model's own curve, for a phone: libvmaf's enable_transform",
        ),
    ]
    name: Annotated[str, Value(default="vmaf", help="the name of the score, to tell several models apart")]
    enc_width: EncodedWidth
    enc_height: EncodedHeight
    enc_bitdepth: EncodedBits


class VmafMetric(Metric):
    """VMAF for frames of one format, 0 to 100.

    The model is a support vector machine over the scores of vif, adm and motion, or of cambi, speed_chroma, adm and motion
    (`vmaf_model.predict`). Metrics with the same options are computed once, also for several models. Raises OptionError if
    there is no such model, or if it needs a metric that is not computed here, and FrameError as the metrics that it combines.
    """

    name = "vmaf"
    options = values_of(VmafOptions)
    has_chroma = False
    reads_integers = True

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        super().__init__(frame, options)
        name: str = self._options["name"]
        if not _NAME.fullmatch(name):
            raise OptionError(f"{self.name}: name is {name!r}; it must be letters, digits, _ and ., a letter first")
        self.names = (name,)
        model = model_of_size(self._options["model"], frame.width, frame.height)
        if model != self._options["model"]:
            self.settings["model"], self.automatic = model, ("model",)
        self._model = self._with_encoding(read_model(model))
        self._inputs = [feature.name for feature in self._model.features]
        of_extractors: dict[str, FeatureOptions] = {}
        for feature in self._model.features:
            if of_extractors.setdefault(feature.extractor, feature.options) != feature.options:
                raise OptionError(f"model {self._model.name} cannot be used: it gives {feature.extractor} two sets of options")
        try:
            self._parts = tuple(_EXTRACTORS[extractor](frame, given) for extractor, given in of_extractors.items())
        except OptionError as error:
            raise OptionError(f"model {self._model.name} cannot be used: {error}") from None
        bits = int(frame.peak).bit_length()
        if bits < _ADVISED_BITS and CambiScorer.name in of_extractors:
            self.advice = (
                f"{name}: libvmaf's guide advises {_ADVISED_BITS} bits for {self._model.name}, which judges banding, also for"
                f" clips of less: `--bits {_ADVISED_BITS}`"
            )
            if not self.automatic:
                self.advice += f", and enc_bitdepth={bits} among the options of the feature"

    def _with_encoding(self, model: VmafModel) -> VmafModel:
        """Return the model with the size and the depth of the encoding, if they are given, among the options of cambi."""
        encoding = {name: self._options[name] for name in OF_ENCODING if self._options[name]}
        if not encoding:
            return model
        if all(feature.extractor != CambiScorer.name for feature in model.features):
            raise OptionError(f"model {model.name} does not judge banding, and has no {', '.join(encoding)}; leave it out")
        if ("enc_width" in encoding) != ("enc_height" in encoding):
            raise OptionError(f"{self.name}: the size of the encoding is enc_width and enc_height, got {', '.join(encoding)}")
        return replace(
            model,
            features=tuple(
                replace(feature, options={**feature.options, **encoding}) if feature.extractor == CambiScorer.name else feature
                for feature in model.features
            ),
        )

    @classmethod
    def files(cls, options: Mapping[str, OptionValue]) -> list[str]:
        """Return the path of the model if it is a file of the user's."""
        model = str(options.get("model", DEFAULT_MODEL))
        return [model] if is_file(model) else []

    @classmethod
    def reads_chroma(cls, options: Mapping[str, OptionValue]) -> bool:
        """Return whether the model reads chroma."""
        model = str(options.get("model", DEFAULT_MODEL))
        features = read_model(model_of_size(model, 0, 0)).features
        return any(_EXTRACTORS[feature.extractor].reads_chroma(feature.options) for feature in features)

    @property
    def scorers(self) -> tuple[FrameScorer, ...]:
        """Return the metrics that the model combines."""
        return tuple(scorer for part in self._parts for scorer in part.scorers)

    def chroma_scorers(self, chroma: FrameFormat) -> tuple[FrameScorer, ...]:
        """Return the metrics of chroma that the model combines."""
        return tuple(scorer for part in self._parts for scorer in part.chroma_scorers(chroma))

    def combine(self, scores: Mapping[str, Doubles]) -> Mapping[str, Doubles]:
        """Return the prediction of the model."""
        for part in self._parts:
            scores = {**scores, **part.combine(scores)}
        features = np.stack([scores[name] for name in self._inputs], axis=1)
        return {self.names[0]: predict(self._model, features, transform=self._options["transform"] == "phone")}


_OF_MODEL = {
    "version": "model",
    "path": "model",
    "name": "name",
    **{f"{CambiScorer.name}.{name}": name for name in OF_ENCODING},
}
"""The option of vmaf for each key of libvmaf's --model that has one of the same value."""

_TRANSFORMS = {"true": "phone", "false": "none"}


def feature_of_model(text: str) -> str:
    """Return the feature that libvmaf's option --model means, such as ``"version=vmaf_v0.6.1:name=vmaf"``.

    Raises OptionError for a key that is not supported, or without a model.
    """
    _, given = split_feature(f"{VmafMetric.name}={text}")
    options = {}
    for key, value in given.items():
        if key == "enable_transform":
            if value not in _TRANSFORMS:
                raise OptionError(f"--model {text}: enable_transform is {value}; it must be {' or '.join(_TRANSFORMS)}")
            options["transform"] = _TRANSFORMS[value]
        elif key in _OF_MODEL:
            if _OF_MODEL[key] in options:
                raise OptionError(f"--model {text} names two models; give version or path")
            options[_OF_MODEL[key]] = str(value)
        else:
            raise OptionError(f"--model {text}: {key} is not supported; {', '.join(_OF_MODEL)} and enable_transform are")
    if "model" not in options:
        raise OptionError(f"--model {text} names no model; give version=NAME, such as version={DEFAULT_MODEL}, or path=FILE")
    return f"{VmafMetric.name}={':'.join(f'{key}={value}' for key, value in options.items())}"
