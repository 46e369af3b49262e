"""Describe a clip by its container, its stream, and the first frame: only that one tells what comes out of a decoder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ...utils.limits import LARGEST_NUMBER
from ..info import VideoInfo
from ..picture.colour import MATRICES, RANGES, TRANSFERS, YCBCR_BITS
from ..picture.crop import Crop
from ..picture.orientation import Orientation, by_degrees, orientation
from ..picture.pixels import PixelFormat, pixel_format
from .boxes import Track, stated_crop, tiff_pages
from .clip_decoder import ClipDecoder
from .demuxer import is_cover

_TICKS = 1_000_000  # ticks of a second, in which FFmpeg gives the duration of a container


@dataclass(frozen=True)
class ClipDescription:
    """Hold what is known of a clip before it is read, by FFmpeg's names. It stays true when the clip is opened anew.

    `time_base` is a tick of the stream in seconds, `stream_duration` is in ticks. `start_time` and `duration` are those of the
    container, in microseconds. `reorders` is whether the decoder may reorder frames. `pixels` and `size`, (width, height), are
    those of the first frame. `info` has no notes of a conversion yet.
    """

    info: VideoInfo
    container: str
    container_bytes: int
    start_time: int
    duration: int | None
    stream: int
    stream_duration: int | None
    time_base: Fraction
    codec: Any
    reorders: bool
    format_name: str
    pixels: PixelFormat
    size: tuple[int, int]
    colours: dict[str, str | None]
    interlaced: bool
    aperture: Crop | None
    orientation: Orientation | None

    @property
    def expected_frames(self) -> int | None:
        """Return the number of frames as the container says, else by its duration; None where neither is known."""
        info = self.info
        if info.frames is not None or info.fps is None or not self.duration:
            return info.frames
        seconds: float = self.duration / _TICKS
        return min(round(seconds * info.fps), LARGEST_NUMBER)

    @property
    def seconds(self) -> float | None:
        """Return the duration of the stream; None where it is not known, and for a picture."""
        if not self.stream_duration or not self.info.fps:
            return None
        return round(float(self.stream_duration * self.time_base), 6)


def describe(clip: ClipDecoder, first: Any) -> ClipDescription:
    """Return what is known of a clip that was begun, by its first frame. Raises InputError where it cannot be compared."""
    stream, container, size = clip.stream, clip.container, (first.width, first.height)
    pixels = pixel_format(clip.path, first.format.name)
    turned, note = _orientation(first)
    info = _info(clip, first, pixels)
    return ClipDescription(
        replace(info, notes=(*info.notes, *note)),
        container.format.name,
        max(0, container.size or 0) if clip.sequence is None else 0,
        container.start_time or 0,
        container.duration,
        stream.index,
        stream.duration,
        stream.time_base,
        clip.codec,
        bool(stream.codec_context.has_b_frames),
        first.format.name,
        pixels,
        size,
        stated_colours(first),
        first.interlaced_frame,
        stated_crop(clip.path, *size, _track(clip)),
        turned,
    )


def _info(clip: ClipDecoder, first: Any, pixels: PixelFormat) -> VideoInfo:
    clip.check_size(first.width, first.height)
    stream, name = clip.stream, clip.container.format.name
    is_picture = "image2" in name or name.endswith("_pipe")
    notes = clip.notes
    if any(part.is_alpha for part in first.format.components):
        notes += ("its alpha is left out",)
    pages = _pages(clip) if stream.codec_context.name == "tiff" else 1
    if pages > 1:
        notes += (f"only the first of its {pages} pages is read",)
    if clip.decoder.begin.packets:
        notes += (f"begins with what cannot be decoded and was passed over, packets: {clip.decoder.begin.packets}",)
    colours = stated_colours(first)
    return VideoInfo(
        clip.path,
        stream.codec_context.name,
        first.width,
        first.height,
        YCBCR_BITS if pixels.rgb else pixels.bits,
        _claimed_frames(clip, first),
        None if is_picture else _rate(stream),
        pixels.chroma,
        None if pixels.rgb else colours["matrix"],
        None if pixels.rgb else colours["range"],
        notes,
        transfer=colours["transfer"],
        field_order=None if is_picture or pixels.rgb else field_order(first),
        sample_aspect=stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio or None,
    )


def _pages(clip: ClipDecoder) -> int:
    """Return the number of pages of a picture in TIFF, of a sequence that of the first picture."""
    return tiff_pages(clip.path if clip.sequence is None else clip.sequence.files[0])


def _claimed_frames(clip: ClipDecoder, first: Any) -> int | None:
    if clip.sequence is not None:
        return clip.sequence.frames
    if first.interlaced_frame and clip.codec.name == "h264":  # the count may be of fields
        return None
    return min(clip.stream.frames, LARGEST_NUMBER) or None


def _track(clip: ClipDecoder) -> Track:
    videos = [stream.index for stream in clip.container.streams.video if not is_cover(stream)]
    index = clip.stream.index
    return Track(clip.stream.id or None, videos.index(index) if index in videos else 0)


def _orientation(first: Any) -> tuple[Orientation | None, tuple[str, ...]]:
    """Return how a frame is to be shown, and a note where it is turned in a way that is not done."""
    try:
        matrix = side_data(first, "DISPLAYMATRIX")
    except ValueError:
        turned = by_degrees(first.rotation)
    else:
        turned = None if matrix is None else orientation(matrix)
    if turned is None and first.rotation:
        return None, (f"to be shown turned by {first.rotation} degrees, which is no multiple of 90 and was not done",)
    return turned, ()


def stated_colours(frame: Any) -> dict[str, str | None]:
    """Return what a frame states of its colours, by their names here; None for what it does not."""
    return {
        "range": "full" if frame.format.name.startswith("yuvj") else RANGES.get(frame.color_range),
        "matrix": MATRICES.get(frame.colorspace),
        "transfer": TRANSFERS.get(frame.color_trc),
    }


def _rate(stream: Any) -> Fraction | None:
    """Return frames a second, where that is known: what is not is None, or from PyAV 19 on 0/0."""
    rate = stream.average_rate or stream.guessed_rate
    return Fraction(rate.numerator, rate.denominator) if rate is not None and rate.denominator and rate.numerator else None


_ORDERS = {1: "top field first", 2: "bottom field first"}
"""The orders by the constants of FFmpeg's filter `select`."""


def field_order(frame: Any) -> str:
    """Return one of `FIELD_ORDERS`. PyAV does not tell the order of fields; a filter of FFmpeg does."""
    if not frame.interlaced_frame:
        return "progressive"
    return next((order for number, order in _ORDERS.items() if _passes(frame, number)), "interlaced")


def _passes(frame: Any, interlace_type: int) -> bool:
    from av import FFmpegError
    from av.filter import Graph

    graph = Graph()
    source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1, 25))
    select = graph.add("select", f"eq(interlace_type,{interlace_type})")
    source.link_to(select)
    select.link_to(graph.add("buffersink"))
    graph.configure()
    source.push(frame)
    try:
        graph.pull()
    except FFmpegError:  # the filter has no frame to pull
        return False
    return True


def side_data(frame: Any, name: str) -> bytes | None:
    """Return side data of a frame of PyAV, by PyAV's name for its kind, as FFmpeg's struct; None where the frame has none.

    Raises ValueError where the frame also has side data of a kind that PyAV does not know, such as the EXIF data of MJPEG: then
    PyAV gives nothing at all.
    """
    data = frame.side_data.get(name)
    return None if data is None else bytes(data)
