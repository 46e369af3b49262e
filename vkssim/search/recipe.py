"""The recipe of an encode: encoder, parameter, options and pixel format, all of them checked before the first trial."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ..clips import Mastering, VideoFacts
from ..errors import OptionError
from ..types import CHROMA_STEPS
from ..utils import ffmpeg_log
from .defaults import ENCODER, STEP
from .encoders import ENCODERS, Encoder, Parameter, encoder_of
from .options import check_types, listed

_COMPLAINTS = ("Error parsing option", "Unknown option", "Invalid value")
"""The beginnings of FFmpeg's warnings about an option that an encoder lacks. FFmpeg goes on after them."""

_RATE_CONTROL = ("b", "bitrate", "tbr", "rc", "crf", "qp", "cq", "q", "global_quality", "lossless", "pass", "stats")
"""Options that say how good an encode is, or how large. Limits of the bit rate, such as maxrate, are not among them."""

_FRAME_RATE = ("fps", "fps-num", "fps-denom")
"""Options of encoders alone that state another frame rate, by which x265 wrote 1,396 kbit/s for 300 with ``fps=5``."""

_NO_NVENC = ("Cannot load", "No capable devices", "OpenEncodeSessionEx failed", "No CUDA", "cuInit", "driver")
"""Parts of FFmpeg's messages if there is no driver, or no GPU that encodes."""

_ANY_SIZE = ("libsvtav1", "libvpx-vp9")
"""The encoders that take chroma of fewer samples with an odd size."""

_SPECIAL = re.compile(r"[\\':]")
"""Characters with a meaning of their own in a list of FFmpeg's options, such as a colon in a path."""

_OF_PASSES = re.compile(r"pass[12]|(^|[+-])\d")
"""The flags of FFmpeg that make an encode the first or the second of two; a number may stand for any of its flags."""

_NO_KEYS_AT_CUTS = (("sc_threshold", "0"), ("scenecut", "0"), ("no-scenecut", "1"))
"""The options of FFmpeg, x264 and x265 with which there are key frames at regular distances alone."""

_SIDE = 16  # any number that all chroma steps divide
_SVT_AV1_SHORT_GROUPS = 9  # presets from this one on have mini-GOPs of 16 frames, lower ones of 32, as was measured
_SDR_LEAST = 0.0001  # cd/m², the unit of the least luminance in H.264 and HEVC


@dataclass(frozen=True)
class EncoderSpec:
    """An encoder, its options, and the parameter whose value is searched.

    Parameters
    ----------
    name : str
        FFmpeg's name: libx264, libx265, libsvtav1, libvpx-vp9, h264_nvenc, hevc_nvenc or av1_nvenc.
    options : str or sequence of str
        Options of the encoder, ``"preset=6:film-grain=8"``.
    parameter : str, optional
        The parameter to search: ``"crf"``, ``"qp"``, for NVENC ``"cq"``, or ``"bitrate"`` in kbit/s. The default is the first
        that the encoder has.
    least, most : float, optional
        The least and the largest value of the parameter.
    step : float
        The distance of two values; bit rates are 3 % apart.
    bits : int, optional
        The depth of the encode. The default is the depth of the source.
    two_pass : bool
        Encode in two passes, which needs `parameter` ``"bitrate"``, and libx264 or libx265.

    Raises
    ------
    OptionError
        The encoder is unknown, or a value is not possible for it.

    """

    name: str = ENCODER
    options: Sequence[str] | str = ()
    parameter: str | None = None
    least: float | None = None
    most: float | None = None
    step: float = STEP
    bits: int | None = None
    two_pass: bool = False

    def __post_init__(self) -> None:
        check_types(EncoderSpec, vars(self))
        values_of(self)
        split_options(self.options)


def as_spec(encoder: EncoderSpec | str) -> EncoderSpec:
    """Return a specification as it is, and the default one for an encoder's name. Raises OptionError."""
    return encoder if isinstance(encoder, EncoderSpec) else EncoderSpec(encoder)


def values_of(spec: EncoderSpec) -> Parameter:
    """Return the parameter of an encoder with the values that are searched. Raises OptionError."""
    return encoder_of(spec.name).parameter(spec.parameter, spec.step, spec.least, spec.most)


