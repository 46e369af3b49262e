"""Read the clip that is to be encoded with PyAV: its facts, its frames by number, and its pictures in small for scene cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, dropwhile, islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..frames.demuxer import open_clip
from ..frames.side_data import side_data
from ..frames.streams import choose_stream
from ..frames.times import SEEK_SECONDS
from ..utils.interruption import check
from .costs import FrameCosts
from .other_streams import OtherStreams, other_streams

_SMALL_SIDE = 32
"""The blocks of a small picture, in each direction. Cuts are found in their means."""

_USUAL_RATE = Fraction(25)  # frames a second, where the clip has no usable rate
_MOST_RATE = 240  # SVT-AV1 takes no higher one
_HDR_TRANSFERS = (16, 18)  # FFmpeg's numbers of PQ and HLG


@dataclass(frozen=True)
class Mastering:
    """Hold the HDR metadata of SMPTE ST 2086 and CTA-861.3.

    `primaries` are the chromaticities of red, green and blue, and `white` of the white point, each (x, y). `luminance` is the
    least and the largest in cd/m². `light` is MaxCLL and MaxFALL in cd/m². A part that the clip does not have is None.
    `unread` says that PyAV could not read whether an HDR clip has any.
    """

    primaries: tuple[tuple[float, float], ...] | None = None
    white: tuple[float, float] | None = None
    luminance: tuple[float, float] | None = None
    light: tuple[int, int] | None = None
    unread: bool = False

    @property
    def display(self) -> bool:
        """Return whether the mastering display is described completely, as encoders ask for it."""
        return None not in (self.primaries, self.white, self.luminance)


@dataclass(frozen=True)
class Facts:
    """Hold what an encode takes over from its source.

    The numbers of `colours` (primaries, transfer, matrix, range) are FFmpeg's. `rotation` is in degrees counter-clockwise.
    `video` is the number of the stream among those of video, see `choose_stream`; `chosen` says which others there are.
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
    rotation: int = 0
    interlaced: bool = False
    codec: str = ""
    others: OtherStreams = field(default_factory=OtherStreams)
    video: int = 0
    chosen: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the user has to know of an encode of the clip."""
        if not self.interlaced:
            return self.chosen
        return (*self.chosen, "the source is interlaced; it was encoded as frames, so deinterlace it first")


@dataclass
class Scan:
    """Hold what one pass over the clip has found.

    `times` are the presentation times of the frames in units of the stream's time base, None where the container has none.
    `changes` is how much each frame differs from the one before it on the 0..255 scale, by which cuts are found. `costs` are
    the bytes of each frame in a quick encode of small pictures, which say how hard it is to encode.
    """

    times: list[int | None] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Return the number of frames."""
        return len(self.times)

    def seconds(self, first: int, count: int, facts: Facts) -> float:
        """Return how long `count` frames from number `first` on are shown.

        Presentation times say it; the last frame of the clip is shown as long as the mean of the others. The frame rate says it
        where there are no such times, or where they do not rise, as in a file that was joined from several.
        """
        known = [time for time in self.times[first : first + count + 1] if time is not None]
        rises = len(known) == len(self.times[first : first + count + 1]) and all(one < other for one, other in pairwise(known))
        if not rises or len(known) < 2:
            return float(count / facts.rate)
        return float((known[-1] - known[0]) * facts.time_base) * count / (len(known) - 1)


