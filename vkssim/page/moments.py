"""Find the worst moments of clips: frames with low scores, of which those within a second are one moment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..report.numbers import time_code
from ..report.results import FrameScores, ScoreReport, metric_of_choice, without_nan, worst_frames
from ..types import Doubles
from .charts import Axis
from .tables import score_text

_SECOND = 1.0
_USUAL_RATE = 25.0  # frames a second, of clips without times


@dataclass(frozen=True)
class Moment:
    """A moment by its worst frame: number and time code of the frame, the clip with the lowest score in it, and that score."""

    index: int
    time: str
    clip: int
    score: str


@dataclass(frozen=True)
class MomentGroup:
    """The worst moments of clips that are compared with the same frames, by their numbers; `metric` chose the moments."""

    metric: str
    clips: tuple[int, ...]
    moments: tuple[Moment, ...]


def moments_of(report: ScoreReport, name: str, count: int) -> list[FrameScores]:
    """Return the frames with the lowest scores, the worst first, none within a second of another.

    Each is the worst within half a second on either side, because a frame at the edge of a worse moment is not a moment.
    """
    times = _times(report)
    places = {frame.index: place for place, frame in enumerate(report.frames)}
    covered = np.zeros(len(times), bool)  # by a worse frame near it, or by a moment
    chosen: list[FrameScores] = []
    for frame in worst_frames(report, name, len(report.frames)):
        if len(chosen) == count:
            break
        place = places[frame.index]
        around = _SECOND / 2 if covered[place] else _SECOND
        if not covered[place]:
            chosen.append(frame)
        first, end = np.searchsorted(times, times[place] - around, "right"), np.searchsorted(times, times[place] + around)
        covered[first:end] = True
    return chosen


def shared_moments(reports: Sequence[ScoreReport], count: int) -> list[int]:
    """Return the worst frames of `count` moments of several clips by their numbers, the lowest score of any clip first.

    The worst moment of each clip is chosen before the second worst of any clip.
    """
    candidates: list[tuple[int, float, int, float]] = []  # rank, score, number and time
    lowest: dict[int, float] = {}
    for report in reports:
        if not report.frames:
            continue
        name = metric_of_choice(report)
        for frame in report.frames:
            score = without_nan(frame.metrics[name])
            lowest[frame.index] = min(score, lowest.get(frame.index, score))
        times = dict(zip((frame.index for frame in report.frames), _times(report).tolist(), strict=True))
        for rank, frame in enumerate(moments_of(report, name, count)):
            candidates.append((rank, without_nan(frame.metrics[name]), frame.index, times[frame.index]))
    chosen: dict[int, float] = {}
    for *_, index, time in sorted(candidates):
        if len(chosen) < count and all(abs(time - earlier) >= _SECOND for earlier in chosen.values()):
            chosen[index] = time
    return sorted(chosen, key=lambda index: (lowest[index], index))


def listed_moments(reports: Sequence[ScoreReport], count: int) -> list[MomentGroup]:
    """Return the worst moments of all clips, a group for those that share their frames."""
    groups = []
    for clips in alike(reports):
        scored = [clip for clip in clips if reports[clip].frames and reports[clip].names]
        indices = shared_moments([reports[clip] for clip in scored], count)
        if indices:
            groups.append(moment_group(reports, scored, indices))
    return groups


def moment_group(reports: Sequence[ScoreReport], clips: Sequence[int], indices: Iterable[int]) -> MomentGroup:
    """Return the moments of frames. Each frame is one that at least one of the clips has."""
    metric = metric_of_choice(reports[clips[0]])
    frames = {clip: {frame.index: frame for frame in reports[clip].frames} for clip in clips}

    def moment(index: int) -> Moment:
        scores = {clip: of_clip[index].metrics.get(metric, math.inf) for clip, of_clip in frames.items() if index in of_clip}
        worst = min(scores, key=lambda clip: (without_nan(scores[clip]), clip))
        return Moment(index, time_code(frame_time(reports[worst], frames[worst][index])), worst, score_text(scores[worst]))

    return MomentGroup(metric, tuple(clips), tuple(map(moment, indices)))


def alike(reports: Sequence[ScoreReport]) -> list[list[int]]:
    """Return the numbers of the reports, grouped so that frames of one number should show the same frame of the reference."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, report in enumerate(reports):
        size = report.width, report.height
        key = report.reference, size, report.selection.first_reference, report.sync, report.pictures
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def frame_time(report: ScoreReport, frame: FrameScores) -> float | None:
    """Return the presentation time of a frame in seconds: that of the clip, else computed from the frame rate, else None."""
    if frame.time is not None:
        return frame.time
    return frame.index / report.rate if report.rate else None


def tick_times(report: ScoreReport, axis: Axis) -> tuple[tuple[float, str], ...]:
    """Return (per cent, time code) of the ticks of a frame axis that are frames of the report."""
    times = {frame.index: frame_time(report, frame) for frame in report.frames if frame.index in axis.ticks}
    codes = [(place, time_code(times.get(int(tick)))) for tick, (place, _) in zip(axis.ticks, axis.labels(), strict=True)]
    return tuple((place, code) for place, code in codes if code)


def _times(report: ScoreReport) -> Doubles:
    """Return the times of the frames in seconds, ascending."""
    times = [frame.index / _USUAL_RATE if (time := frame_time(report, frame)) is None else time for frame in report.frames]
    return np.maximum.accumulate(np.array(times, np.float64))
