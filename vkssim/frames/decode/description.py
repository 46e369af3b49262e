"""The description of a clip, from its container, its stream, and its first frame, which shows the output of the decoder."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...storage.containers import listed_streams
from ...utils import ffmpeg_log
from ...utils.limits import LARGEST_NUMBER
from ..info import VideoInfo, check_size
from ..pixels import YCBCR_BITS, PixelFormat, pixel_format, stated_colours
from ..transforms import Crop, Orientation, orientation
from .clip_decoder import FAILURES, ClipDecoder

_TICKS = 1_000_000  # ticks of a second, in which FFmpeg gives the duration of a container


@dataclass(frozen=True)
class ClipDescription:
    """The facts about a clip that are known before it is read, with FFmpeg's names. They stay true if it is reopened."""

    info: VideoInfo
    """The facts about its frames, without notes of a conversion."""
    expected: int | None
    """The number of frames that the container states, otherwise by its duration; None if neither is known."""
    container: str
    file_bytes: int | None
    start_time: int
    """The first time of the container, in microseconds."""
    duration: int | None
    """The duration of the container, in microseconds."""
    stream: int
    seconds: float | None
    """The duration of the stream; None if it is not known, and for a picture."""
    time_base: Fraction
    """The duration of a tick of the stream, in seconds."""
    codec: Any
    reorders: bool
    """Whether the decoder may reorder frames."""
    format_name: str
    pixels: PixelFormat
    is_rgb: bool
    """Whether all frames are R'G'B', or grey among them."""
    size: tuple[int, int]
    colours: dict[str, str | None]
    interlaced: bool
    aperture: Crop | None
    orientation: Orientation | None
    dolby_vision: int | None
    """A profile of Dolby Vision whose colours are defined by metadata alone; None for other streams."""
    has_grain: bool
    """Whether the stream describes film grain, which decoders synthesise."""


def describe(clip: ClipDecoder, first: Any) -> ClipDescription:
    """Return the description of a clip by its first frame. Raises InputError if the clip cannot be compared."""
    stream, container = clip.stream, clip.container
    pixels = pixel_format(clip.path, first.format.name)
    is_rgb = pixels.rgb or (clip.sequence is not None and pixels.chroma == "400" and _is_mixed(clip.sequence.files))
    check_size(first.width, first.height, clip.path)
    is_picture = "image2" in container.format.name or container.format.name.endswith("_pipe")
    fps = None if is_picture else _rate(stream)
    frames = expected = _claimed_frames(clip, first)
    if frames is None and fps is not None and container.duration:
        expected = min(round(container.duration / _TICKS * fps), LARGEST_NUMBER)
    matrix = side_data(first, "DISPLAYMATRIX")
    turned = None if matrix is None else orientation(matrix)
    colours = stated_colours(first)
    stated = _stream_text(clip)
    dolby_vision = _dolby_vision(stated)
    has_grain = _has_grain(clip)
    info = VideoInfo(
        clip.path,
        stream.codec_context.name,
        first.width,
        first.height,
        YCBCR_BITS if is_rgb else pixels.bits,
        frames,
        fps,
        "444" if is_rgb else pixels.chroma,
        None if is_rgb else colours["matrix"],
        None if is_rgb else colours["range"],
        _notes(clip, first, turned, has_grain),
        transfer=colours["transfer"],
        field_order=None if is_picture or is_rgb else _field_order(first),
        sample_aspect=stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio or None,
        is_grey=pixels.chroma == "400" and not is_rgb,
        warnings=() if dolby_vision is None else (_WITHOUT_METADATA.format(clip.path, dolby_vision),),
    )
    return ClipDescription(
        info,
        expected,
        container.format.name,
        _file_bytes(clip),
        container.start_time or 0,
        container.duration,
        stream.index,
        round(float(stream.duration * stream.time_base), 6) if stream.duration and fps else None,
        stream.time_base,
        clip.codec,
        bool(stream.codec_context.has_b_frames),
        first.format.name,
        pixels,
        is_rgb,
        (first.width, first.height),
        colours,
        first.interlaced_frame,
        _aperture(stated, first),
        turned,
        dolby_vision,
        has_grain,
    )