class Source:
    """Describe a clip by its first frame. Raises InputError where there is no video in Y'CbCr or grey."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._opened() as (container, stream):
            frame = next(container.decode(stream), None)
            if frame is None:
                raise InputError(f"{path}: no frame can be decoded from it")
            self.facts = _facts(path, stream, frame)

    def scan(self, progress: Any = None) -> Scan:
        """Decode the whole clip once. `progress` is called with the number of finished frames and the expected number."""
        scan, before, costs = Scan(), None, FrameCosts(self.facts.width, self.facts.height)
        for frame in self.frames(0, None):
            small = _small(luma(frame, self.facts.bits), self.facts.bits)
            scan.times.append(frame.pts)
            scan.costs.append(costs.cost(frame))
            scan.changes.append(0.0 if before is None else float(np.abs(small - before).mean()))
            before = small
            if progress is not None:
                progress(scan.count, None)
        return scan

    def frames(self, first: int, count: int | None, times: list[int | None] | None = None) -> Iterator[Any]:
        """Yield frames from number `first` on, all or `count` of them, of the size and format of the first frame of the clip.

        With the `times` of a scan, decoding begins at a key frame before the first one. Raises InputError where a frame is
        missing, or has another size or format.
        """
        with self._from(first, times) as decoded:
            done = 0
            while count is None or done < count:
                check()
                frame = next(decoded, None)
                if frame is None:
                    break
                if (frame.width, frame.height, frame.format.name) != (self.facts.width, self.facts.height, self.facts.format):
                    raise InputError(
                        f"{self.path}: frame {first + done} is {frame.width}x{frame.height} {frame.format.name}, the first one"
                        f" {self.facts.width}x{self.facts.height} {self.facts.format}; a search needs frames that are alike"
                    )
                done += 1
                yield frame
        if count is not None and done < count:
            raise InputError(f"{self.path}: it has {first + done} frames now, and had more when it was read first")

    @contextmanager
    def _from(self, first: int, times: list[int | None] | None) -> Iterator[Iterator[Any]]:
        """Open the clip, and give its frames from number `first` on: behind a seek, else decoded from the start."""
        if first and times is not None and None not in times and len(set(times)) == len(times):
            with self._opened() as (container, stream):
                sought = self._sought(container, stream, first, times)
                if sought is not None:
                    yield sought
                    return
        with self._opened() as (container, stream):  # opened anew, because a seek to the start may end behind it
            yield islice(container.decode(stream), first, None)

    def _sought(self, container: Any, stream: Any, first: int, times: Sequence[int | None]) -> Iterator[Any] | None:
        """Return the frames from number `first` on, decoded from a key frame before it; None where no seek ends before it.

        Without an index, as in MPEG-TS, FFmpeg seeks by decoding times, and may end behind the frame.
        """
        import av

        place_of = {time: place for place, time in enumerate(times)}
        begin, wanted = times[0], times[first]
        assert begin is not None
        assert wanted is not None
        for earlier in SEEK_SECONDS:
            container.seek(max(begin, wanted - round(earlier / self.facts.time_base)), stream=stream)
            # A frame that is shown before the key frame may refer to one that was passed over.
            decoded = dropwhile(lambda frame: not frame.key_frame, container.decode(stream))
            with suppress(av.FFmpegError):  # a decoder may need what was passed over
                for frame in decoded:
                    place = place_of.get(frame.pts, first + 1)
                    if place == first:
                        return chain([frame], decoded)
                    if place > first:
                        break
        return None

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any]]:
        import av

        try:
            with open_clip(self.path) as container:
                stream, _ = choose_stream(self.path, container, None)
                stream.thread_type = "AUTO"
                yield container, stream
        except (av.FFmpegError, OSError) as error:
            raise InputError(f"{self.path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def luma(frame: Any, bits: int) -> npt.NDArray[Any]:
    """Return the luma of a frame as (H, W) array of uint8, or uint16 for more than 8 bits. It views the memory of the frame."""
    plane = frame.planes[0]
    kind = np.dtype(np.uint8) if bits == 8 else np.dtype("<u2")
    rows = np.frombuffer(plane, kind).reshape(-1, plane.line_size // kind.itemsize)
    return rows[: frame.height, : frame.width]


def _small(plane: npt.NDArray[Any], bits: int) -> npt.NDArray[np.float32]:
    """Return the means of blocks of a picture on the 0..255 scale, of every row and column that a block needs for its mean."""
    height, width = plane.shape
    rows, columns = max(1, height // _SMALL_SIDE), max(1, width // _SMALL_SIDE)
    skip_rows, skip_columns = max(1, rows // 8), max(1, columns // 8)  # 8x8 samples of a block are enough
    cut = plane[: height // rows * rows, : width // columns * columns]
    blocks = cut.reshape(height // rows, rows, width // columns, columns)[:, ::skip_rows, :, ::skip_columns]
    small: npt.NDArray[np.float32] = blocks.mean(axis=(1, 3), dtype=np.float32) * np.float32(2.0 ** (8 - bits))
    return small


def _facts(path: str, stream: Any, frame: Any) -> Facts:
    layout = frame.format
    if layout.is_rgb or layout.has_palette or layout.is_bit_stream or layout.components[0].bits > 16:
        raise InputError(f"{path} has frames of {layout.name}; a search encodes Y'CbCr or grey")
    context = stream.codec_context
    return Facts(
        width=frame.width,
        height=frame.height,
        format=layout.name,
        bits=layout.components[0].bits,
        rate=_rate(stream),
        time_base=stream.time_base,
        aspect=stream.sample_aspect_ratio or context.sample_aspect_ratio or Fraction(1),
        colours=(frame.color_primaries, frame.color_trc, frame.colorspace, frame.color_range),
        mastering=_mastering(frame),
        rotation=int(frame.rotation),
        interlaced=bool(frame.interlaced_frame),
        codec=context.name,
        others=other_streams(stream.container),
        video=list(stream.container.streams.video).index(stream),
        chosen=choose_stream(path, stream.container, None)[1],
    )


def _rate(stream: Any) -> Fraction:
    """Return the frame rate that encoders are told; 25 where a file states only the ticks of its times, such as 1,000."""
    known = [rate for rate in (stream.guessed_rate, stream.average_rate) if rate is not None and rate.denominator]
    rates = [Fraction(rate.numerator, rate.denominator) for rate in known if rate.numerator > 0]
    return next((rate for rate in rates if rate <= _MOST_RATE), _USUAL_RATE)


def _mastering(frame: Any) -> Mastering:
    """Return the HDR metadata of a frame, from FFmpeg's structs AVMasteringDisplayMetadata and AVContentLightMetadata."""
    try:
        display = _integers(side_data(frame, "MASTERING_DISPLAY_METADATA"))
        light = _integers(side_data(frame, "CONTENT_LIGHT_LEVEL"))
    except ValueError:
        return Mastering(unread=frame.color_trc in _HDR_TRANSFERS)
    found = Mastering() if light is None else Mastering(light=(int(light[0]), int(light[1])))
    if display is None:
        return found
    ratios = [float(top) / float(bottom or 1) for top, bottom in display[:20].reshape(10, 2)]
    points = list(zip(ratios[0:8:2], ratios[1:8:2], strict=True))
    has_primaries, has_luminance = display[20:22]
    return Mastering(
        tuple(points[:3]) if has_primaries else None,
        points[3] if has_primaries else None,
        (ratios[8], ratios[9]) if has_luminance else None,
        found.light,
    )


def _integers(data: bytes | None) -> npt.NDArray[np.int32] | None:
    """Return a struct as integers; its last bytes may be padding."""
    return None if data is None else np.frombuffer(data[: len(data) // 4 * 4], np.int32)
