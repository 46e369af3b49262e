"""List the encoders of PyAV's wheels that a search can drive, with the facts about each that it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import OptionError
from ..utils.wording import did_you_mean
from .defaults import STEP
from .model import Prior

_MIN_STEP = 0.001  # encoders print no more decimals of a CRF, and a model of all values stays small
_BITRATES = 50, 100_000  # kbit/s
_BITRATE_RATIO = 1.03  # from one bit rate to the next


@dataclass(frozen=True)
class Parameter:
    """The parameter of an encoder that a search sets."""

    name: str
    """The encoder's option, or ``"bitrate"`` for kbit/s."""
    values: tuple[float, ...]
    """Its values, the best quality first."""

    @property
    def is_bitrate(self) -> bool:
        """Return whether the values are bit rates in kbit/s."""
        return self.name == "bitrate"

    def text(self, place: int) -> str:
        """Return a value as encoders and people write it."""
        return f"{self.values[place]:g}"


@dataclass(frozen=True)
class Encoder:
    """An encoder that a search can drive."""

    name: str
    """FFmpeg's name of the encoder."""
    decoder: str
    """FFmpeg's name of the decoder of its streams."""
    parameters: Mapping[str, tuple[int, int]]
    """The best and the cheapest value of each parameter; the first parameter is the default."""
    middle: float
    """The value of the default parameter at which a usual clip has the scores of `_SIMILARITIES`."""
    slope: float
    """The usual change of float_ssim in dB to the next value."""
    own: str | None = None
    """The option of FFmpeg that takes the options of the encoder alone, as ``x265-params`` does."""
    passes: bool = False
    """Whether it can encode in two passes through PyAV, which does not hand on the statistics of every encoder."""
    quiet: Mapping[str, str] = field(default_factory=dict)
    """Options for `own` that make the encoder print less."""
    key_frames: int = 250
    """The most frames from one key frame to the next, unless an option says otherwise; 0 if that depends on the frame rate."""
    keys_at_cuts: bool = True
    """Whether shots begin with key frames."""

    @property
    def is_nvenc(self) -> bool:
        """Return whether it runs on an NVIDIA GPU."""
        return self.name.endswith("_nvenc")

    def parameter(
        self, name: str | None, step: float = STEP, least: float | None = None, most: float | None = None
    ) -> Parameter:
        """Return the parameter of a name, or the default one, with its values from `least` to `most`. Raises OptionError."""
        chosen = next(iter(self.parameters)) if name is None else name
        ranges = {**self.parameters, "bitrate": _BITRATES}
        if chosen not in ranges:
            raise OptionError(f"`parameter` {chosen!r}: {self.name} has {', '.join(ranges)}{did_you_mean(chosen, ranges)}")
        first, last = ranges[chosen]
        low, high = first if least is None else least, last if most is None else most

        if chosen == "bitrate":
            if not 1 <= low <= high < math.inf or math.ceil(low) > math.floor(high):
                needed = "both must be 1 or more, the lower one first, with a whole number between them"
                raise OptionError(f"bit rates from {low:g} to {high:g} kbit/s; {needed}")
            low, high = math.ceil(low), math.floor(high)
            steps = round(math.log(high / low) / math.log(_BITRATE_RATIO))
            rates = (round(high * (low / high) ** (n / max(1, steps))) for n in range(steps + 1))
            return Parameter(chosen, tuple(dict.fromkeys(rates)))  # the lowest ones lie further apart than the ratio

        if not _MIN_STEP <= step <= 10:
            raise OptionError(f"`step` is {step:g}; it must be {_MIN_STEP:g} to 10")
        if not first <= low <= high <= last:
            raise OptionError(f"{chosen} from {low:g} to {high:g}; for {self.name} it is between {first} and {last}")
        return Parameter(chosen, tuple(round(low + n * step, 6) for n in range(math.floor((high - low) / step + 1e-9) + 1)))

    def prior(self, parameter: Parameter, metric: str, pooling: str, *, decibels: bool) -> Prior:
        """Return the curve of a pooled score over the places of a parameter that is expected before the first trial.

        `decibels` is whether the score is a similarity, which is modelled in dB.
        """
        values = parameter.values
        table = _SIMILARITIES if decibels else _SCORES
        level, factor, deviation = next((row for name, row in table.items() if metric.startswith(name)), _OTHERS)
        if parameter.is_bitrate:
            middle, slope = len(values) / 2, -_DECIBELS_OF_DOUBLED_RATE * math.log2(_BITRATE_RATIO)
            deviation *= 2
        else:
            step = values[1] - values[0] if len(values) > 1 else 1.0
            first, full = (high - low for low, high in (next(iter(self.parameters.values())), self.parameters[parameter.name]))
            middle, slope = (self.middle * full / first - values[0]) / step, self.slope * first / full * factor * step
        spread, bend = abs(slope) * _SLOPE_SPREAD, abs(slope) * _BEND
        return Prior(middle, level, deviation, slope, spread, bend, noise_of(pooling))


