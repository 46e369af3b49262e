"""Make one report of the ranges of two clips, and judge it: warnings, errors for damaged clips and low scores, and a hint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from ..errors import InputError, OptionError, ThresholdError, VkssimError
from ..frames.info import ClipFacts, VideoPackets
from ..frames.open import can_reopen
from ..frames.pairing.offset import MIN_FRAMES, find_offset, find_shift
from ..frames.source import ReadOutcome, changed_error, listed_frames
from ..report.record import ScoringRecord, given_flags
from ..report.results import ScoreReport, merged_info
from ..report.thresholds import Threshold, unmet
from ..storage.location import redact_url
from ..utils.wording import counted
from .options import Clips, ScoreOptions
from .ranges import ClipPackets, RangeScores

_ROUNDED = 2e-3
"""The largest rounding of a time in seconds, at both ends: many containers store milliseconds."""

_PTS_ADVICE = "; --sync pts pairs frames by time"
"""The end of a message about clips whose frames were paired by their numbers although their times differ."""

_HINT_FRAMES = 96
"""The number of frames of each clip that are decoded for a hint. They show shifts of up to 35 frames."""

_LOW_SIMILARITY = 0.9
"""The mean similarity below which clips are suspected to be shifted."""

_SAME_PACE = 5e-4
"""The relative tolerance of the pace: half of the difference between 23.976 and 24 frames a second."""


def merged(range_scores: Sequence[RangeScores]) -> ScoreReport:
    """Return one report with the frames of several ranges, in order."""
    reports = [scores.report for scores in range_scores]
    return replace(
        reports[0],
        frames=list(chain.from_iterable(report.frames for report in reports)),
        warnings=list(dict.fromkeys(chain.from_iterable(report.warnings for report in reports))),
        notes=list(dict.fromkeys(chain.from_iterable(report.notes for report in reports))),
        backend=merged_info([report.backend for report in reports]),
        scoring=_merged_records([report.scoring for report in reports]),
        seconds=sum(report.seconds for report in reports),
        stage_seconds={
            stage: sum(report.stage_seconds.get(stage, 0.0) for report in reports)
            for stage in dict.fromkeys(chain.from_iterable(report.stage_seconds for report in reports))
        },
    )


def joined(
    range_scores: Sequence[RangeScores],
    packets: ClipPackets | None = None,
    *,
    strict: bool = False,
    thresholds: Sequence[Threshold] = (),
) -> ScoreReport:
    """Return the report of two clips from all their ranges, in order. It equals the report of clips scored in one piece.

    `packets` are the packets of both video streams if they were counted when the clips were divided.

    Raises VkssimError as `score_files`; its attribute `report` has the scores.
    """
    report, ends, shorter = merged(range_scores), _ends(range_scores), range_scores[-1].shorter
    packets = None if any(scores.problem for scores in range_scores) else packets or range_scores[0].packets
    report.scoring = _with_whole_clips(report.scoring, packets, ends, shorter)
    distorted_times = chain.from_iterable(scores.distorted_times for scores in range_scores)
    out_of_step = _out_of_step(report, distorted_times, range_scores[0].starts)
    unequal = [text for text in (shorter, out_of_step) if text is not None]
    try:
        _evaluate(report, ends, unequal, strict=strict, thresholds=thresholds)
    except VkssimError as error:
        error.report = report
        raise
    return report


def _merged_records(records: Sequence[ScoringRecord | None]) -> ScoringRecord | None:
    """Return one record for the ranges of a run, whose records differ only in the decoders of their machines."""
    made = [record for record in records if record is not None]
    if not made:
        return None
    reference, distorted = (
        replace(
            clips[0],
            decoder=_listed(clip.decoder for clip in clips),
            decoder_reason=_listed(clip.decoder_reason for clip in clips),
            decoder_version=_listed(clip.decoder_version for clip in clips),
        )
        for clips in ([record.reference for record in made], [record.distorted for record in made])
    )
    return replace(made[0], reference=reference, distorted=distorted)


def _with_whole_clips(
    record: ScoringRecord | None, packets: ClipPackets | None, ends: Sequence[ReadOutcome], shorter: str | None
) -> ScoringRecord | None:
    """Return the record completed after both clips were read to their ends; unchanged if `packets` are None.

    `packets` are the packets of both video streams. The number of frames is recorded only for clips that ended together. A
    device reads the longer clip some frames past the end of the shorter one, and this distance differs between devices.
    """
    if record is None or packets is None:
        return record
    frames = [end.length if shorter is None else None for end in ends]
    reference, distorted = map(_whole, (record.reference, record.distorted), packets, frames)
    return replace(record, reference=reference, distorted=distorted)


def _listed(texts: Iterable[str | None]) -> str | None:
    return "; ".join(sorted({text for text in texts if text is not None})) or None


def _whole(clip: ClipFacts, packets: VideoPackets | None, frames: int | None) -> ClipFacts:
    frames = clip.frames if clip.frames is not None else frames
    duration, kbps = clip.duration, clip.kbps
    if packets is not None and packets.seconds is not None:
        duration, kbps = round(packets.seconds, 6), round(packets.bytes * 8 / packets.seconds / 1000, 3)
    elif duration is None and frames is not None and clip.fps is not None:
        duration = round(frames / clip.fps, 6)
    return replace(clip, frames=frames, duration=duration, kbps=kbps)


def _ends(range_scores: Sequence[RangeScores]) -> list[ReadOutcome]:
    """Return how both clips ended.

    If ranges were read from files with different content, the ends carry that as their problem. A file whose status changed
    between two ranges that one machine read was touched.
    """
    ends = []
    for clip, end in enumerate(range_scores[-1].ends):
        reads = [scores.ends[clip] for scores in range_scores]
        statuses = {read.status for read in reads if read.status is not None}
        machines = {status.partition(" ")[2] for status in statuses}
        touched = len(machines) < len(statuses) or any(read.touched for read in reads)
        problem = end.problem if len({read.version for read in reads}) == 1 else changed_error(end.path)
        remarks = tuple(sorted({remark for read in reads for remark in read.remarks}))
        ends.append(replace(end, problem=problem, touched=touched, remarks=remarks))
    return ends


def _evaluate(
    report: ScoreReport, ends: Sequence[ReadOutcome], unequal: Sequence[str], *, strict: bool, thresholds: Sequence[Threshold]
) -> None:
    """Add warnings to a report. Raises InputError for a problem of the clips, ThresholdError for scores below a threshold."""
    for name in report.names:
        missing = [report.frames[number].index for number in np.flatnonzero(np.isnan(report.column(name)))]
        if missing:
            report.warnings.append(
                f"{name} is null in {counted(len(missing), 'frame')} ({listed_frames(missing)}): their mean structure is"
                " negative, or samples are not numbers. negative=clamp counts a negative mean as 0"
            )
    damaged = dict.fromkeys(end.damaged() for end in ends if end.damage)
    for end in ends:
        report.warnings += end.warnings()
        if end.problem is not None:
            raise end.problem
        fewer = end.missing_frames()
        if fewer is not None:
            report.warnings.append(fewer)
            damaged.update({fewer: None} if end.falls_short else {})
    report.warnings[:] = dict.fromkeys(report.warnings)  # a clip that is scored against itself has each warning twice
    if not report.frames:
        raise InputError(_nothing_to_score(report, ends))
    report.warnings += reversed(unequal)
    failed = unmet(thresholds, report)
    report.unequal = "; ".join(unequal) or None
    if strict:
        failed = [f"{text} (`strict`)" for text in (*damaged, *unequal)] + failed
    if failed:
        raise ThresholdError("; ".join(failed))


def _nothing_to_score(report: ScoreReport, ends: Sequence[ReadOutcome]) -> str:
    """Return the error for clips without a pair.

    It states the lengths in the files: how far each clip was read is chance.
    """
    record = report.scoring
    assert record is not None
    flags = " ".join(given_flags(replace(record.selection, stream_reference=None, stream_distorted=None)))
    if not flags:
        return f"no frame to score: {' or '.join(dict.fromkeys(end.path for end in ends))} has no frames"
    lengths = [_length(end, clip.fps) for end, clip in zip(ends, (record.reference, record.distorted), strict=True)]
    return f"no frame to score: {flags} leaves none of {' and '.join(dict.fromkeys(lengths))}"


def _length(end: ReadOutcome, rate: float | None) -> str:
    if end.expected is None:
        return end.path
    seconds = f" ({end.expected / rate:g} s)" if rate else ""
    return f"{end.path}, which has {counted(end.expected, 'frame')}{seconds}"


def _out_of_step(
    report: ScoreReport, distorted_times: Iterable[float | None], starts: tuple[float, float] | None
) -> str | None:
    """Return the message about the first pair whose frames are more than half a frame apart, or about different frame rates.

    `starts` are the times of the first frames that are not skipped if pairs are made by time: these two count as simultaneous.
    Without it, the frames of the first pair do.
    """
    times = [
        (frame.index, frame.time, distorted_time)
        for frame, distorted_time in zip(report.frames, distorted_times, strict=True)
        if frame.time is not None and distorted_time is not None
    ]
    if report.rate is None or not times:
        return None

    start, distorted_start = starts or times[0][1:]
    for index, time, distorted_time in times:
        since, distorted_since = time - start, distorted_time - distorted_start
        if abs(since - distorted_since) > 0.5 / report.rate:
            first, advice = (
                ("frames compared", _PTS_ADVICE)
                if starts is None
                else ("frames that are not skipped", "; their packets announced other times")
            )
            return (
                f"from frame {index} on {report.reference} and {report.distorted} are out of step: {since:.3f} s and"
                f" {distorted_since:.3f} s after the first {first}{advice}"
            )
    # Clips of different rates may be too short to get out of step. The rates alone say little: containers estimate them from
    # packets, some of which are never shown.
    if (
        starts is not None
        or report.scoring is None
        or abs(since - distorted_since) <= _ROUNDED + _SAME_PACE * max(since, distorted_since)
    ):
        return None
    rate, distorted_rate = report.scoring.reference.fps, report.scoring.distorted.fps
    if rate is None or distorted_rate is None or rate == distorted_rate:
        return None
    return (
        f"{report.reference} has {rate:g} frames a second, {report.distorted} {distorted_rate:g}, and frames were paired by"
        f" their numbers{_PTS_ADVICE}"
    )


# -- offsets ----------------------------------------------------------------------------------------------------------


def offset_of(clips: Clips, options: ScoreOptions) -> int:
    """Return the offset of a pair as `find_offset` does. Raises OptionError too, for pairs that are made by time."""
    if options.sync != "index":
        raise OptionError("`find_offset` counts frames, and `sync=pts` pairs them by time; give one of the two")
    return find_offset(*clips.paths, raw=clips.raw, selection=options.selection, pictures=options.pictures)


def add_hint(report: ScoreReport, clips: Clips, options: ScoreOptions) -> None:
    """Give the report of a pair at most one piece of advice on how to pair the frames.

    If the clips scored low or their times differ, the first `_HINT_FRAMES` frames of both are read once more. If one offset
    matches all their parts, and their times do not, a warning names it unless they were scored with it, and the warnings about
    times lose their advice, which would pair other pictures.
    """
    selection = options.selection
    if options.sync != "index" or (selection.takes_all and len(report.frames) <= MIN_FRAMES):
        return  # the frames are paired by time already, or one of the clips is too short to tell
    if not (_is_low(report) or any(warning.endswith(_PTS_ADVICE) for warning in report.warnings)):
        return
    # Frames that are skipped have to be decoded as well.
    frames = _HINT_FRAMES - max(selection.first_reference, selection.first_distorted)
    if frames <= MIN_FRAMES or not all(map(can_reopen, clips.paths)):
        return
    try:
        shift = find_shift(clips.paths, clips.raw, selection, options.pictures, frames)
    except (VkssimError, MemoryError):  # the search failed or gave no certain offset; the scores are valid all the same
        return
    if shift.holds and not shift.times_match:
        report.warnings[:] = [warning.removesuffix(_PTS_ADVICE) for warning in report.warnings]
        if shift.offset:
            offset = selection.offset + shift.offset
            report.warnings.append(
                f"the clips seem to be shifted: frame i of {redact_url(clips.reference)} looks like frame i{offset:+d} of"
                f" {redact_url(clips.distorted)}, in the {counted(shift.frames, 'frame')} that were compared. --offset"
                f" {offset} or --find-offset would match them"
            )


def _is_low(report: ScoreReport) -> bool:
    """Return whether the clips scored low. Frames without a score do not count."""
    name = next(iter(report.similarities), None)  # None if all scores are in dB: a dB value alone says little
    if name is None or not report.frames:
        return False
    column = report.column(name)
    scores = column[~np.isnan(column)]
    return bool(scores.size and scores.mean() < _LOW_SIMILARITY)
