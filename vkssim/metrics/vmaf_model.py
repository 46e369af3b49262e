"""VMAF's models: which features a JSON model needs, and the score that it predicts from them, in double precision.

The models come from the files of the Python package ffmpeg-quality-metrics, which is not imported, or from a file of the user.
Format and steps are those of libvmaf's `read_json_model.c`, `predict.c` and `svm.cpp`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..errors import OptionError
from ..types import DoublePlane, Doubles

DEFAULT_MODEL = "vmaf_v0.6.1"
AUTOMATIC_HFR = "v1_hfr"
AUTOMATIC_MODELS = "v1", AUTOMATIC_HFR
"""The names of the model of version 1 that suits the size of the frames, for usual frame rates and for high ones."""
MIN_HIGH_FPS = 45.0
"""libvmaf made the models for high frame rates for about 50 and 60 frames per second."""
_LARGEST_OF_1080P = 2560, 1440

_PACKAGE = "ffmpeg-quality-metrics"
_FOLDER = "vmaf_models"
_LARGEST_BYTES = 1 << 26  # the models of the package have 20,000
_BOTH_WAYS = f"Give a path to a JSON model, or a version such as {DEFAULT_MODEL} (`pip install {_PACKAGE}`)"

FeatureOptions = Mapping[str, bool | int | float | str]
"""Options of a feature by libvmaf's names, such as `vif_enhn_gain_limit`."""

OPTIONS: dict[str, tuple[str, bool | int | float | str]] = {
    "adm_csf_diag_scale": ("scfd", 1.0),
    "adm_csf_mode": ("csf", 0),
    "adm_csf_scale": ("scf", 1.0),
    "adm_dlm_weight": ("dlmw", 0.5),
    "adm_enhn_gain_limit": ("egl", 100.0),
    "adm_min_val": ("min", 0.0),
    "adm_noise_weight": ("nw", 0.03125),
    "adm_norm_view_dist": ("nvd", 3.0),
    "adm_ref_display_height": ("rdh", 1080),
    "adm_skip_scale0": ("ssz", False),
    "cambi_eotf": ("ceot", "bt1886"),
    "cambi_high_res_speedup": ("hrs", 0),
    "cambi_max_val": ("cmxv", 1000.0),
    "cambi_topk": ("ctpk", 0.6),
    "cambi_vis_lum_threshold": ("vlt", 0.0),
    "enc_bitdepth": ("encbd", 0),
    "enc_height": ("ench", 0),
    "enc_width": ("encw", 0),
    "max_log_contrast": ("mlc", 2),
    "motion_blend_factor": ("mbf", 1.0),
    "motion_blend_offset": ("mbo", 40.0),
    "motion_five_frame_window": ("mffw", False),
    "motion_force_zero": ("force_0", False),
    "motion_fps_weight": ("mfw", 1.0),
    "motion_max_val": ("mmxv", 10000.0),
    "motion_moving_average": ("mma", False),
    "speed_kernelscale": ("ks", 1.0),
    "speed_max_val": ("mxv", 1000.0),
    "speed_nn_floor": ("nnf", 0.0),
    "speed_prescale": ("ps", 1.0),
    "speed_prescale_method": ("psm", "nearest"),
    "speed_sigma_nn": ("snn", 0.29),
    "speed_weight_var_mode": ("wvm", 0),
    "tvi_threshold": ("tvit", 0.019),
    "vif_enhn_gain_limit": ("egl", 100.0),
    "vif_skip_scale0": ("ssclz", False),
    "window_size": ("ws", 65),
}
"""libvmaf's abbreviation and default of each option that changes the name of an output, in the order of the names."""

_OUTPUTS = {
    **{
        f"VMAF_integer_feature_{name}_score": f"integer_{name}"
        for name in ("adm2", "aim", "adm3", "motion2", "motion3", *(f"vif_scale{scale}" for scale in range(4)))
    },
    **{f"integer_adm_scale{scale}": f"integer_adm_scale{scale}" for scale in range(4)},
    "Cambi_feature_cambi_score": "cambi",
    **{f"Speed_chroma_feature_speed_chroma_{plane}_score": f"speed_chroma_{plane}" for plane in ("u", "v", "uv")},
}
"""The name in reports of each feature that a model may name."""

_EXTRACTORS = {"a": "adm", "c": "cambi", "m": "motion", "s": "speed_chroma", "v": "vif"}
"""The extractor of an output, by the first letter of its name after `integer_`."""

