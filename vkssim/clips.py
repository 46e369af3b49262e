"""Read clips without scoring them: the facts about a clip, its frames, and which frames of two clips are compared.

`vkssim.search` and `vkssim.ladder` read clips by these three functions alone, and so exactly as `score_files` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from .errors import InputError, RangeError
from .frames.decode.clip_decoder import UnknownFormatError
from .frames.decode.container import ContainerFile
from .frames.decode.description import side_data
from .frames.info import ClipFacts as ClipFacts
from .frames.open import can_reopen, check_reopens, open_file, oriented
from .frames.options import PictureOptions as PictureOptions
from .frames.options import RawDescription as RawDescription
from .frames.options import Selection as Selection
from .frames.options import SourcePictures as SourcePictures
from .frames.pairing.preprocessing import match_pair, own_crop
from .frames.pairing.schedule import Schedule, schedule_pairs
from .frames.source import FrameSource, ReadOutcome, SeekIndex, changed_error
from .frames.source_pictures import processed
from .frames.transforms import Crop, Orientation
from .utils.av_frames import luma_checksum, new_picture, planar_name
from .utils.thread_pool import Closable, closing_on_error

_INTERLACED = "the source is interlaced; it was encoded as frames; `deinterlace` makes progressive pictures of them"
_USUAL_RATE = Fraction(25)  # frames a second, if the clip has no usable rate
_MAX_RATE = 240  # SVT-AV1 takes no higher one
_UNSTATED = 2, 2, 2  # FFmpeg's numbers of primaries, transfer and matrix that a clip does not state
_RANGES = {"limited": 1, "full": 2}  # FFmpeg's numbers

UNCHANGED = SourcePictures()
"""The pictures of a clip as `score_files` compares them: cropped and turned as the clip says, and not changed otherwise."""


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
    fps: Fraction | None = None
    """The frame rate that a report has, for metrics; None if it is not known or varies."""


class Clip:
    """A clip that can be read any number of times, as `describe_clip` returns it."""

    path: str
    pictures: SourcePictures
    facts: VideoFacts

    def __init__(self, path: str, pictures: SourcePictures) -> None:
        self.path = path
        self.pictures = pictures
        with _open(path) as file:
            self._state = file.opened
            self._crop = own_crop(pictures.crop, lambda: oriented(file))
        with self.open() as opened:
            self.facts = _video_facts(opened.file, opened.source, opened.filters)

    def open(self) -> _OpenClip:
        """Open the clip. Raises InputError, also if the file has changed."""
        file = _open(self.path)
        with closing_on_error(file):
            if file.opened != self._state:
                raise changed_error(self.path)
        return _OpenClip(file, *processed(file, self.pictures, self._crop))

    @cached_property
    def seek_index(self) -> SeekIndex | None:
        """Return the positions from which the clip can be read; None if only reading from the start is surely right."""
        with self.open() as opened:
            return opened.source.seek_index()


def describe_clip(path: str | os.PathLike[str], *, pictures: SourcePictures = UNCHANGED) -> Clip:
    """Look at a clip: its size, pixel format, frame rate, colours, and everything else that an encode of it takes over.

    Parameters
    ----------
    path : str or path
        A file that FFmpeg reads, a Y4M file, or a sequence of pictures; no pipe.
    pictures : SourcePictures
        The changes of its pictures: deinterlaced, cropped, scaled. ``crop="auto"`` reads frames from all over the clip.

    Returns
    -------
    Clip
        The clip with its `path`, its `pictures` and its `facts` (`VideoFacts`), for `read_frames`. No file is open.

    Raises
    ------
    InputError
        The clip cannot be read, is a pipe or a raw file, or has neither Y'CbCr nor grey; or a change is not possible.
    OptionError
        The rectangle of `pictures` is none.

    """
    return Clip(os.fspath(path), pictures)


def read_frames(clip: Clip, first: int = 0, count: int | None = None, *, checksum: int | None = None) -> FrameReader:
    """Read frames of a clip in order, its pictures changed as the clip was described.

    Parameters
    ----------
    clip : Clip
        The clip, from `describe_clip`.
    first : int
        The number of the first frame to read, counted from 0.
    count : int, optional
        The number of frames to read. Without it, they are read to the end of the clip.
    checksum : int, optional
        The CRC-32 of the first frame's luma, row by row, from an earlier reading. With it the clip is read from the nearest key
        frame, if that gives the same frame. Otherwise it is read from its start.

    Returns
    -------
    FrameReader
        Iterate over it, in a `with` block, to get each frame as an ``av.VideoFrame`` of `VideoFacts.format`: planes of uint8,
        or of little-endian uint16 for more than 8 bits. Its `pts` is its presentation time in units of
        `VideoFacts.time_base`; None if the clip does not state it. Frames stay valid after the next one is read.

    Raises
    ------
    InputError
        The file cannot be read, or was changed since the clip was described. It is raised after the last good frame.

    """
    return FrameReader(clip, first, count, checksum)


class FrameReader(Closable):
    """The frames of a clip, as `read_frames` returns them."""

    warnings: tuple[str, ...] = ()
    """The warnings on the frames, after the last one: damage that the decoder concealed, or frames that are missing."""
    joins: tuple[int, ...] = ()
    """The frames at which the times in the file go back, because it was joined from several; after the last frame."""
    renumbered = False
    """Whether the file states the order of decoding alone, so that the times come from it; after the last frame."""

    def __init__(self, clip: Clip, first: int, count: int | None, checksum: int | None) -> None:
        self._facts = clip.facts
        self._first = first
        self._end = None if count is None else first + count
        self._stack = ExitStack()
        with closing_on_error(self):
            self._opened = self._stack.enter_context(clip.open())
            self._frame: Any = None  # the first one, if the clip was sought
            if first and checksum is not None:
                self._seek(clip, checksum)

    def _seek(self, clip: Clip, checksum: int) -> None:
        """Read the first frame from the nearest key frame; open the clip again if that gives another frame."""
        index, first = clip.seek_index, self._first
        if index is None or index.before(first) <= 0:
            return
        with suppress(RangeError):
            self._opened.source.seek(first, index.position(first))
            self._frame = self._opened.picture(first)
            if self._frame is not None and luma_checksum(self._frame) == checksum:
                return
        self._frame = None
        self._stack.close()
        self._opened = self._stack.enter_context(clip.open())

    def __iter__(self) -> Iterator[Any]:
        number = self._first
        while self._end is None or number < self._end:
            frame = self._opened.picture(number) if self._frame is None else self._frame
            if frame is None:
                break
            self._frame = None
            frame.pts, frame.time_base = self._opened.tick(number), self._facts.time_base
            yield frame
            number += 1
        self._finish(number)

    def _finish(self, end: int) -> None:
        """Check what was read up to the frame before `end`. Raises InputError."""
        file, outcome = self._opened.file, ReadOutcome.of(self._opened.source, end - 1)
        if isinstance(file, ContainerFile):
            self.joins, self.renumbered = tuple(file.joins), file.renumbered
        if outcome.problem is not None:
            raise outcome.problem
        if self._end is not None and end < self._end:
            raise InputError(f"{outcome.path}: it has {end} frames now, and had more when it was read first")
        missing = outcome.missing_frames()
        self.warnings = (*outcome.warnings(), *([] if missing is None else [missing]))

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._stack.close()


def _format_of(file: FrameSource, source: FrameSource) -> tuple[str, bool]:
    """Return the pixel format of the frames of `source`, made from `file`, and whether they are the decoder's own frames."""
    name = planar_name(source.info.chroma, source.info.bits)
    if source is not file or not isinstance(file, ContainerFile):
        return name, False
    coded = str(file.first_frame.format.name)
    as_decoded = coded in (name, name.replace("yuv", "yuvj"))
    return coded if as_decoded else name, as_decoded