def noise_of(pooling: str) -> float:
    """Return by how much a pooled value is off a smooth curve over the settings: the standard deviation, in dB."""
    return _NOISE * _NOISE_OF_POOLINGS.get(pooling, 1.0)


# docs/notes/2026-11-29-search.md says on which curves these numbers were measured.
_SIMILARITIES = {"float_ms_ssim": (20.0, 1.2, 4.5), "float_ssim": (14.0, 1.0, 4.5)}
"""The level in dB at `Encoder.middle`, a factor of `Encoder.slope`, and the standard deviation of the level."""

_SCORES = {"vmaf": (88.0, 3.0, 8.0)}
"""The same for scores of a scale of their own."""

_OTHERS = 40.0, 1.0, 4.5
"""The same for scores that are in dB already, as float_psnr is."""

_SLOPE_SPREAD = 0.35  # in parts of the slope
_BEND = 0.1  # in parts of the slope
_NOISE = 0.04  # dB, of a mean
_NOISE_OF_POOLINGS = {"p10": 2.0, "p5": 3.0, "p1": 4.0, "min": 5.0, "max": 5.0}
"""How much more a pooled value jumps from setting to setting than a mean does."""

_DECIBELS_OF_DOUBLED_RATE = 2.5


def _nvenc(name: str, decoder: str, cheapest: int) -> Encoder:
    ranges = {"cq": (1, cheapest), "qp": (0, 51 if decoder != "libdav1d" else 255)}
    return Encoder(name, decoder, ranges, middle=28.0, slope=-0.45, keys_at_cuts=False)


_LIST = (
    # 0 of libx264 is lossless, in the profile High 4:4:4 Predictive, which players refuse.
    Encoder("libx264", "h264", {"crf": (1, 51), "qp": (1, 51)}, 26, -0.5, "x264-params", passes=True, quiet={"log": "-1"}),
    Encoder(
        "libx265", "hevc", {"crf": (0, 51), "qp": (0, 51)}, 26, -0.5, "x265-params", passes=True, quiet={"log-level": "none"}
    ),
    Encoder(
        "libsvtav1", "libdav1d", {"crf": (1, 63), "qp": (1, 63)}, 38, -0.3, "svtav1-params", key_frames=0, keys_at_cuts=False
    ),
    Encoder("libvpx-vp9", "vp9", {"crf": (0, 63)}, 36, -0.3, key_frames=128, keys_at_cuts=False),
    _nvenc("h264_nvenc", "h264", 51),
    _nvenc("hevc_nvenc", "hevc", 51),
    _nvenc("av1_nvenc", "libdav1d", 63),
)

ENCODERS: Mapping[str, Encoder] = {encoder.name: encoder for encoder in _LIST}
"""The encoders by name."""


def encoder_of(name: str) -> Encoder:
    """Return the encoder of a name. Raises OptionError."""
    if name not in ENCODERS:
        raise OptionError(f"unknown encoder {name!r}{did_you_mean(name, ENCODERS)}. Available encoders: {', '.join(ENCODERS)}")
    return ENCODERS[name]
