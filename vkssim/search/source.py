"""Read the clip that is to be encoded: scan it once, give its frames by number, and choose the samples that stand for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..clips import UNCHANGED, Clip, SourcePictures, VideoFacts, describe_clip, read_frames
from ..errors import InputError
from ..types import Doubles
from ..utils.av_frames import luma_checksum, new_scaler, plane_of

_SMALL_SIDE = 32
"""The blocks of a small picture, in each direction. Cuts are found in their means."""

_COST_WIDTH = 480  # the largest width of the pictures that measure how hard a frame is to encode
_COST_MIN_SIDE = 16
_COST_OPTIONS = {"qmin": "5", "qmax": "5", "g": "600"}  # no longer groups of pictures are possible

GROUP = 32
"""The most frames that encoders code as one group; samples begin and end with groups. SVT-AV1 has groups of 16 or 32."""

LEAD = GROUP + 1
"""The frames before each sample that are encoded and not counted: a key frame and a group."""

TAIL = 16
"""The frames after each sample that are encoded and not counted."""

_MIN_CHANGE = 6.0  # of the mean block of a picture, on the 0..255 scale
_TIMES_NEIGHBOURS = 3.0
_NEIGHBOURS = 3
SHORTEST_SHOT = 12
"""The least frames of a shot. Shorter ones belong to the previous shot."""

_MAX_CORRECTION = 2.0  # a weight is not corrected by more than this factor
_ROUNDS = 30


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
    """Return a function that gives the bytes of the next frame, small, in FFmpeg's own MPEG-4 at a constant quantiser."""
    import av

    divisor = max(2, -(-width // _COST_WIDTH))
    size = tuple(max(_COST_MIN_SIDE, side // divisor // 2 * 2) for side in (width, height))
    encoder: Any = av.CodecContext.create("mpeg4", "w")
    (encoder.width, encoder.height), encoder.pix_fmt = size, "yuv420p"
    encoder.time_base, encoder.options = Fraction(1, 25), dict(_COST_OPTIONS)
    encoder.thread_count = 1  # else each thread has a slice of its own, and the costs depend on the number of cores
    scale, numbers = new_scaler(), count()

    def cost(frame: Any) -> int:
        small = scale(frame, *size, "yuv420p", interpolation="BILINEAR")
        small.pts, small.time_base, small.pict_type = next(numbers), encoder.time_base, 0
        return sum(packet.size for packet in encoder.encode(small))

    return cost


class Source:
    """A clip that is encoded: its facts, and its frames by number, as `vkssim score` compares them.

    Raises InputError if the clip cannot be read, or is not in Y'CbCr or grey.
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
    """Return the means of blocks of a picture on the 0..255 scale, from 8x8 or more samples of each."""
    height, width = plane.shape
    rows, columns = max(1, height // _SMALL_SIDE), max(1, width // _SMALL_SIDE)
    skip_rows, skip_columns = max(1, rows // 8), max(1, columns // 8)
    cut = plane[: height // rows * rows, : width // columns * columns]
    blocks = cut.reshape(height // rows, rows, width // columns, columns)[:, ::skip_rows, :, ::skip_columns]
    small: npt.NDArray[np.float32] = blocks.mean(axis=(1, 3), dtype=np.float32) * np.float32(2.0 ** (8 - bits))
    return small


# -- samples -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """A range of frames that is encoded by itself, with frames around it, so that it is encoded as it is within the clip."""

    first: int
    count: int
    weight: float = 1.0
    """How many frames of the clip each of its frames stands for."""
    lead: int = 0
    """The number of frames before it that are encoded and not counted."""
    tail: int = 0
    """The number of frames after it that are encoded and not counted."""

    @property
    def encoded(self) -> int:
        """Return how many frames are encoded."""
        return self.lead + self.count + self.tail


@dataclass(frozen=True)
class Sampling:
    """The samples of a clip, and the data for forecasting its size."""

    samples: tuple[Sample, ...]
    frames: int
    """The length of the clip in frames."""
    cuts: tuple[int, ...] = (0,)
    """The numbers of the frames that begin its shots, 0 first."""

    @classmethod
    def whole(cls, frames: int, cuts: Sequence[int] = (0,)) -> Sampling:
        """Return the clip itself, in one piece."""
        return cls((Sample(0, frames),), frames, tuple(cuts))

    @property
    def is_whole(self) -> bool:
        """Return whether the samples are the clip itself, in one piece."""
        return len(self.samples) == 1 and self.samples[0].count == self.frames


def find_cuts(changes: Sequence[float]) -> list[int]:
    """Return the numbers of the frames that begin a shot, 0 first.

    A cut is a frame that differs from the one before it by _MIN_CHANGE, and _TIMES_NEIGHBOURS times as much as its neighbours
    do from theirs: a flash has two such changes, and fast motion has many.
    """
    array = np.asarray(changes, np.float64)
    cuts = [0]
    for place in range(1, len(array)):
        around = np.r_[array[max(1, place - _NEIGHBOURS) : place], array[place + 1 : place + 1 + _NEIGHBOURS]]
        is_cut = array[place] >= max(_MIN_CHANGE, _TIMES_NEIGHBOURS * around.max(initial=0.0))
        if is_cut and place - cuts[-1] >= SHORTEST_SHOT and len(array) - place >= SHORTEST_SHOT:
            cuts.append(place)
    return cuts


def choose_samples(scan: Scan, *, length: int, most: int) -> Sampling:
    """Choose samples of about `length` frames, `most` frames altogether; the clip itself if that is not much longer.

    The clip is divided into pieces that begin where encoders begin a group of frames. They are sorted by how hard they are to
    encode and divided into groups of equal length. The piece in the middle of a group is a sample, and stands for the group.
    The weights are corrected so that the samples stand for all frames, and for how hard these are altogether.
    """
    cuts = find_cuts(scan.changes)
    length = max(1, round(length / GROUP)) * GROUP

    # Frame 0 is a key frame, and groups begin after it. The rest at the end belongs to the last piece.
    pieces = list(pairwise([0, *range(1 + length, scan.count - length // 2, length), scan.count]))
    lengths = np.array([end - first for first, end in pieces], np.float64)
    groups = max(1, round(most / float(lengths.mean())))
    if groups * (lengths.mean() + LEAD + TAIL) >= scan.count:
        return Sampling.whole(scan.count, cuts)

    costs = np.array([sum(scan.costs[first:end]) for first, end in pieces], np.float64)
    order = np.argsort(costs / lengths, kind="stable")
    middles = np.cumsum(lengths[order]) - lengths[order] / 2
    chosen, weights = [], []
    for low, high in pairwise(scan.count * number / groups for number in range(groups + 1)):
        inside = np.flatnonzero((middles >= low) & (middles < high))
        if len(inside):
            middle = inside[np.argmin(np.abs(middles[inside] - (low + high) / 2))]
            chosen.append(order[middle])
            weights.append(float(lengths[order[inside]].sum() / lengths[order[middle]]))

    corrected = corrected_weights(np.array(weights), np.stack([lengths, costs]), np.array(chosen))
    samples = []
    for place, weight in sorted(zip(chosen, corrected.tolist(), strict=True)):
        first, end = pieces[place]
        samples.append(Sample(first, end - first, weight, min(LEAD, first), min(TAIL, scan.count - end)))
    return Sampling(tuple(samples), scan.count, tuple(cuts))


def corrected_weights(weights: Doubles, columns: Doubles, chosen: np.ndarray) -> Doubles:
    """Return weights of samples with which they have the totals of all pieces, by the calibration of survey statistics.

    Its factors are exponential. If they would be large, because too few samples cannot have the totals, only the first column's
    total is met. `weights` is (samples,), `columns` has the numbers of every piece, (columns, pieces), and `chosen` are the
    pieces that are samples.
    """
    scale = columns.mean(axis=1, keepdims=True)
    seen, totals = (columns / scale)[:, chosen], (columns / scale).sum(axis=1)
    factors = np.zeros(len(columns))
    if len(weights) > len(columns):
        for _ in range(_ROUNDS):
            current = weights * np.exp(factors @ seen)
            slope = (seen * current) @ seen.T
            factors = factors + np.linalg.lstsq(slope, totals - seen @ current, rcond=1e-9)[0]
            if np.abs(factors @ seen).max() > np.log(_MAX_CORRECTION):
                factors = np.zeros(len(columns))
                break
    current = weights * np.exp(factors @ seen)
    corrected: Doubles = current * (totals[0] / (seen[0] @ current))
    return corrected