_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_KIND = slice(24, 26)  # the depth and the kind of colours in the header


def _is_mixed(files: Sequence[str]) -> bool:
    """Return whether PNG pictures differ in depth or kind: programs may write a black picture as grey or with a palette."""
    kinds = set()
    for path in files:
        with suppress(OSError), open(path, "rb", buffering=0) as file:
            head = file.read(_PNG_KIND.stop)
            if head.startswith(_PNG):
                kinds.add(head[_PNG_KIND])
    return len(kinds) > 1


def _notes(clip: ClipDecoder, first: Any, turned: Orientation | None, has_grain: bool) -> tuple[str, ...]:
    streams = clip.container.streams.video
    notes = []
    if len(streams) > 1:
        notes.append(f"stream {clip.stream.index} was chosen from {listed_streams(streams)}")
    if any(component.is_alpha for component in first.format.components):
        notes.append("its alpha is left out")
    if clip.decoder.begin.packets:
        notes.append(f"packets skipped at the start, because they cannot be decoded: {clip.decoder.begin.packets}")
    if turned is None and first.rotation:
        notes.append(f"its rotation by {first.rotation} degrees was not applied, because it is not a multiple of 90")
    if has_grain and clip.adds_grain:
        notes.append("its film grain, which the decoder synthesises, is in the scores")
    elif has_grain:
        notes.append("decoded without its film grain")
    return tuple(notes)


def _file_bytes(clip: ClipDecoder) -> int | None:
    if clip.sequence is None:
        return max(0, clip.container.size or 0) or None
    with suppress(OSError):
        return sum(map(os.path.getsize, clip.sequence.files)) or None
    return None


def _claimed_frames(clip: ClipDecoder, first: Any) -> int | None:
    if clip.sequence is not None:
        return len(clip.sequence.files)
    if first.interlaced_frame and clip.codec.name == "h264":  # the count may be of fields
        return None
    return min(clip.stream.frames, LARGEST_NUMBER) or None


_STREAM = re.compile(r"^  Stream #0:(\d+)", re.MULTILINE)


def _stream_text(clip: ClipDecoder) -> str:
    """Return FFmpeg's description of the stream, which has side data of the stream that PyAV does not pass on.

    FFmpeg logs the description, so it is there while `ffmpeg_log` listens. It does so here, because a decoder of the CPU
    is open when a clip is described.
    """
    _, *parts = _STREAM.split(clip.container.dumps_format())
    return dict(zip(parts[::2], parts[1::2], strict=True)).get(str(clip.stream.index), "")


_CROPPING = re.compile(r"^ +Frame Cropping: (\d+)/(\d+)/(\d+)/(\d+)$", re.MULTILINE)


def _aperture(stated: str, first: Any) -> Crop | None:
    """Return the rectangle that the container states as visible; None if all of the frame is visible.

    The text of a stream has it (`clap` of MP4 and MOV, PixelCrop of Matroska) as left/right/top/bottom.
    """
    cropping = _CROPPING.search(stated)
    if cropping is None:
        return None
    left, right, top, bottom = map(int, cropping.groups())
    width, height = first.width - left - right, first.height - top - bottom
    if (width, height) == (first.width, first.height) or min(width, height) <= 0:
        return None
    return Crop(width, height, left, top, ", as its container says", from_clip=True)


_DOLBY_VISION = re.compile(r"^ +DOVI configuration record: .*\bprofile: (\d+), .*\bcompatibility id: (\d+)", re.MULTILINE)
_WITH_OWN_COLOURS, _MAY_HAVE_OWN_COLOURS = 5, (10, 20)  # profiles: always; if no other system can show the samples, id 0
_WITHOUT_METADATA = (
    "{} is Dolby Vision of profile {}: its colours are defined by metadata, which vkssim does not apply. Its samples are scored"
    " as they are, and scores against a clip of another kind mean nothing"
)