_PREFIXES = {"cambi": ("cambi_", "enc_", "max_log_contrast", "tvi_threshold", "window_size"), "speed_chroma": ("speed_",)}
"""The beginnings of the options of an extractor; else its name."""

_CORRECTED = ("speed_chroma", "adm3")
"""The features whose scores chroma_correction_parameter joins."""

_OF_AIM = ("integer_aim", "integer_adm3")


@dataclass(frozen=True)
class ModelFeature:
    """A feature that a model needs: its output without options, its extractor, such as adm, and the options of that."""

    output: str
    extractor: str
    options: FeatureOptions

    @property
    def name(self) -> str:
        """Name of the output with its options, such as `integer_adm2_egl_1`."""
        return output_name(self.output, self.options)


@dataclass(frozen=True)
class Transform:
    """The transform of a score: a polynomial, a piecewise linear map of `knots` (K, 2) float64, bounds by the score itself."""

    enabled: bool
    polynomial: tuple[float, float, float]
    knots: DoublePlane
    at_most_input: bool
    at_least_input: bool


@dataclass(frozen=True)
class VmafModel:
    """A nu-SVR with radial kernels over F features.

    Entry 0 of `slopes` and `intercepts`, (F + 1,) float64, is that of the score. `vectors` are (S, F) float64, `coefficients`
    (S,) float64.
    """

    name: str
    features: tuple[ModelFeature, ...]
    slopes: Doubles
    intercepts: Doubles
    gamma: float
    rho: float
    coefficients: Doubles
    vectors: DoublePlane
    transform: Transform | None
    clip: tuple[float, float] | None
    chroma_correction: float | None = None
    """Replaces a score of 0 of the chroma by this times 1 - adm3; None if the model keeps it."""


def output_name(output: str, options: FeatureOptions) -> str:
    """Return libvmaf's name of an output: with a suffix for each option that differs from its default, sorted by option."""
    suffixes = []
    for name, (short, default) in sorted(OPTIONS.items()):
        value = options.get(name, default)
        if value != default:
            text = value if isinstance(value, str) else f"{value:g}"
            suffixes.append(f"_{short}" if isinstance(default, bool) else f"_{short}_{text}")
    return output + "".join(suffixes)


def model_folder() -> Path | None:
    """Return the folder of the models of the installed package; None if the package is missing."""
    spec = find_spec(_PACKAGE.replace("-", "_"))
    for location in (spec and spec.submodule_search_locations) or ():
        if (folder := Path(location, _FOLDER)).is_dir():
            return folder
    return None


def model_of_size(model: str, width: int, height: int) -> str:
    """Return a model, or for an automatic one that of version 1 that libvmaf's `models_v1.md` calls the default of a screen.

    It is that of 2160p for frames beyond 2560x1440, upright ones too, and that of 1080p for all others.
    """
    if model not in AUTOMATIC_MODELS:
        return model
    longer, shorter = _LARGEST_OF_1080P
    is_large = max(width, height) > longer or min(width, height) > shorter
    return f"vmaf_v1.0.16_{'hfr_' * (model == AUTOMATIC_HFR)}{'1d5h_2160' if is_large else '3d0h'}"


def is_file(model: str) -> bool:
    """Return whether a model is named by the path of a file, which has a folder or the suffix .json."""
    path = Path(model)
    return path.suffix == ".json" or path.name != model


def read_model(model: str = DEFAULT_MODEL) -> VmafModel:
    """Return a model by the path of its JSON file, see `is_file`, or by its version.

    Raises OptionError if there is no such model, if the file is not a model, or if it needs features that do not exist here.
    """
    path = Path(model)
    if not is_file(model):
        folder = model_folder()
        if folder is None:
            raise OptionError(f"model {model} is in the package {_PACKAGE}, which is not installed. {_BOTH_WAYS}")
        path = folder / f"{model}.json"
        if not path.is_file():
            names = ", ".join(sorted(file.stem for file in folder.glob("*.json")))
            raise OptionError(f"there is no model {model}; {_PACKAGE} has {names}. {_BOTH_WAYS}")
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise OptionError(f"cannot read the model {model}: {error}. {_BOTH_WAYS}") from error
    if len(text) > _LARGEST_BYTES:
        raise OptionError(f"the model {model} has more than {_LARGEST_BYTES} bytes. {_BOTH_WAYS}")
    return parse_model(text, path.stem)


