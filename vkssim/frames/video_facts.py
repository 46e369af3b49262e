"""The facts about the video of a clip that an encode of it takes over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import InputError
from ..utils.av_frames import planar_name
from .decode.container import ContainerFile
from .decode.description import side_data
from .picture.transforms import Crop, Orientation
from .source import FrameSource

_INTERLACED = "the source is interlaced; it was encoded as frames; `deinterlace` makes progressive pictures of them"
_USUAL_RATE = Fraction(25)  # frames a second, if the clip has no usable rate
_MAX_RATE = 240  # SVT-AV1 takes no higher one
_UNSTATED = 2, 2, 2  # FFmpeg's numbers of primaries, transfer and matrix that a clip does not state
_RANGES = {"limited": 1, "full": 2}  # FFmpeg's numbers


@dataclass(frozen=True)
class Mastering:
    """The HDR metadata of SMPTE ST 2086 and CTA-861.3; None for a part that the clip does not have, or not completely."""

    display: tuple[tuple[float, float], ...] | None = None
    """The chromaticities (x, y) of red, green, blue and the white point, then the least and the largest luminance in cd/m²."""
    light: tuple[int, int] | None = None
    """MaxCLL and MaxFALL in cd/m²."""


@dataclass(frozen=True)
class VideoFacts:
    """The facts about the video of a clip, its pictures changed as `SourcePictures` says."""

    width: int
    """The width in samples of the frames that are read: after cropping and turning."""
    height: int
    """Their height in samples."""
    format: str
    """FFmpeg's name of the pixel format of the frames that are read: Y'CbCr or grey."""
    bits: int
    """The depth of the samples."""
    rate: Fraction
    """The frame rate, in frames a second; 25 if the clip states none that an encoder could have."""
    time_base: Fraction
    """The unit of presentation times, in seconds."""
    aspect: Fraction
    """The displayed width of a sample divided by its height."""
    colours: tuple[int, int, int, int]
    """FFmpeg's numbers of the primaries, the transfer, the matrix and the range."""
    mastering: Mastering
    coded_format: str
    """FFmpeg's name of the pixel format of the frames in the file."""
    crop: tuple[int, int, int, int] | None = None
    """The visible rectangle that the container states, in the turned picture: width, height, left and top in samples."""
    subtitles: tuple[str, ...] = ()
    """FFmpeg's names of the codecs of the subtitles; "" for an unknown one."""
    attachments: bool = False
    """Whether the file has attachments, such as the fonts of subtitles."""
    video: int = 0
    """The number of the stream among those of video: the one that `score_files` scores."""
    filters: tuple[str, ...] = ()
    """The filters of FFmpeg that change the pictures as `SourcePictures` says."""
    dolby_vision: int | None = None
    """The profile of Dolby Vision whose colours are defined by metadata, which encodes do not have; None for any other clip."""
    notes: tuple[str, ...] = ()
    """Notes for the user on every encode of the clip."""


def format_of(file: FrameSource, source: FrameSource) -> tuple[str, bool]:
    """Return the pixel format of the frames of `source`, made from `file`, and whether they are the decoder's own frames."""
    name = planar_name(source.info.chroma, source.info.bits)
    if source is not file or not isinstance(file, ContainerFile):
        return name, False
    coded = str(file.first_frame.format.name)
    as_decoded = coded in (name, name.replace("yuv", "yuvj"))
    return coded if as_decoded else name, as_decoded


def video_facts(file: FrameSource, source: FrameSource, filters: tuple[str, ...]) -> VideoFacts:
    """Return the facts about a clip that is just open. `file` has its frames as they are coded, `source` as they are shown.

    Raises InputError if the clip is not in Y'CbCr or grey.
    """
    from av.video.format import names  # type: ignore[attr-defined] # PyAV's types lack it

    info, (name, _) = source.info, format_of(file, source)
    interlaced = info.field_order not in (None, "progressive")
    rate = _rate(info.fps)
    facts = VideoFacts(
        width=info.width,
        height=info.height,
        format=name,
        bits=info.bits,
        rate=rate,
        time_base=1 / rate,
        aspect=info.sample_aspect or Fraction(1),
        colours=(*_UNSTATED, _RANGES.get(info.range or "", 0)),
        mastering=Mastering(),
        coded_format=name,
        filters=filters,
        notes=(*info.notes, *info.warnings, *([_INTERLACED] if interlaced else [])),
    )
    if not isinstance(file, ContainerFile):  # Y4M
        return facts

    first, stream = file.first_frame, file.av_stream
    streams = stream.container.streams
    if file.is_rgb or name not in names:  # FFmpeg lacks some formats of few chroma samples and many bits
        raise InputError(f"{file.info.path} has frames of {first.format.name}; a search encodes Y'CbCr or grey")
    if file.aperture is not None:
        file.aperture.check_aligned(file.info)
    codecs = [subtitle.codec_context for subtitle in streams.subtitles]

    return replace(
        facts,
        rate=_rate(stream.guessed_rate, stream.average_rate),
        time_base=stream.time_base,
        colours=(first.color_primaries, first.color_trc, first.colorspace, facts.colours[3]),
        mastering=_mastering(first),
        coded_format=first.format.name,
        crop=None if file.aperture is None else _turned_crop(file.aperture, file.orientation, first.width, first.height),
        subtitles=tuple("" if codec is None else codec.codec.canonical_name for codec in codecs),
        attachments=bool(streams.attachments),
        video=list(streams.video).index(stream),
        dolby_vision=file.dolby_vision,
    )


def _turned_crop(crop: Crop, turned: Orientation | None, width: int, height: int) -> tuple[int, int, int, int]:
    """Return the place of a rectangle of a picture after the picture is turned."""
    if turned is None:
        return crop.width, crop.height, crop.left, crop.top
    visible = np.zeros((height, width), bool)
    visible[crop.top : crop.top + crop.height, crop.left : crop.left + crop.width] = True
    columns, rows = (np.flatnonzero(turned((visible,))[0].any(axis)) for axis in (0, 1))
    return len(columns), len(rows), int(columns[0]), int(rows[0])


def _rate(*stated: Fraction | None) -> Fraction:
    """Return the frame rate for encoders; 25 if a file states only the ticks of its times, such as 1,000."""
    positive = (Fraction(rate.numerator, rate.denominator) for rate in stated if rate and rate.denominator and rate > 0)
    return next((rate for rate in positive if rate <= _MAX_RATE), _USUAL_RATE)


def _mastering(frame: Any) -> Mastering:
    """Return the HDR metadata of a frame, from FFmpeg's structs AVMasteringDisplayMetadata and AVContentLightMetadata."""
    structs = [side_data(frame, name) for name in ("MASTERING_DISPLAY_METADATA", "CONTENT_LIGHT_LEVEL")]
    # as integers; the last bytes of a struct may be padding
    display, light = (None if data is None else np.frombuffer(data[: len(data) // 4 * 4], np.int32) for data in structs)
    mastering = None
    if display is not None and display[20] and display[21]:  # whether it has the chromaticities, and the luminance
        ratios = [float(top) / float(bottom or 1) for top, bottom in display[:20].reshape(10, 2)]
        mastering = tuple(zip(ratios[::2], ratios[1::2], strict=True))
    return Mastering(mastering, None if light is None else (int(light[0]), int(light[1])))