def _dolby_vision(stated: str) -> int | None:
    """Return the profile of a stream of Dolby Vision whose colours are defined by metadata alone; None for other streams."""
    record = _DOLBY_VISION.search(stated)
    if record is None:
        return None
    profile, compatibility = map(int, record.groups())
    own = profile == _WITH_OWN_COLOURS or (profile in _MAY_HAVE_OWN_COLOURS and not compatibility)
    return profile if own else None


_STATES_GRAIN = re.compile(r"\bfilm_grain_params_present\b")
_HAS_GRAIN = re.compile(rf"{_STATES_GRAIN.pattern}.*= 1$")


def _has_grain(clip: ClipDecoder) -> bool:
    """Return whether the sequence header of AV1 announces film grain. A filter of FFmpeg logs each element of the header.

    The header is in the description of the stream, or in the first packet alone, as in AVIF.
    """
    from av.bitstream import BitStreamFilterContext

    if clip.codec.canonical_name != "av1":
        return False
    with ffmpeg_log.hearing() as messages:
        headers = BitStreamFilterContext("trace_headers", clip.stream)
        if not any(_STATES_GRAIN.search(text) for _, _, text in messages):
            with suppress(*FAILURES), clip.open(packets_only=True) as container:
                headers.filter(next(container.demux(container.streams[clip.stream.index])))
    return any(_HAS_GRAIN.search(text.strip()) for _, _, text in messages)


def _rate(stream: Any) -> Fraction | None:
    """Return frames per second; None if the rate is not known, for which PyAV has None, or 0/0 from version 19 on."""
    rate = stream.average_rate or stream.guessed_rate
    return Fraction(rate.numerator, rate.denominator) if rate is not None and rate.denominator and rate.numerator else None


def _field_order(frame: Any) -> str:
    """Return the order of fields as in `VideoInfo`. PyAV does not report it, but FFmpeg's filter `select` does."""
    if not frame.interlaced_frame:
        return "progressive"
    return "top field first" if _passes(frame, "select", "eq(interlace_type,1)") else "bottom field first"


_MAX_KINDS = 64  # of side data: FFmpeg 8 has 33


def side_data(frame: Any, name: str) -> bytes | None:
    """Return side data of an av.VideoFrame by PyAV's name of its kind, as FFmpeg's struct; None if the frame has none.

    No other kind may be read with PyAV. It frees the metadata of each entry that it reads, such as the name of an ICC profile,
    and FFmpeg frees that once more, which ends the process. Nor does it read any if the frame has a kind without a name in
    PyAV. So a filter of FFmpeg deletes all other kinds from a copy of the frame, which shares its samples.
    """
    from av.sidedata.sidedata import Type

    kind = Type[name]
    if not _passes(frame, "sidedata", f"mode=select:type={kind.value}"):
        return None
    unread = set(range(_MAX_KINDS)) - {kind.value}
    deleting = [("sidedata", f"mode=delete:type={number}") for number in unread]
    return bytes(_filtered(frame, *deleting).side_data[kind])


def _passes(frame: Any, name: str, options: str) -> bool:
    from av import BlockingIOError

    try:
        _filtered(frame, (name, options))
    except BlockingIOError:  # the filter has no frame to pull
        return False
    return True


def _filtered(frame: Any, *filters: tuple[str, str]) -> Any:
    """Return a frame after filters of FFmpeg, each with its options. Raises av.BlockingIOError if they pass none on."""
    from av.filter import Graph

    graph = Graph()
    graph.threads = 1  # otherwise FFmpeg starts a thread for each core, which takes longer than the filters
    source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1, 25))
    graph.link_nodes(source, *(graph.add(*named) for named in filters), graph.add("buffersink")).configure()
    source.push(frame)
    return graph.pull()
