"""Read the clip that is to be encoded: its facts, its frames by number, and its pictures in small for scene cuts."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, RangeError
from ..frames.decode.clip_decoder import UnknownFormatError
from ..frames.decode.container import ContainerFile
from ..frames.decode.description import side_data
from ..frames.open import can_reopen, open_file
from ..frames.options import RawDescription, SourcePictures
from ..frames.picture.transforms import Crop, Orientation
from ..frames.source import FrameSource, ReadOutcome, SeekIndex, changed_error, check_unchanged
from ..storage.inputs import Opened
from ..utils.av_frames import new_picture, new_scaler, planar_name, plane_of
from ..utils.thread_pool import closing_on_error
from .defaults import UNCHANGED
from .pictures import chosen_crop, processed

_SMALL_SIDE = 32
"""The blocks of a small picture, in each direction. Cuts are found in their means."""

_INTERLACED = "the source is interlaced; it was encoded as frames; `deinterlace` makes progressive pictures of them"
_USUAL_RATE = Fraction(25)  # frames a second, if the clip has no usable rate
_MAX_RATE = 240  # SVT-AV1 takes no higher one
_UNSTATED = 2, 2, 2  # FFmpeg's numbers of primaries, transfer and matrix that a clip does not state
_RANGES = {"limited": 1, "full": 2}  # FFmpeg's numbers

_COST_WIDTH = 480  # the largest width of the pictures that measure how hard a frame is to encode
_COST_LEAST_SIDE = 16
_COST_OPTIONS = {"qmin": "5", "qmax": "5", "g": "600"}  # no longer groups of pictures are possible


@dataclass(frozen=True)
class Mastering:
    """The HDR metadata of SMPTE ST 2086 and CTA-861.3; None for a part that the clip does not have, or not completely.

    `display` has the chromaticities (x, y) of red, green, blue and the white point, and then the least and the largest
    luminance in cd/m². `light` is MaxCLL and MaxFALL in cd/m².
    """

    display: tuple[tuple[float, float], ...] | None = None
    light: tuple[int, int] | None = None


@dataclass(frozen=True)
class SourceFacts:
    """The properties that an encode takes over from its source.

    `width` and `height` are those of the frames that are encoded, after cropping and turning. `crop` is the visible rectangle
    that the container states, in the turned picture. `format` is FFmpeg's name of the frames' format, and `coded_format` that
    of the frames in the file. The numbers of `colours` (primaries, transfer, matrix, range) are FFmpeg's. `video` is the number
    of the stream among those of video, see `choose_stream`. `subtitles` are FFmpeg's names of their codecs, "" for an unknown
    one. `filters` are those of FFmpeg for the changes that the user wants. `dolby_vision` is a profile whose colours are
    defined by metadata, which encodes do not have. `notes` are for the user, on every encode of the clip.
    """

    width: int
    height: int
    format: str
    bits: int
    rate: Fraction
    time_base: Fraction
    aspect: Fraction
    colours: tuple[int, int, int, int]
    mastering: Mastering
    coded_format: str
    crop: Crop | None = None
    subtitles: tuple[str, ...] = ()
    attachments: bool = False
    video: int = 0
    filters: tuple[str, ...] = ()
    dolby_vision: int | None = None
    notes: tuple[str, ...] = ()


@dataclass
class Scan:
    """The findings of one pass over the clip.

    `times` are the presentation times of the frames in units of the stream's time base, rising. `changes` is how much each
    frame differs from the one before it on the 0..255 scale, by which cuts are found. `costs` are the bytes of each frame in a
    quick encode of small pictures, which show how hard it is to encode. `prints` are checksums of the luma, by which a seek is
    known to have found the right frame. `joins` are the frames at which the times in the file go back, because it was joined
    from several. `warnings` are those of reading the clip. `renumbered` is whether the file states the order of decoding alone,
    or no times of the first frames.
    """

    times: list[int] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    prints: list[int] = field(default_factory=list)
    joins: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    renumbered: bool = False

    @property
    def count(self) -> int:
        """Return the number of frames."""
        return len(self.times)

    def seconds(self, first: int, count: int, facts: SourceFacts) -> float:
        """Return how long `count` frames from number `first` on are shown.

        The last frame of the clip is shown as long as the other frames on average, and a single frame by the frame rate.
        """
        known = self.times[first : first + count + 1]
        if len(known) < 2:
            return float(count / facts.rate)
        return float((known[-1] - known[0]) * facts.time_base) * count / (len(known) - 1)


def frame_costs(width: int, height: int) -> Callable[[Any], int]:
    """Return a function that gives the bytes of the next frame, which show how hard it is to encode.

    They are those of FFmpeg's own MPEG-4 encoder, with small pictures at a constant quantiser.
    """
    import av

    divisor = max(2, -(-width // _COST_WIDTH))
    size = tuple(max(_COST_LEAST_SIDE, side // divisor // 2 * 2) for side in (width, height))
    encoder: Any = av.CodecContext.create("mpeg4", "w")
    encoder.width, encoder.height = size
    encoder.pix_fmt, encoder.time_base, encoder.options = "yuv420p", Fraction(1, 25), dict(_COST_OPTIONS)
    scale, numbers = new_scaler(), count()

    def cost(frame: Any) -> int:
        small = scale(frame, *size, "yuv420p", interpolation="BILINEAR")
        small.pts, small.time_base, small.pict_type = next(numbers), encoder.time_base, 0
        return sum(packet.size for packet in encoder.encode(small))

    return cost


class Source:
    """A clip that is encoded: what an encode takes over from it, and its frames by number, as `vkssim score` compares them.

    They are cropped and turned as the clip says, and then changed as `pictures` says. Raises InputError if the clip cannot be
    read, or is not in Y'CbCr or grey.
    """

    def __init__(self, path: str, pictures: SourcePictures = UNCHANGED) -> None:
        self.path = path
        self.pictures = pictures
        self._state: Opened | None = None
        self._marks: SeekIndex | None = None
        self._marks_known = False
        with self._file() as file:
            self._state = file.opened
            self._crop = chosen_crop(file, pictures)
        with self._opened() as clip:
            self.facts = _facts(clip)

    def scan(self, progress: Any = None) -> Scan:
        """Decode the whole clip once. `progress` is called with the number of finished frames and the expected number.

        Raises InputError if the clip ends too early, or if presentation times do not rise.
        """
        scan, before, cost = Scan(), None, frame_costs(self.facts.width, self.facts.height)
        ticks: list[int | None] = []
        with self._opened() as clip:
            while (frame := clip.picture(len(ticks))) is not None:
                plane = plane_of(frame, 0)
                small = _small(plane, self.facts.bits)
                ticks.append(clip.file.tick(len(ticks)) if isinstance(clip.file, ContainerFile) else None)
                scan.costs.append(cost(frame))
                scan.changes.append(0.0 if before is None else float(np.abs(small - before).mean()))
                scan.prints.append(_print(plane))
                before = small
                if progress is not None:
                    progress(len(ticks), None)
            end = ReadOutcome.of(clip.source, len(ticks) - 1)
            if isinstance(clip.file, ContainerFile):
                scan.joins, scan.renumbered = clip.file.joins, clip.file.renumbered
                # FFmpeg would drop frames if the first one has no time, but others have.
                scan.renumbered |= ticks[:1] == [None] and any(tick is not None for tick in ticks)
        if end.problem is not None:
            raise end.problem
        scan.times = self._presented(ticks)
        missing = end.missing_frames()
        scan.warnings = [*end.warnings(), *([] if missing is None else [missing])]
        return scan

    def frames(self, first: int, count: int, scan: Scan) -> Iterator[Any]:
        """Yield `count` frames from number `first` on, each with the presentation time of the scan.

        Raises InputError if the file was changed since it was opened first, or cannot be read.
        """
        with ExitStack() as stack:
            clip, frame = self._at(stack, first, scan)
            for number in range(first, first + count):
                frame = frame if number == first else clip.picture(number)
                if frame is None:
                    break
                frame.pts, frame.time_base = scan.times[number], self.facts.time_base
                yield frame
            check_unchanged(clip.source)
            if clip.source.problem is not None:
                raise clip.source.problem
            if frame is None:
                raise InputError(f"{self.path}: it has {number} frames now, and had more when it was read first")

    def _at(self, stack: ExitStack, first: int, scan: Scan) -> tuple[_Clip, Any]:
        """Return the clip and one of its frames: after a seek if that finds it, else read from the start."""
        clip = stack.enter_context(self._opened())
        if first and not self._marks_known:
            self._marks, self._marks_known = clip.source.seek_index(), True
        if first and self._marks is not None and self._marks.before(first) > 0:
            with suppress(RangeError):
                clip.source.seek(first, self._marks.position(first))
                frame = clip.picture(first)
                if frame is not None and _print(plane_of(frame, 0)) == scan.prints[first]:
                    return clip, frame
            stack.close()
            clip = stack.enter_context(self._opened())
        return clip, clip.picture(first)

    def _file(self) -> FrameSource:
        """Open the file. Raises InputError, also if it has changed."""
        if not can_reopen(self.path):
            raise InputError(f"{self.path} is no ordinary file; a search reads its clip several times")
        try:
            file = open_file(self.path, RawDescription())
        except UnknownFormatError:
            raise InputError(f"{self.path} cannot be read: it is no Y4M file and no container that FFmpeg reads") from None
        with closing_on_error(file):
            if self._state is not None and file.opened != self._state:
                raise changed_error(self.path)
        return file

    @contextmanager
    def _opened(self) -> Iterator[_Clip]:
        file = self._file()
        source, filters = processed(file, self.pictures, self._crop)
        with source:
            yield _Clip(file, source, filters)

    def _presented(self, ticks: list[int | None]) -> list[int]:
        """Return when the frames are presented; those without a time before the first one that has one by the frame rate.

        Raises InputError if the times do not rise: encoders refuse such frames, or count them twice.
        """
        rate, time_base = self.facts.rate, self.facts.time_base
        step = 1 / (rate * time_base)
        known, first = next(((number, tick) for number, tick in enumerate(ticks) if tick is not None), (0, 0))
        times = [first + round((n - known) * step) if tick is None else tick for n, tick in enumerate(ticks)]
        for number, (before, time) in enumerate(pairwise(times), 1):
            if time <= before:
                seconds, earlier = (float(one * time_base) for one in (time, before))
                raise InputError(
                    f"{self.path}: frame {number} is presented at {seconds:.3f} s, and the frame before it at {earlier:.3f} s,"
                    " but an encoder needs times that rise. Give the frames new ones in another file with FFmpeg first:"
                    f" -vf 'setpts=N/({rate}*TB)' -c:v ffv1 FILE.mkv"
                )
        return times


class _Clip:
    """A clip that is open. `file` gives its frames as they are coded, and `source` as they are shown."""

    def __init__(self, file: FrameSource, source: FrameSource, filters: tuple[str, ...]) -> None:
        self.file = file
        self.source = source
        self.filters = filters
        self.format = planar_name(source.info.chroma, source.info.bits)
        self._as_decoded = False
        if source is file and isinstance(file, ContainerFile):
            coded = file.first_frame.format.name
            self._as_decoded = coded in (self.format, self.format.replace("yuv", "yuvj"))
            self.format = coded if self._as_decoded else self.format

    def picture(self, number: int) -> Any:
        """Return a frame as an av.VideoFrame; None if the clip ends before it, or if `source` has a problem.

        It is the decoder's own frame if possible, with its closed captions.
        """
        if self._as_decoded:
            assert isinstance(self.file, ContainerFile)
            return self.file.picture(number)
        info = self.source.info
        frame, planes = new_picture(info.width, info.height, self.format)
        return frame if self.source.read([number], [planes]) else None


def _small(plane: npt.NDArray[Any], bits: int) -> npt.NDArray[np.float32]:
    """Return the means of blocks of a picture on the 0..255 scale, of every row and column that a block needs for its mean."""
    height, width = plane.shape
    rows, columns = max(1, height // _SMALL_SIDE), max(1, width // _SMALL_SIDE)
    skip_rows, skip_columns = max(1, rows // 8), max(1, columns // 8)  # 8x8 samples of a block are enough
    cut = plane[: height // rows * rows, : width // columns * columns]
    blocks = cut.reshape(height // rows, rows, width // columns, columns)[:, ::skip_rows, :, ::skip_columns]
    small: npt.NDArray[np.float32] = blocks.mean(axis=(1, 3), dtype=np.float32) * np.float32(2.0 ** (8 - bits))
    return small


def _facts(clip: _Clip) -> SourceFacts:
    from av.video.format import names  # type: ignore[attr-defined] # PyAV's types lack it

    file, info = clip.file, clip.source.info
    interlaced = info.field_order not in (None, "progressive")
    rate = _rate(info.fps)
    facts = SourceFacts(
        width=info.width,
        height=info.height,
        format=clip.format,
        bits=info.bits,
        rate=rate,
        time_base=1 / rate,
        aspect=info.sample_aspect or Fraction(1),
        colours=(*_UNSTATED, _RANGES.get(info.range or "", 0)),
        mastering=Mastering(),
        coded_format=clip.format,
        filters=clip.filters,
        notes=(*info.notes, *info.warnings, *([_INTERLACED] if interlaced else [])),
    )
    if not isinstance(file, ContainerFile):  # Y4M
        return facts
    first, stream = file.first_frame, file.av_stream
    streams = stream.container.streams
    if file.is_rgb or clip.format not in names:  # FFmpeg lacks some formats of few chroma samples and many bits
        raise InputError(f"{file.info.path} has frames of {first.format.name}; a search encodes Y'CbCr or grey")
    if file.aperture is not None:
        file.aperture.check_aligned(file.info)
    return replace(
        facts,
        rate=_rate(stream.guessed_rate, stream.average_rate),
        time_base=stream.time_base,
        colours=(first.color_primaries, first.color_trc, first.colorspace, facts.colours[3]),
        mastering=_mastering(first),
        coded_format=first.format.name,
        crop=None if file.aperture is None else _turned_crop(file.aperture, file.orientation, first.width, first.height),
        subtitles=tuple(
            "" if one.codec_context is None else one.codec_context.codec.canonical_name for one in streams.subtitles
        ),
        attachments=bool(streams.attachments),
        video=list(streams.video).index(stream),
        dolby_vision=file.dolby_vision,
    )


def _turned_crop(crop: Crop, turned: Orientation | None, width: int, height: int) -> Crop:
    """Return the place of a rectangle of a picture after the picture is turned."""
    if turned is None:
        return crop
    visible = np.zeros((height, width), bool)
    visible[crop.top : crop.top + crop.height, crop.left : crop.left + crop.width] = True
    columns, rows = (np.flatnonzero(turned((visible,))[0].any(axis)) for axis in (0, 1))
    return Crop(len(columns), len(rows), int(columns[0]), int(rows[0]))


def _rate(*stated: Fraction | None) -> Fraction:
    """Return the frame rate that encoders are told; 25 if a file states only the ticks of its times, such as 1,000."""
    known = [rate for rate in stated if rate is not None and rate.denominator]
    rates = [Fraction(rate.numerator, rate.denominator) for rate in known if rate.numerator > 0]
    return next((rate for rate in rates if rate <= _MAX_RATE), _USUAL_RATE)


def _print(plane: npt.NDArray[Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(plane).data)


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
