"""Read the clip that is to be encoded: scan it once, and give its frames by number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..clips import UNCHANGED, Clip, SourcePictures, VideoFacts, describe_clip, read_frames
from ..errors import InputError
from ..utils.av_frames import luma_checksum, new_scaler, plane_of

_SMALL_SIDE = 32
"""The blocks of a small picture, in each direction. Cuts are found in their means."""

_COST_WIDTH = 480  # the largest width of the pictures that measure how hard a frame is to encode
_COST_MIN_SIDE = 16
_COST_OPTIONS = {"qmin": "5", "qmax": "5", "g": "600"}  # no longer groups of pictures are possible


@dataclass
class Scan:
    """The findings of one pass over the clip."""

    times: list[int] = field(default_factory=list)
    """The presentation times of the frames in units of the stream's time base, rising."""
    changes: list[float] = field(default_factory=list)
    """How much each frame differs from the one before it, on the 0..255 scale; cuts are found by it."""
    costs: list[int] = field(default_factory=list)
    """The bytes of each frame in a quick encode of small pictures, which show how hard it is to encode."""
    prints: list[int] = field(default_factory=list)
    """The checksums of the luma, which show that a seek leads to the right frame."""
    joins: list[int] = field(default_factory=list)
    """The frames at which the times in the file go back, because it was joined from several."""
    warnings: list[str] = field(default_factory=list)
    """The warnings of reading the clip."""
    renumbered: bool = False
    """Whether the file states the order of decoding alone, or no times of the first frames."""

    @property
    def count(self) -> int:
        """Return the number of frames."""
        return len(self.times)

    def seconds(self, first: int, count: int, facts: VideoFacts) -> float:
        """Return how long `count` frames from number `first` on are shown.

        The last frame of the clip is shown as long as the other frames on average, and a single frame by the frame rate.
        """
        times = self.times[first : first + count + 1]
        if len(times) < 2:
            return float(count / facts.rate)
        return float((times[-1] - times[0]) * facts.time_base) * count / (len(times) - 1)


def frame_costs(width: int, height: int) -> Callable[[Any], int]:
    """Return a function that gives the bytes of the next frame, which show how hard it is to encode.

    They are those of FFmpeg's own MPEG-4 encoder, with small pictures at a constant quantiser.
    """
    import av

    divisor = max(2, -(-width // _COST_WIDTH))
    size = tuple(max(_COST_MIN_SIDE, side // divisor // 2 * 2) for side in (width, height))
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
    """A clip that is encoded: its facts, and its frames by number, as `vkssim score` compares them.

    They are cropped and turned as the clip says, and then changed as `pictures` says. Raises InputError if the clip cannot be
    read, or is not in Y'CbCr or grey.
    """

    def __init__(self, path: str, pictures: SourcePictures = UNCHANGED) -> None:
        self.path = path
        self.pictures = pictures
        self._clip: Clip = describe_clip(path, pictures=pictures)
        self.facts = self._clip.facts

    def scan(self, progress: Callable[[int, int | None], object] | None = None) -> Scan:
        """Decode the whole clip once. `progress` is called with the number of finished frames and the expected number.

        Raises InputError if the clip ends too early, or if presentation times do not rise.
        """
        scan, before, cost = Scan(), None, frame_costs(self.facts.width, self.facts.height)
        ticks: list[int | None] = []
        with read_frames(self._clip) as reader:
            for frame in reader:
                small = _small(plane_of(frame, 0), self.facts.bits)
                ticks.append(frame.pts)
                scan.costs.append(cost(frame))
                scan.changes.append(0.0 if before is None else float(np.abs(small - before).mean()))
                scan.prints.append(luma_checksum(frame))
                before = small
                if progress is not None:
                    progress(len(ticks), None)

        scan.joins, scan.warnings = list(reader.joins), list(reader.warnings)
        # FFmpeg would drop frames if the first one has no time, but others have.
        scan.renumbered = reader.renumbered or (ticks[:1] == [None] and any(tick is not None for tick in ticks))
        scan.times = self._presented(ticks)
        return scan

    def frames(self, first: int, count: int, scan: Scan) -> Iterator[Any]:
        """Yield `count` frames from number `first` on, each with the presentation time of the scan.

        Raises InputError if the file was changed since it was opened first, or cannot be read.
        """
        with read_frames(self._clip, first, count, checksum=scan.prints[first]) as reader:
            for frame, time in zip(reader, scan.times[first : first + count], strict=True):
                frame.pts = time
                yield frame

    def _presented(self, ticks: list[int | None]) -> list[int]:
        """Return when the frames are presented; those without a time before the first one that has one by the frame rate.

        Raises InputError if the times do not rise: encoders refuse such frames, or count them twice.
        """
        rate, time_base = self.facts.rate, self.facts.time_base
        step = 1 / (rate * time_base)
        timed, tick = next(((number, tick) for number, tick in enumerate(ticks) if tick is not None), (0, 0))
        times = [tick + round((n - timed) * step) if stated is None else stated for n, stated in enumerate(ticks)]

        for number, (before, time) in enumerate(pairwise(times), 1):
            if time <= before:
                seconds, earlier = float(time * time_base), float(before * time_base)
                raise InputError(
                    f"{self.path}: frame {number} is presented at {seconds:.3f} s, and the frame before it at {earlier:.3f} s,"
                    " but an encoder needs times that rise. Give the frames new ones in another file with FFmpeg first:"
                    f" -vf 'setpts=N/({rate}*TB)' -c:v ffv1 FILE.mkv"
                )
        return times


def _small(plane: npt.NDArray[Any], bits: int) -> npt.NDArray[np.float32]:
    """Return the means of blocks of a picture on the 0..255 scale, of every row and column that a block needs for its mean."""
    height, width = plane.shape
    rows, columns = max(1, height // _SMALL_SIDE), max(1, width // _SMALL_SIDE)
    skip_rows, skip_columns = max(1, rows // 8), max(1, columns // 8)  # 8x8 samples of a block are enough
    cut = plane[: height // rows * rows, : width // columns * columns]
    blocks = cut.reshape(height // rows, rows, width // columns, columns)[:, ::skip_rows, :, ::skip_columns]
    small: npt.NDArray[np.float32] = blocks.mean(axis=(1, 3), dtype=np.float32) * np.float32(2.0 ** (8 - bits))
    return small