def parse_model(text: bytes, name: str) -> VmafModel:
    """Return a model from its JSON text. Raises OptionError as `read_model` does."""
    try:
        fields = json.loads(text)["model_dict"]
        if fields["model_type"] != "LIBSVMNUSVR":
            _refuse(name, f"its type is {fields['model_type']}, only LIBSVMNUSVR is supported")
        features = _features(fields, name)
        slopes, intercepts = _scaling(fields, len(features), name)
        gamma, rho, coefficients, vectors = _vectors(fields["model"], len(features), name)
        correction = _chroma_correction(fields.get("chroma_correction_parameter"), features, name)
        transform, clip = _transform(fields.get("score_transform"), name), _clip(fields.get("score_clip"))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"{name} is not a VMAF model in JSON ({type(error).__name__}: {error}). {_BOTH_WAYS}") from error
    return VmafModel(name, features, slopes, intercepts, gamma, rho, coefficients, vectors, transform, clip, correction)


def _refuse(name: str, reason: str) -> NoReturn:
    raise OptionError(f"model {name} cannot be used: {reason}. {_BOTH_WAYS}")


def _finite(values: Any) -> Doubles:
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
        raise ValueError("a value is not a finite number")
    return numbers.astype(np.float64)


def _features(fields: Mapping[str, Any], name: str) -> tuple[ModelFeature, ...]:
    names = fields["feature_names"]
    options = fields.get("feature_opts_dicts") or [{}] * len(names)
    if not names or len(options) != len(names):
        raise ValueError(f"{len(names)} features with options of {len(options)}")
    foreign = sorted({feature for feature in names if feature not in _OUTPUTS})
    if foreign:
        _refuse(name, f"it needs {', '.join(foreign)}, which vkssim does not compute; v0 models such as {DEFAULT_MODEL} work")
    features = []
    for feature, given in zip(names, options, strict=True):
        output = _OUTPUTS[feature]
        extractor = _EXTRACTORS[output.removeprefix("integer_")[0]]
        prefixes = _PREFIXES.get(extractor, (f"{extractor}_",))
        unknown = [option for option in given if option not in OPTIONS or not option.startswith(prefixes)]
        if unknown:
            _refuse(name, f"{extractor} has no option {', '.join(unknown)}")
        parsed = {option: _option(option, value) for option, value in given.items()}
        if extractor == "adm" and any(_OUTPUTS[needed] in _OF_AIM for needed in names):
            parsed["adm_skip_aim"] = False
        features.append(ModelFeature(output, extractor, parsed))
    return tuple(features)


def _option(name: str, value: Any) -> bool | int | float | str:
    default = OPTIONS[name][1]
    if isinstance(default, str):
        return str(value)
    if isinstance(default, bool):
        if value not in (True, False, "true", "false"):
            raise ValueError(f"{name} is {value!r}, not true or false")
        return value in (True, "true")
    number = float(_finite(float(value)))
    return int(number) if isinstance(default, int) else number


def _scaling(fields: Mapping[str, Any], count: int, name: str) -> tuple[Doubles, Doubles]:
    kind = fields["norm_type"]
    if kind == "none":
        return np.ones(count + 1), np.zeros(count + 1)
    if kind != "linear_rescale":
        _refuse(name, f"norm_type is {kind}, not linear_rescale or none")
    slopes, intercepts = _finite(fields["slopes"]), _finite(fields["intercepts"])
    if slopes.shape != (count + 1,) or intercepts.shape != (count + 1,) or slopes[0] == 0:
        raise ValueError(f"{slopes.shape} slopes and {intercepts.shape} intercepts of {count} features and a score")
    return slopes, intercepts


def _vectors(text: str, count: int, name: str) -> tuple[float, float, Doubles, DoublePlane]:
    """Return gamma, rho, coefficients and vectors of libsvm's text; entries that a line lacks are 0."""
    head, _, body = text.partition("\nSV\n")
    header = dict(line.split(maxsplit=1) for line in head.splitlines())
    kinds = header["svm_type"], header["kernel_type"]
    if kinds != ("nu_svr", "rbf"):
        _refuse(name, f"it is {kinds[0]} with the kernel {kinds[1]}, only nu_svr with rbf is supported")
    lines = body.splitlines()
    if len(lines) != int(header["total_sv"]):
        raise ValueError(f"{len(lines)} support vectors of {header['total_sv']}")
    coefficients, vectors = np.empty(len(lines)), np.zeros((len(lines), count))
    for row, line in enumerate(lines):
        first, *entries = line.split()
        coefficients[row] = float(first)
        for entry in entries:
            index, value = entry.split(":")
            if not 1 <= int(index) <= count:
                raise ValueError(f"a support vector has an entry {index} of {count} features")
            vectors[row, int(index) - 1] = float(value)
    return float(_finite(float(header["gamma"]))), float(_finite(float(header["rho"]))), _finite(coefficients), _finite(vectors)


