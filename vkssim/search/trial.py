"""Encode the samples of a clip with a setting, score them, and forecast the scores of the whole clip."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np

from ..errors import EncodeError, OptionError
from ..reference.decibel import decibel
from ..report.thresholds import Threshold, check_names, parse_threshold
from ..scorer import Scorer
from ..types import Doubles
from ..utils.progress import Progress
from .encode import LumaPair, Stream
from .encoders import noise_of
from .pooling import pooled_value
from .recipe import Recipe
from .samples import Sampling

_DEVIATION_OF_ONE = 0.5  # dB: what a single sample says of the whole clip, which cannot be seen in it
_DEVIATION_OF_RARE = {"min": 1.0, "p1": 0.2}  # dB: what frames change that are in no sample, as docs/search.md has measured it
HIGHEST = 50.0
"""In dB: beyond it encodes become lossless, and scores leave their curve."""


@dataclass(frozen=True)
class EncodedSample:
    """An encoded sample: the scores of its frames by name, and the output of the encoder."""

    scores: dict[str, list[float]]
    stream: Stream

    def column(self, name: str) -> Doubles:
        """Return one score of all frames."""
        return np.array(self.scores[name], np.float64)

    def as_json(self) -> dict[str, Any]:
        """Return it as values of JSON; a score that does not exist is null."""
        scores = {name: [value if math.isfinite(value) else None for value in values] for name, values in self.scores.items()}
        return {"scores": scores, "stream": asdict(self.stream)}

    @classmethod
    def of_json(cls, entry: Any) -> Self:
        """Return the sample of which `as_json` made a value. Raises ValueError, TypeError or KeyError for anything else."""
        scores = {
            str(name): [math.nan if value is None else float(value) for value in values]
            for name, values in entry["scores"].items()
        }
        return cls(scores, Stream(**{name: int(value) for name, value in entry["stream"].items()}))


@dataclass(frozen=True)
class Trial:
    """The outcome of encoding with one setting.

    Parameters
    ----------
    setting : float
        The value of the parameter: a CRF, a QP, or kbit/s.
    values : dict of str to float
        The pooled value of each target, such as ``{"float_ms_ssim:p5": 0.9871}``; NaN if it does not exist.
    meets : bool
        Whether every value reaches its target, on the frames that were encoded.
    probability : float
        The probability that the whole clip meets the targets: 0 or 1 if `whole`.
    bytes : int
        The size of the video stream of the whole clip: a forecast, or the real size if `whole`.
    kbps : float
        The bit rate of that stream in kbit/s, over the time in which the clip is shown.
    frames : int
        The number of frames that were encoded.
    seconds : float
        The time that encoding and scoring took.
    whole : bool
        Whether the whole clip was encoded in one piece.
    deviations : dict of str to float
        The standard deviation of each value from the value of the whole clip, because samples stand for it, in the unit of the
        model, which is dB. 0 if `whole`.

    """

    setting: float
    values: dict[str, float]
    meets: bool
    bytes: int
    kbps: float
    frames: int
    seconds: float
    whole: bool
    deviations: dict[str, float]
    probability: float


@dataclass(frozen=True)
class Target:
    """A threshold, and the unit of its score in the model: dB for a similarity, else that of the score."""

    threshold: Threshold
    decibels: bool

    @property
    def name(self) -> str:
        """Return the name of the pooled value, such as ``float_ms_ssim:p5``."""
        return self.threshold.pooled_name

    @property
    def limit(self) -> float:
        """Return the least value that meets the target; every value meets a score that is only looked at."""
        return -math.inf if self.threshold.limit is None else self.threshold.limit

    def unit(self, value: float) -> float:
        """Return a value in the unit of the model: a similarity in dB, HIGHEST at most."""
        return min(float(decibel(np.array(value))), HIGHEST) if self.decibels else value

    def value(self, encoded: Sequence[EncodedSample], weights: Sequence[float]) -> float:
        """Return the pooled value over samples."""
        return pooled_value(self.threshold.pooling, [one.column(self.threshold.name) for one in encoded], weights)

    def deviation(self, encoded: Sequence[EncodedSample], weights: Sequence[float]) -> float:
        """Return the standard deviation of the value over choices of samples, by leaving out one of them at a time.

        It includes how far a trial is off the curve of the settings. Pooled values that few frames decide have more: these
        frames are seldom in a sample.
        """
        pooling = self.threshold.pooling
        rare = math.hypot(_DEVIATION_OF_RARE.get(pooling, 0.0), noise_of(pooling))
        if len(encoded) < 2:
            return math.hypot(_DEVIATION_OF_ONE, rare)
        left: Doubles = np.array(
            [
                self.unit(self.value([*encoded[:n], *encoded[n + 1 :]], [*weights[:n], *weights[n + 1 :]]))
                for n in range(len(encoded))
            ]
        )
        return math.hypot(float(np.sqrt((len(left) - 1) / len(left) * np.sum((left - left.mean()) ** 2))), rare)

    def probability(self, value: float, deviation: float) -> float:
        """Return the probability that the whole clip meets the target, for a value of samples and its standard deviation."""
        if self.decibels and self.unit(value) >= HIGHEST:
            return float(value >= self.limit)
        above = self.unit(value) - self.unit(self.limit)
        return 0.0 if math.isnan(above) else NormalDist(sigma=deviation).cdf(above)


def features_of(thresholds: Sequence[Threshold], features: Sequence[str]) -> list[str]:
    """Return the features to compute: those that are given, or the ones that the targets name."""
    return list(features) or list(dict.fromkeys(threshold.name for threshold in thresholds))


def parse_targets(texts: Sequence[str]) -> list[Threshold]:
    """Return the thresholds of targets. Raises OptionError for any text that is none."""
    return [parse_threshold(text, "targets") for text in texts]


class TargetScorer:
    """Score pairs of luma planes on a device that stays open; use it with `with`. Arguments as those of `Scorer`."""

    def __init__(self, width: int, height: int, bits: int, features: Sequence[str], backend: str, device: Any) -> None:
        self._scorer = Scorer(width, height, bits=bits, features=features, backend=backend, device=device)

    @property
    def scorer(self) -> Scorer:
        """Return the scorer, which has the names of the scores and the device."""
        return self._scorer

    def targets(self, thresholds: Sequence[Threshold]) -> list[Target]:
        """Return the targets of thresholds. Raises OptionError for a score that is not computed."""
        similarities = self._scorer.similarities
        check_names(thresholds, self._scorer.names, similarities)
        for one in thresholds:
            if one.limit is not None and one.limit > 1 and one.name in similarities and one.pooling != "mean_db":
                raise OptionError(f"`targets` {one.name}:{one.pooling}={one.limit:g}: it is 1 at most; mean_db is in dB")
        return [
            Target(threshold, threshold.name in similarities and threshold.pooling != "mean_db") for threshold in thresholds
        ]

    def score(self, pairs: Iterable[LumaPair]) -> Iterator[dict[str, float]]:
        """Yield the scores of each pair by name."""
        for frame in self._scorer.score(pairs):
            yield dict(frame.metrics)

    def sample(
        self, pairs: Iterable[LumaPair], stream: Stream, progress: Progress | None, done: int, total: int | None
    ) -> EncodedSample:
        """Return a sample with its scores. Raises EncodeError if it has no frames."""
        scores: dict[str, list[float]] = {name: [] for name in self._scorer.names}
        for metrics in self.score(pairs):
            for name, value in metrics.items():
                scores[name].append(value)
            done += 1
            if progress is not None:
                progress(done, total)
        if not any(scores.values()):
            raise EncodeError("the encoder wrote no frame")
        return EncodedSample(scores, stream)

    def close(self) -> None:
        """Close the device."""
        self._scorer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def summarise(
    setting: float,
    encoded: Sequence[EncodedSample],
    sampling: Sampling,
    targets: Sequence[Target],
    recipe: Recipe,
    shown: float,
    seconds: float,
) -> Trial:
    """Return the trial of samples that were encoded with a setting.

    `shown` is the time in seconds in which all frames that they stand for are shown, `seconds` what the trial took.
    """
    weights = [sample.weight for sample in sampling.samples]
    values = {target.name: target.value(encoded, weights) for target in targets}
    meets = all(values[target.name] >= target.limit for target in targets)
    whole = sampling.is_whole
    deviations = {target.name: 0.0 if whole else target.deviation(encoded, weights) for target in targets}
    chances = (float(meets) if whole else one.probability(values[one.name], deviations[one.name]) for one in targets)
    size = forecast_bytes([one.stream for one in encoded], sampling, recipe)
    return Trial(
        setting=setting,
        values=values,
        meets=meets,
        bytes=size,
        kbps=round(size * 8 / shown / 1000, 3),
        frames=sum(one.stream.frames for one in encoded),
        seconds=seconds,
        whole=whole,
        deviations=deviations,
        probability=min(chances, default=1.0),
    )


def forecast_bytes(streams: Sequence[Stream], sampling: Sampling, recipe: Recipe) -> int:
    """Return the size of the video stream of the whole clip in bytes.

    The samples stand for all frames, those behind cuts among them. The headers and the key frame that begin the clip, and the
    key frames that it has every so many frames, come on top, since a sample is too short to have these.
    """
    if sampling.is_whole:
        return streams[0].bytes
    header = streams[0].header_bytes
    keys, frames = sum(stream.key_frames for stream in streams), sum(stream.frames for stream in streams)
    ordinary = sum(stream.other_bytes for stream in streams) / max(1, frames - keys)
    extra_of_key = sum(stream.first_bytes for stream in streams) / len(streams) - header - ordinary
    size = header + extra_of_key
    for stream, sample in zip(streams, sampling.samples, strict=True):
        begins = 0 if sample.lead else header + extra_of_key  # that is in the sample, and no other part of the clip has it
        size += sample.weight * (stream.bytes - begins)
    return round(size + extra_of_key * _periodic_keys(streams, sampling, recipe))


def _periodic_keys(streams: Sequence[Stream], sampling: Sampling, recipe: Recipe) -> float:
    """Return how many more key frames the clip has than the samples stand for."""
    shots = sampling.shots if recipe.keys_at_cuts else [sampling.frames]
    if recipe.key_frames >= max(sample.encoded for sample in sampling.samples):
        return sum((count - 1) // recipe.key_frames for count in shots)
    stood_for = sum(
        sample.weight * (stream.key_frames - (sample.lead == 0))
        for stream, sample in zip(streams, sampling.samples, strict=True)
    )
    return sum(math.ceil(count / recipe.key_frames) for count in shots) - 1 - stood_for


class Stopwatch:
    """The seconds since its creation, to three decimals."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds since it was made."""
        return round(time.monotonic() - self._start, 3)