def _video_facts(file: FrameSource, source: FrameSource, filters: tuple[str, ...]) -> VideoFacts:
    """Return the facts about a clip that is just open. `file` has its frames as they are coded, `source` as they are shown.

    Raises InputError if the clip is not in Y'CbCr or grey.
    """
    from av.video.format import names  # type: ignore[attr-defined] # PyAV's types lack it

    info, (name, _) = source.info, _format_of(file, source)
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
        fps=info.fps,
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
        dolby_vision=file.facts.dolby_vision,
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


class _OpenClip(Closable):
    """A clip that is open. `file` gives its frames as they are coded, and `source` as they are read."""

    def __init__(self, file: FrameSource, source: FrameSource, filters: tuple[str, ...]) -> None:
        self.file = file
        self.source = source
        self.filters = filters
        self._format, self._as_decoded = _format_of(file, source)

    def picture(self, number: int) -> Any:
        """Return a frame as an av.VideoFrame; None if the clip ends before it, or if `source` has a problem.

        It is the decoder's own frame if possible, with its closed captions.
        """
        if self._as_decoded:
            assert isinstance(self.file, ContainerFile)
            return self.file.picture(number)
        info = self.source.info
        frame, planes = new_picture(info.width, info.height, self._format)
        return frame if self.source.read([number], [planes]) else None

    def tick(self, number: int) -> int | None:
        return self.file.tick(number) if isinstance(self.file, ContainerFile) else None

    def close(self) -> None:
        self.source.close()