@dataclass(frozen=True)
class Recipe:
    """The way to encode a clip, for every setting of the parameter."""

    encoder: Encoder
    parameter: Parameter
    facts: VideoFacts
    format: str
    """FFmpeg's name of the pixel format of the encode."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options by FFmpeg's names."""
    own: Mapping[str, str] = field(default_factory=dict)
    """Options of the encoder alone."""
    two_passes: bool = False
    size: tuple[int, int] | None = None
    """The width and the height of the encode; None for those of the source."""

    @property
    def scaled(self) -> tuple[int, int] | None:
        """Return the size of the encode if it is not that of the source."""
        return None if self.size == (self.facts.width, self.facts.height) else self.size

    @property
    def bits(self) -> int:
        """Return the depth of the frames that are encoded."""
        import av

        return int(av.VideoFormat(self.format).components[0].bits)

    @property
    def chroma(self) -> str:
        """Return the chroma format of the frames that are encoded, such as ``"420"``."""
        return _chroma(self.format)

    @property
    def key_frames(self) -> int:
        """Return the most frames from one key frame to the next."""
        options = {**self.own, **self.options}
        for name in ("g", "keyint"):
            if options.get(name, "").isdigit():
                return max(1, int(options[name]))
        if self.encoder.key_frames:
            return self.encoder.key_frames
        # SVT-AV1's own choice, `compute_default_intra_period` of its source: five times about a second, in mini-GOPs
        preset = options.get("preset", "").lstrip("-")
        group = 32 if preset.isdigit() and int(options["preset"]) < _SVT_AV1_SHORT_GROUPS else 16
        return (int(self.facts.rate) + group) // group * group * 5 + 1

    @property
    def keys_at_cuts(self) -> bool:
        """Return whether each shot begins with a key frame."""
        options = {**self.own, **self.options}
        return self.encoder.keys_at_cuts and not any(options.get(name) == value for name, value in _NO_KEYS_AT_CUTS)

    def notes(self) -> tuple[str, ...]:
        """Return notes for the user on every encode of the clip, and on losses besides quality, such as chroma."""
        before, after = _chroma(self.facts.format), self.chroma
        own, steps = CHROMA_STEPS[before], CHROMA_STEPS[after]
        if own is None or (steps is not None and all(step <= least for step, least in zip(steps, own, strict=True))):
            return self.facts.notes
        lost = f"samples of chroma are left out: the encode is {':'.join(after)}, the source {':'.join(before)}"
        return (*self.facts.notes, lost)

    def set_up(self, context: Any, place: int, run: tuple[int, str] | None = None) -> None:
        """Prepare the context of an encoder for a setting, before it is opened.

        `run` is the number of the pass and the file of its statistics, if there are two passes.
        """
        facts = self.facts
        context.width, context.height = self.size or (facts.width, facts.height)
        context.pix_fmt = self.format
        context.time_base, context.framerate = facts.time_base, facts.rate
        context.sample_aspect_ratio = facts.aspect
        context.thread_type = "AUTO"  # as FFmpeg's command has it; PyAV's own default makes x264 cut each frame into slices
        context.color_primaries, context.color_trc, context.colorspace, context.color_range = facts.colours
        passes = {} if run is None else {"pass": str(run[0]), "stats": run[1]}
        context.options = self.options_of(place, {**self.encoder.quiet, **passes})
        if self.parameter.is_bitrate:
            context.bit_rate = round(self.parameter.values[place] * 1000)
        elif self.encoder.is_nvenc:
            context.bit_rate = 0  # NVENC's default bit rate would limit the quality

    def options_of(self, place: int, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the options of a setting, by FFmpeg's names; a bit rate is not among them.

        `more` are further options of the encoder alone, unless the recipe sets them itself.
        """
        options = dict(self.options)
        if not self.parameter.is_bitrate:
            options[self.parameter.name] = self.parameter.text(place)
            if self.encoder.name == "libvpx-vp9":
                options["b"] = "0"
            elif self.encoder.is_nvenc:
                options["rc"] = "constqp" if self.parameter.name == "qp" else "vbr"
        own = {**(more or {}), **self.own_options()}
        if self.encoder.own is not None and own:
            options[self.encoder.own] = ":".join(name + "=" + _SPECIAL.sub(r"\\\g<0>", value) for name, value in own.items())
        return options

    def own_options(self) -> dict[str, str]:
        """Return the options of the encoder alone, with the HDR metadata of the clip."""
        own = self.encoder.own is not None  # libvpx has none for metadata, and a stream of VP9 has no place for it
        return {**(_mastering_options(self.encoder.name, self.facts.mastering) if own else {}), **self.own}


def split_options(texts: Sequence[str] | str) -> dict[str, str]:
    """Return the options of texts of the form ``NAME=VALUE:NAME=VALUE``. Raises OptionError."""
    options = {}
    for text in listed(texts):
        for part in text.split(":"):
            name, equals, value = part.partition("=")
            if not equals or not name.strip() or not value.strip():
                raise OptionError(f"`options` {part!r} is not of the form NAME=VALUE; several have colons between them")
            options[name.strip()] = value.strip()
    return options


def make_recipe(spec: EncoderSpec, facts: VideoFacts, size: tuple[int, int] | None = None) -> Recipe:
    """Return the recipe for a clip, or for its rendition of a width and a height, with each option in its place.

    Raises OptionError if the encoder refuses anything.
    """
    encoder, parameter, options = encoder_of(spec.name), values_of(spec), split_options(spec.options)
    for name, value in options.items():
        refused = ""
        if name in (*encoder.parameters, *_RATE_CONTROL):
            refused = f"the search sets the quality itself, by {parameter.name}; `parameter` has others"
        elif name in _FRAME_RATE:
            refused = "the frame rate is that of the clip, by which the encoder spends its bits; leave it out"
        elif name == "flags" and _OF_PASSES.search(value):  # opening the encoder would write a file of statistics
            refused = "the search makes the passes itself, with `two_pass`; give flags by name, without pass1 and pass2"
        elif name in (encoder.own, "x264opts"):  # libx264 has two names for it
            refused = "give the options in it directly, NAME=VALUE with colons between them"
        if refused:
            raise OptionError(f"`options` {name}: {refused}")

    if spec.two_pass and not (encoder.passes and parameter.is_bitrate):
        raise OptionError("`two_pass` is for bit rates of libx264 and libx265: `parameter=bitrate` chooses them")
    layout = _pixel_format(encoder, facts, spec.bits)
    recipe = Recipe(encoder, parameter, facts, layout, options, two_passes=spec.two_pass, size=size)

    unknown = _try(recipe)
    if unknown and encoder.own is None:
        raise OptionError(f"`options`: {encoder.name} has no option {', '.join(unknown)}")
    if unknown:
        rest = {name: value for name, value in options.items() if name not in unknown}
        recipe = replace(recipe, options=rest, own={name: options[name] for name in unknown})
        _try(recipe)
    return recipe


def _try(recipe: Recipe) -> list[str]:
    """Open the encoder once; return the options that are unknown to FFmpeg. Raises OptionError if the encoder refuses."""
    import av

    context: Any = av.CodecContext.create(recipe.encoder.name, "w")
    recipe.set_up(context, len(recipe.parameter.values) // 2)
    width, height, clock = context.width, context.height, (context.time_base, context.framerate)
    ffmpeg_log.listen()
    try:
        with ordinary_priority(), ffmpeg_log.hearing() as messages:
            context.open()
    except (av.FFmpegError, OSError, ValueError) as error:
        message = next((text.strip() for level, _, text in reversed(messages) if level <= av.logging.WARNING), str(error))
        if not (recipe.options or recipe.own):
            raise OptionError(refusal(recipe, width, height, message)) from None
        _try(replace(recipe, options={}, own={}))  # raises the error of the size, if options are not to blame
        raise OptionError(f"`options`: {recipe.encoder.name} says: {message}") from None
    finally:
        ffmpeg_log.leave()

    if (context.width, context.height, context.pix_fmt) != (width, height, recipe.format):
        raise OptionError("`options`: the size and the pixel format are those of the clip; for other sizes use `vkssim ladder`")
    if (context.time_base, context.framerate) != clock:
        raise OptionError("`options` time_base: the times of the frames are those of the clip; leave it out")
    if context.flags & av.codec.context.Flags.global_header:
        raise OptionError("`options` flags: each file that is written has headers where it needs them; leave global_header out")
    for _, _, text in messages:
        if text.startswith(_COMPLAINTS):
            raise OptionError(f"`options`: {recipe.encoder.name} says: {text.strip()}")
    return list(context.options)


def refusal(recipe: Recipe, width: int, height: int, message: str) -> str:
    """Return the message of an encoder that cannot be opened for frames of a size, with FFmpeg's message."""
    name = recipe.encoder.name
    if recipe.encoder.is_nvenc and any(text in message for text in _NO_NVENC):
        cpu_encoders = ", ".join(encoder.name for encoder in ENCODERS.values() if not encoder.is_nvenc)
        return (
            f"{name} needs an NVIDIA GPU that can encode, and NVIDIA's driver; FFmpeg says: {message}. `vkssim doctor` says"
            f" what this machine has. The encoders that need no GPU are {cpu_encoders}"
        )
    rows, columns = CHROMA_STEPS[recipe.chroma] or (1, 1)
    if name not in _ANY_SIZE and (width % columns or height % rows):
        message = (
            f"its width must be a multiple of {columns} and its height of {rows}, because so many samples share one of chroma."
            f" Crop the clip first, or choose {' or '.join(_ANY_SIZE)}"
        )
    return f"{name} cannot encode {width}x{height} {recipe.format}: {message}"


@contextmanager
def ordinary_priority() -> Iterator[None]:
    """Give the thread its scheduling back: as root, SVT-AV1 takes the highest priority in real time when it is opened."""
    os.environ.setdefault("SVT_LOG", "1")  # it prints errors alone
    before = (os.sched_getscheduler(0), os.sched_getparam(0)) if hasattr(os, "sched_getscheduler") else None
    try:
        yield
    finally:
        if before is not None and os.sched_getscheduler(0) != before[0]:
            with suppress(OSError):
                os.sched_setscheduler(0, *before)


def _chroma(name: str) -> str:
    """Return the chroma format of a pixel format in Y'CbCr or grey, such as ``"420"``."""
    import av

    layout = av.VideoFormat(name)
    if len(layout.components) == 1:
        return "400"
    steps = _SIDE // layout.chroma_height(_SIDE), _SIDE // layout.chroma_width(_SIDE)
    return next(chroma for chroma, own in CHROMA_STEPS.items() if own == steps)


def _pixel_format(encoder: Encoder, facts: VideoFacts, bits: int | None) -> str:
    """Return the format to encode: that of the source if the encoder has it, else the nearest one. Raises OptionError."""
    import av

    # NVENC takes deeper samples in the upper bits, which is not how `plane_of` reads them, and has a format without components.
    most = 8 if encoder.is_nvenc else 16
    formats = [av.VideoFormat(layout.name) for layout in av.Codec(encoder.name, "w").video_formats or []]
    supported = [layout for layout in formats if not layout.is_rgb and layout.components and layout.components[0].bits <= most]
    depth = facts.bits if bits is None else bits
    if depth == facts.bits and facts.format in (layout.name for layout in supported):
        return facts.format
    candidates = [layout for layout in supported if layout.components[0].bits == depth and len(layout.components) in (1, 3)]
    for chroma in dict.fromkeys((_chroma(facts.format), "420", "422", "444")):
        for layout in candidates:
            if _chroma(layout.name) == chroma and not layout.name.startswith(("nv", "yuvj")):
                return layout.name
    depths = sorted({layout.components[0].bits for layout in supported})
    raise OptionError(f"{encoder.name} encodes {', '.join(map(str, depths))} bits, not {depth}: choose one with `bits`")


def _mastering_options(name: str, mastering: Mastering) -> dict[str, str]:
    """Return the HDR metadata as options of an encoder that has its own options."""
    options = {}
    if mastering.display is not None:
        red, green, blue, white, (low, high) = mastering.display
        points = (("G", green), ("B", blue), ("R", red), ("WP", white))
        if name == "libsvtav1":
            text = "".join(f"{point}({x:.5f},{y:.5f})" for point, (x, y) in points)
            options["mastering-display"] = f"{text}L({high:.4f},{low:.4f})"
        else:
            text = "".join(f"{point}({round(x * 50000)},{round(y * 50000)})" for point, (x, y) in points)
            key = "mastering-display" if name == "libx264" else "master-display"
            options[key] = f"{text}L({round(high / _SDR_LEAST)},{round(low / _SDR_LEAST)})"
    if mastering.light is not None:
        key = {"libx264": "cll", "libx265": "max-cll", "libsvtav1": "content-light"}.get(name, "")
        options[key] = f"{mastering.light[0]},{mastering.light[1]}"
    return options
