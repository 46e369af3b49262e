"""The pictures of a clip, deinterlaced, cropped and scaled as `SourcePictures` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..errors import InputError
from ..types import Planes
from ..utils.av_frames import new_picture, planar_name, plane_of
from ..utils.thread_pool import closing_on_error
from .info import VideoInfo
from .open import oriented
from .options import SourcePictures
from .source import FrameSource, ProcessedSource, SeekIndex, WrappedSource
from .transforms import Crop, Scale

_PARITIES = {"top field first": "tff", "bottom field first": "bff"}
_FFMPEG_RESAMPLERS = {"point": "neighbor"}  # FFmpeg's name, if it differs
_TICK = Fraction(1, 25)  # of a graph, whose times nobody reads
_GRID = 64  # samples that all chroma formats divide
_ALMOST = Fraction(1, 100)  # shapes of samples that differ by less are the same with rounded sides


def processed(file: FrameSource, pictures: SourcePictures, crop: Crop | None) -> tuple[FrameSource, tuple[str, ...]]:
    """Return a clip with its pictures as they are encoded, and the filters of FFmpeg that do the same.

    Raises InputError if a change is not possible. Then the file is closed.
    """
    source, filters = file, []
    with closing_on_error(file):
        if pictures.deinterlace:
            if file.orientation is not None:  # FFmpeg's command would turn the frames before its filter reads their fields
                raise InputError(
                    f"`deinterlace`: {file.info.path} is turned by its display matrix; deinterlace it with FFmpeg first"
                )
            source = Deinterlaced(file)
            filters.append(source.filter)

        source = oriented(source)
        if crop is not None:
            crop.check_aligned(source.info)
            source = ProcessedSource(source, crop)
            filters.append(f"crop={crop.width}:{crop.height}:{crop.left}:{crop.top}:exact=1")

        info = source.info
        if pictures.size not in (None, (info.width, info.height)):
            width, height = pictures.size
            aspect = _aspect(info, width, height)
            source = ProcessedSource(source, Scale(width, height, pictures.resampler, info.bits, info.chroma, aspect))
            flag = _FFMPEG_RESAMPLERS.get(pictures.resampler, pictures.resampler)
            filters += [f"scale={width}:{height}:flags={flag}+accurate_rnd", f"setsar={aspect.numerator}/{aspect.denominator}"]
    return source, tuple(filters)


def _aspect(before: VideoInfo, width: int, height: int) -> Fraction:
    """Return the shape of samples with which scaled pictures have the shape that they had before."""
    own = before.sample_aspect or Fraction(1)
    exact = own * Fraction(before.width * height, before.height * width)
    return next((usual for usual in (own, Fraction(1)) if abs(exact / usual - 1) < _ALMOST), exact)


class Deinterlaced(WrappedSource):
    """A source whose interlaced frames become progressive pictures by FFmpeg's bwdif, one for each frame.

    The frame rate and the times stay: the first field of a frame is kept, and the lines of the second one are interpolated
    from it and from the frames before and after. `filter` is FFmpeg's text for it. Frames are read in rising order. Raises
    InputError if the filter cannot read the frames.
    """

    concurrent = False
    external = False
    read_external, decoded_frame, sample = FrameSource.read_external, FrameSource.decoded_frame, FrameSource.sample

    def __init__(self, source: FrameSource) -> None:
        super().__init__(source)
        info = source.info
        parity = _PARITIES.get(info.field_order or "", "tff")
        self.filter = f"bwdif=mode=send_frame:parity={parity}:deint=all"
        self._format = planar_name(info.chroma, info.bits)
        if not _is_kept(self._format):
            raise InputError(
                f"`deinterlace`: FFmpeg's bwdif takes no {self._format}, the format of {info.path}; deinterlace it with"
                " FFmpeg first"
            )
        self._begin(0)

    @property
    def info(self) -> VideoInfo:  # type: ignore[override] # an attribute of other sources
        """Return the facts about the progressive stream."""
        before = self.source.info
        order = _PARITIES.get(before.field_order or "")
        assumed = "" if order else ", the top field first, because the clip does not state an order"
        note = f"deinterlaced by FFmpeg's bwdif, one picture for each frame{assumed}"
        return replace(before, field_order="progressive", notes=(*before.notes, note))

    def _begin(self, first: int) -> None:
        """Start a filter whose first frame is number `first`."""
        import av

        self._given = self._next = first  # the numbers of the next frame for the filter, and of its next picture
        info = self.source.info
        try:
            self._graph = _graph(info.width, info.height, self._format, self.filter)
        except av.FFmpegError as error:  # as for three lines
            raise InputError(
                f"`deinterlace`: FFmpeg's bwdif cannot read {info.path}, {info.width}x{info.height}: {error.strerror}"
            ) from None

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """Read progressive pictures; the frames between those that are read are not deinterlaced."""
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            if number > self._given:  # the frames between are not needed, but the one before it is
                self._begin(number - 1)
            picture = self._picture()
            while picture is not None and self._next <= number:
                picture = self._picture()
            if picture is None:
                return count
            for place, plane in enumerate(target):
                plane[:] = plane_of(picture, place)
        return len(numbers)

    def _picture(self) -> Any:
        import av

        while True:
            try:
                picture = self._graph.pull()
            except av.BlockingIOError:
                self._push_next()
            except av.EOFError:
                return None
            else:
                self._next += 1
                return picture

    def _push_next(self) -> None:
        info = self.source.info
        frame, planes = new_picture(info.width, info.height, self._format)
        if self.source.read([self._given], [planes]):
            frame.pts, frame.time_base = self._given, _TICK
            self._graph.push(frame)
            self._given += 1
        else:
            self._graph.push(None)

    def seek_index(self) -> SeekIndex | None:
        """Return the positions of the source, each for the frame after it: a picture needs the frame before it."""
        index = self.source.seek_index()
        return None if index is None else _OneEarlier(index)

    def seek(self, number: int, position: int) -> int | None:
        """Continue with the picture `number`, and return the fingerprint of the frame before it."""
        fingerprint = self.source.seek(max(0, number - 1), position)
        self._begin(max(0, number - 1))
        return fingerprint


def _graph(width: int, height: int, layout: Any, text: str) -> Any:
    """Return a graph of FFmpeg with one filter, for frames of a size and a pixel format."""
    import av

    graph = av.filter.Graph()
    begin = graph.add_buffer(width=width, height=height, format=layout, time_base=_TICK)
    name, _, options = text.partition("=")
    graph.link_nodes(begin, graph.add(name, options), graph.add("buffersink")).configure()
    return graph


def _is_kept(layout: str) -> bool:
    """Return whether bwdif takes frames of a format: FFmpeg would convert all other frames without a word."""
    graph = _graph(_GRID, _GRID, layout, "bwdif")
    frame, _ = new_picture(_GRID, _GRID, layout)
    frame.pts, frame.time_base = 0, _TICK
    graph.push(frame)
    graph.push(None)
    return bool(graph.pull().format.name == layout)


class _OneEarlier:
    """The positions of an index, each for the frame after it."""

    def __init__(self, index: SeekIndex) -> None:
        self.frames = index.frames
        self._index = index

    def before(self, number: int) -> int:
        return self._index.before(max(0, number - 1))

    def position(self, number: int) -> int:
        return self._index.position(max(0, number - 1))