def _open(path: str) -> FrameSource:
    if not can_reopen(path):
        raise InputError(f"{path} is no ordinary file; a search reads its clip several times")
    try:
        return open_file(path, RawDescription())
    except UnknownFormatError:
        raise InputError(f"{path} cannot be read: it is no Y4M file and no container that FFmpeg reads") from None


# -- pairs ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FramePairs:
    """The pairs of frames that `score_files` compares, as `pair_frames` returns them."""

    reference: ClipFacts
    """The facts about the reference as it is coded, with the number of frames that are expected of it."""
    distorted: ClipFacts
    """The same of the distorted clip."""
    count: int | None
    """The number of pairs; None if only reading the clips can tell."""
    _schedule: Schedule = field(repr=False)

    def frames(self, pair: int) -> tuple[int, int]:
        """Return the numbers of the frames of a pair, in the reference and in the distorted clip; all count from 0."""
        return self._schedule.frames(pair)


def pair_frames(
    reference: str | os.PathLike[str],
    distorted: str | os.PathLike[str],
    *,
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),  # noqa: B008 - frozen
    sync: str = "index",
    pictures: PictureOptions = PictureOptions(),  # noqa: B008 - frozen
    chroma: bool = False,
) -> FramePairs:
    """Say which frames of two clips `score_files` compares, and check that they can be compared. Nothing is scored.

    Parameters
    ----------
    reference, distorted : str or path
        Files or URLs, as for `score_files`; no pipes.
    raw, selection, sync, pictures : as in `score_files`
        The description of raw files, the frames to compare, how they are paired, and the changes of pictures.
    chroma : bool
        Check that chroma can be compared as well.

    Returns
    -------
    FramePairs
        The facts about both clips, the number of pairs, and the frames of each.

    Raises
    ------
    InputError
        A clip cannot be read, or the clips cannot be compared.
    OptionError
        There is no such `sync`.

    """
    paths = os.fspath(reference), os.fspath(distorted)
    check_reopens(*paths)
    with ExitStack() as stack:
        clips = zip(paths, selection.streams, strict=True)
        first, second = [stack.enter_context(open_file(path, raw, stream)) for path, stream in clips]
        schedule = schedule_pairs(selection, *match_pair(first, second, raw, pictures, chroma), sync)
        return FramePairs(_expected_facts(first), _expected_facts(second), schedule.pairs, schedule)


def _expected_facts(file: FrameSource) -> ClipFacts:
    """Return the facts about a clip, with the number of frames that its size or its duration states if nothing else does."""
    return replace(file.clip_facts(), path=file.info.path, frames=file.expected)