def _transform(fields: Mapping[str, Any] | None, name: str) -> Transform | None:
    if fields is None:
        return None
    terms = [fields.get(term) for term in ("p0", "p1", "p2")]
    if all(term is None for term in terms):
        terms = [0.0, 1.0, 0.0]
    p0, p1, p2 = (float(_finite(term or 0.0)) for term in terms)
    knots = _finite(fields["knots"]) if fields.get("knots") else np.empty((0, 2))
    if len(knots) and (knots.ndim != 2 or knots.shape[1] != 2 or len(knots) < 2):
        raise ValueError("knots are not pairs of numbers, two at least")
    if (np.diff(knots[:, 0]) <= 0).any() or (np.diff(knots[:, 1]) < 0).any():
        _refuse(name, "the knots of its transform do not rise")
    at_most, at_least = (fields.get(bound) == "true" for bound in ("out_lte_in", "out_gte_in"))
    return Transform(fields.get("enabled") is True, (p0, p1, p2), knots, at_most, at_least)


def _chroma_correction(factor: Any, features: Sequence[ModelFeature], name: str) -> float | None:
    if not factor:
        return None
    if any(sum(output in feature.output for feature in features) != 1 for output in _CORRECTED):
        _refuse(name, f"chroma_correction_parameter needs one feature each of {' and '.join(_CORRECTED)}")
    return float(_finite(float(factor)))


def _clip(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    low, high = _finite(bounds)
    return float(low), float(high)


def predict(model: VmafModel, features: DoublePlane, *, transform: bool = False) -> Doubles:
    """Return the scores of N frames, (N,) float64, from their features (N, F) float64 in the order of `model.features`.

    y = sum of coefficient exp(-gamma |x - vector|^2) - rho over normalised features x. The score is (y - intercept) / slope,
    then transformed and clipped. `transform` applies the model's transform even if the model does not enable it, as libvmaf's
    `enable_transform` does: the phone model. A model without a transform ignores it.
    """
    inputs = features * model.slopes[1:] + model.intercepts[1:]
    if model.chroma_correction is not None:
        _correct_chroma(inputs, model, model.chroma_correction)
    distances = np.zeros((len(inputs), len(model.vectors)))
    for column, entries in zip(inputs.T, model.vectors.T, strict=True):
        differences = column[:, None] - entries
        differences *= differences
        distances += differences
    kernels = np.exp(-model.gamma * distances)
    scores: Doubles = ((kernels * model.coefficients).sum(axis=1) - model.rho - model.intercepts[0]) / model.slopes[0]
    if model.transform is not None and (transform or model.transform.enabled):
        scores = _transformed(scores, model.transform)
    return scores if model.clip is None else np.clip(scores, *model.clip)


def _correct_chroma(inputs: DoublePlane, model: VmafModel, factor: float) -> None:
    """Replace normalised scores of chroma that are 0, in place."""
    slopes, intercepts = model.slopes[1:], model.intercepts[1:]
    chroma, luma = (next(n for n, feature in enumerate(model.features) if output in feature.output) for output in _CORRECTED)
    scores = (inputs - intercepts) / slopes
    corrected = factor * (1 - scores[:, luma]) * slopes[chroma] + intercepts[chroma]
    inputs[:, chroma] = np.where(scores[:, chroma] == 0, corrected, inputs[:, chroma])


def _transformed(scores: Doubles, transform: Transform) -> Doubles:
    p0, p1, p2 = transform.polynomial
    result = p0 + p1 * scores + p2 * scores * scores
    if len(transform.knots):
        x, y = transform.knots.T
        slopes = np.diff(y) / np.diff(x)
        segment = np.clip(np.searchsorted(x, result, side="right") - 1, 0, len(slopes) - 1)
        ends = slopes[segment] * (result - x[segment])  # the first and the last segment go on beyond their knots
        result = y[segment] + ends
    if transform.at_most_input:
        result = np.minimum(result, scores)
    if transform.at_least_input:
        result = np.maximum(result, scores)
    return result
