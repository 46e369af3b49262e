"""Score a range of the frames of two open clips: threads read ahead of the device, batch by batch."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from ..backends.base import Backend, Batch, OutOfRangeSample
from ..errors import InputError, RangeError
from ..frames.options import Selection
from ..frames.pairing.preprocessing import colour_warnings, common_format
from ..frames.pairing.schedule import Schedule, schedule_pairs
from ..frames.source import FrameSource, ReadOutcome, check_unchanged, sample_problem
from ..metrics import for_clips
from ..metrics.plane_metrics import FrameMetrics, FrameSequence, PlaneMetrics, plane_formats
from ..report.record import FeatureFacts, ScoringRecord, given_flags
from ..report.results import ScoreReport, merged_info, rows
from ..storage.location import redact_url
from ..types import Doubles, ExternalFrame, Samples
from ..utils.interruption import interruptible, result_of
from ..utils.sanitize import shell_line
from ..utils.thread_pool import ThreadPool, close_at_end, mark_in_use
from ..utils.version import __version__
from ..utils.wording import counted
from .options import Clips, ScoreOptions
from .ranges import (
    BatchScored,
    ClipPackets,
    Event,
    Fingerprints,
    FrameRange,
    RangeBegun,
    RangeBoundary,
    RangeScores,
    ScoredFrame,
)

_MAX_READERS = 4
"""The largest number of threads for each file; more would only wait for each other between reads."""

OpenBackend = Callable[[Sequence[PlaneMetrics]], Backend]
"""A function that opens the backend for the given planes and their metrics."""


def score_range(
    sources: tuple[FrameSource, FrameSource],
    clips: Clips,
    open_backend: OpenBackend,
    options: ScoreOptions,
    frame_range: FrameRange = FrameRange(),  # noqa: B008 - frozen
    earlier: Sequence[ScoredFrame] = (),
    on_event: Callable[[Event], object] = lambda _event: None,
    *,
    live: bool = False,
    profile: bool = False,
) -> RangeScores:
    """Score a range of the pairs of two open sources, reference first, that are still unread.

    `clips` gives the names in the report, and says how the clips were opened. The caller has already applied
    `options.pictures` to the sources. The backend is closed at the end; the sources are not. `on_event` gets the events of the
    range, except its end. The frames of `earlier` are the first of the range; they are read again, because only reading shows
    how the clips continue, but only the last of them is scored again. With `live`, `on_event` gets frames as soon as they are
    scored.

    The scores are not judged here, but in `verdict.py` after all ranges are complete. Raises RangeError if the sources turn out
    not to be readable in ranges, and VkssimError as `score_files` does.
    """
    with ExitStack() as stack:
        metrics = frame_metrics(sources, options)
        schedule = schedule_pairs(options.selection, *sources, options.sync)
        begins = _seek(frame_range.start, sources, schedule)

        backend = close_at_end(stack, open_backend(metrics.planes))
        before = dict(backend.stage_seconds())  # the backend may have scored other ranges before
        report = _new_report(sources, clips, metrics, backend, options)
        on_event(RangeBegun(replace(report, frames=[], warnings=[*report.warnings]), backend.batch_size))
        report.backend = merged_info([report.backend, *(scored_by for _, _, scored_by in earlier)])
        report.frames += [frame for frame, _, _ in earlier[:-1]]  # the last is scored again
        times = [time for _, time, _ in earlier[:-1]]

        run = stack.enter_context(_Run(sources, backend, schedule, report, metrics, frame_range, on_event, live, times))
        end = frame_range.end
        run.read_to(None if end is None else end.pairs - end.lead)
        follows = _check_range(frame_range, sources, schedule, report, run.reached)
        run.end()

        reference, distorted = sources
        pairs, skips = frame_range.first + len(report.frames), schedule.pairing.skips
        last = schedule.frames(pairs - 1) if pairs else (None, None)
        if profile:
            seconds = {"read": run.read_seconds, **backend.stage_seconds(), "host": run.host_seconds}
            report.stage_seconds = {stage: seconds[stage] - before.get(stage, 0.0) for stage in seconds}
        return RangeScores(
            report,
            run.distorted_times,
            (ReadOutcome.of(reference, last[0]), ReadOutcome.of(distorted, last[1])),
            run.shorter,
            (_time(reference, skips[0]), _time(distorted, skips[1])) if options.sync == "pts" else None,
            schedule.pairs,
            begins,
            follows,
            video_packets(sources, options.selection) if frame_range.is_whole else None,
        )


def _time(source: FrameSource, number: int) -> float:
    (time,) = source.times_of([number])
    return time or 0.0


def _seek(start: RangeBoundary | None, sources: tuple[FrameSource, FrameSource], schedule: Schedule) -> Fingerprints:
    """Seek both sources to the first frames that a range reads, and return the fingerprints of these frames."""
    if start is None:
        return None, None
    reference, distorted = sources
    numbers = schedule.frames(start.pairs - start.lead)
    return reference.seek(numbers[0], start.next[0]), distorted.seek(numbers[1], start.next[1])


def _verify(boundary: RangeBoundary, sources: tuple[FrameSource, FrameSource], schedule: Schedule) -> Fingerprints:
    """Check that both sources were read up to a boundary or its lead, and return the fingerprints of the frames after it."""
    (reference, distorted), last = sources, boundary.last
    numbers = schedule.frames(boundary.pairs - boundary.lead)
    return reference.verify_boundary(numbers[0], last[0]), distorted.verify_boundary(numbers[1], last[1])


def _check_range(
    frame_range: FrameRange,
    sources: tuple[FrameSource, FrameSource],
    schedule: Schedule,
    report: ScoreReport,
    reached: int,
) -> Fingerprints:
    """Return the fingerprints of the frames at the end of the range, which was read up to before the frame of number `reached`.

    Raises RangeError if a read from the start may differ.
    """
    if frame_range.is_whole:
        return None, None

    for source in sources:
        if source.damage or source.remarks or source.problem is not None:
            raise RangeError(f"{source.info.path} is damaged; the decoder's frames depend on where it begins")
        try:
            check_unchanged(source)
        except InputError as error:
            raise RangeError(str(error)) from None

    if frame_range.end is None:
        return None, None
    stop = frame_range.end.pairs - frame_range.end.lead
    if reached < schedule.index(stop):
        raise RangeError(f"{report.reference} and {report.distorted} end before pair {stop}")
    return _verify(frame_range.end, sources, schedule)


def frame_metrics(sources: tuple[FrameSource, FrameSource], options: ScoreOptions) -> FrameMetrics:
    """Return the metrics that the options ask for, of the planes that two sources have in common. Raises InputError."""
    luma = common_format(*sources, chroma=options.chroma)
    if all(source.external for source in sources):
        luma = luma.in_surfaces()
    formats = plane_formats(luma, options.planes, sources[0].info.chroma)
    reference, distorted = (source.info for source in sources)
    features = for_clips(options.features, reference.fps, distorted.own_size, distorted.own_bits)
    return FrameMetrics(features, formats, total=options.planes == "all", chroma=reference.chroma)


def _new_report(
    sources: tuple[FrameSource, FrameSource],
    clips: Clips,
    metrics: FrameMetrics,
    backend: Backend,
    options: ScoreOptions,
) -> ScoreReport:
    """Return the report as it is before the first frame."""
    info = sources[0].info
    warnings = [warning for source in sources for warning in source.info.warnings]
    return ScoreReport(
        redact_url(clips.reference),
        redact_url(clips.distorted),
        info.width,
        info.height,
        info.bits,
        metrics.names,
        backend.info,
        warnings=[*warnings, *colour_warnings(info, sources[1].info), *map(str, backend.warnings)],
        notes=[
            *(f"{source.info.path}: {note}" for source in sources for note in source.info.notes),
            *(metric.advice for metric in metrics.planes[0].metrics if metric.advice),
        ],
        rate=None if info.fps is None else float(info.fps),
        selection=options.selection,
        sync=options.sync,
        pictures=options.pictures,
        scoring=_new_record(sources, clips, metrics, backend.info.backend, options),
        similarities=metrics.similarities,
    )


def _new_record(
    sources: tuple[FrameSource, FrameSource],
    clips: Clips,
    metrics: FrameMetrics,
    backend: str,
    options: ScoreOptions,
) -> ScoringRecord:
    """Return the record of how two sources are scored. `verdict.py` adds the facts that only reading shows."""
    info = sources[0].info
    features = tuple(
        FeatureFacts(metric.name, plane.name, metric.settings, metric.automatic, metric.limit_db)
        for plane in metrics.planes
        for metric in plane.metrics
    )
    reference, distorted = (
        replace(source.clip_facts(), path=redact_url(path), resampler=source.info.resampler, cropped_to=source.info.own_crop)
        for source, path in zip(sources, clips.paths, strict=True)
    )

    record = ScoringRecord(
        version=__version__,
        command="",
        features=features,
        planes=options.planes,
        sync=options.sync,
        width=info.width,
        height=info.height,
        bits=info.bits,
        chroma=info.chroma if options.chroma else None,
        cropped_to=info.crop,
        selection=options.selection,
        pictures=options.pictures,
        raw=clips.raw,
        reference=reference,
        distorted=distorted,
    )

    texts = [metric.text for metric in metrics.planes[0].metrics]
    return replace(record, command=_command(record, texts, backend))


def _command(record: ScoringRecord, features: Sequence[str], backend: str) -> str:
    words = ["vkssim", "score", "-r", record.reference.path, "-d", record.distorted.path]
    for text in features:
        words += ["--feature", text]
    words += given_flags(record)
    for options in (record.selection, record.pictures, record.raw):
        words += given_flags(options)
    if backend != "vulkan":
        words += ["--backend", backend]
    return shell_line(words)


def video_packets(sources: tuple[FrameSource, FrameSource], selection: Selection) -> ClipPackets | None:
    """Return the packets of both video streams; None if only some frames were selected, or if a clip ended early."""
    if not selection.takes_all or any(source.problem is not None for source in sources):
        return None
    return sources[0].packets(), sources[1].packets()


@dataclass
class _Run:
    """The loop that reads batches, has them submitted, and collects their scores; use with `with`.

    If the report has frames already, the run continues after them.
    """

    sources: tuple[FrameSource, FrameSource]
    backend: Backend
    schedule: Schedule
    report: ScoreReport
    metrics: FrameMetrics
    frame_range: FrameRange
    """The pairs whose scores are wanted; neighbours are read too. The sources are at the first pair that is read."""
    on_batch: Callable[[BatchScored], object]
    live: bool
    """True if a batch is collected before the next one is read."""
    distorted_times: list[float | None]
    """The presentation times of all frames in the distorted clip."""
    reached: int = 0
    """The number of the frame after the last one that was read and computed."""
    before: Batch | None = None
    """The batch that was submitted last, with the pairs before the next ones."""
    read_seconds: float = 0.0
    host_seconds: float = 0.0
    is_out_of_range: bool = False
    """True if a sample was larger than its depth allows, which ends the run."""

    def __post_init__(self) -> None:
        self.readers = [_SourceReader(source) for source in self.sources]
        self.started = time.perf_counter()
        self.shorter = self.schedule.unmatched
        before = self.metrics.frames_before
        self.step = 1 if before else self.schedule.step
        """The step in which pairs are read: neighbours are read, also if the schedule leaves them out."""
        first = self.frame_range.first + len(self.report.frames)
        self.next_given = self.first_wanted = self.schedule.index(first)
        lead = min(before, self.next_given - self.schedule.start)
        self.sequence = FrameSequence(self.metrics, lead=lead)
        self.next_read = self.reached = self.next_given - lead

    def read_to(self, pairs: int | None) -> None:
        """Read and compute the pairs before the one of a number, or all that are left, and collect their scores."""
        self._read_on(self.schedule.stop if pairs is None else self.schedule.index(pairs))

    def _read_on(self, limit: int | None) -> None:
        for batch, frames in self._filled_batches(limit):
            self.backend.submit(batch, frames, self.before)
            self.before = batch

    def _filled_batches(self, limit: int | None) -> Iterator[tuple[Batch, int]]:
        """Yield batches and their numbers of frames, each to be submitted at once, and collect their scores.

        The batches begin after the frames that were read. They end with a source or at the limit.
        """
        backend, step = self.backend, self.step
        free = deque(backend.batches)
        reading: deque[tuple[Batch, range, list[list[Future[int]]]]] = deque()
        in_flight: deque[tuple[Batch, range]] = deque()
        ended = False
        # A video engine takes much longer for a batch than the kernels. So the batch in flight is collected meanwhile, and the
        # decoders never wait for a free one. Other frames may be read so quickly that the device would wait.
        collects_early = self.live or backend.batches[0].external is not None

        while not self.is_out_of_range:
            while free and not ended and (limit is None or self.next_read < limit):
                batch = free.popleft()
                stop = self.next_read + backend.batch_size * step
                numbers = range(self.next_read, stop if limit is None else min(stop, limit), step)
                reading.append((batch, numbers, self._start_reading(batch, numbers)))
                self.next_read += len(numbers) * step

            if in_flight and (
                not reading
                or (not free and backend.is_done(in_flight[0][0]))
                or (collects_early and not _are_read(reading[0][2]))
            ):
                free.append(self._collect(*in_flight.popleft()))
            elif reading:
                batch, numbers, futures = reading.popleft()
                # Frames after a bad one may be good, but do not count.
                frames = 0 if ended else self._frames_read(numbers, futures)
                ended = ended or frames < len(numbers)
                if frames:
                    yield batch, frames
                    in_flight.append((batch, numbers[:frames]))
                else:
                    free.append(batch)
            else:
                break
        self._note_lengths()

    def end(self) -> None:
        """Settle the scores that depend on the pairs after the last one, which are read if the range ends before them.

        The clip may end after some of these. Raises RangeError if not even the next pair is there.
        """
        after = self.metrics.frames_after
        if not after:
            return
        end = self.frame_range.end
        if end is None:
            self._give(self.sequence.end())
            return
        stop = self.schedule.index(end.pairs)
        self._read_on(stop + after)
        waiting = stop - self.next_given
        if waiting == 0:
            return
        columns = self.sequence.end()
        if len(next(iter(columns.values()), ())) > waiting:
            self._give({name: column[:waiting] for name, column in columns.items()})
        else:
            raise RangeError(f"{self.report.reference} and {self.report.distorted} end before pair {end.pairs + 1}")

    def _start_reading(self, batch: Batch, numbers: range) -> list[list[Future[int]]]:
        pairing = self.schedule.pairing
        first, second = pairing.reference(numbers), pairing.distorted(numbers)
        reference, distorted = self.readers
        if batch.external is not None:
            return [reference.start_external(first, batch.external[0]), distorted.start_external(second, batch.external[1])]
        return [reference.start(first, batch.reference), distorted.start(second, batch.distorted)]

    def _frames_read(self, numbers: range, futures: list[list[Future[int]]]) -> int:
        waited = time.perf_counter()
        counts = [reader.finish(reads, len(numbers)) for reader, reads in zip(self.readers, futures, strict=True)]
        self.read_seconds += time.perf_counter() - waited
        if counts[0] != counts[1] and self.shorter is None and all(source.problem is None for source in self.sources):
            short, long = (0, 1) if counts[0] < counts[1] else (1, 0)
            scored = len(self._of_schedule(range(self.schedule.start, numbers.start + counts[short] * numbers.step)))
            self.shorter = (
                f"{self.sources[short].info.path} is shorter than {self.sources[long].info.path}; the first"
                f" {counted(scored, 'pair')} {'was' if scored == 1 else 'were'} scored"
            )
        return min(counts)

    def _collect(self, batch: Batch, numbers: range) -> Batch:
        with interruptible():
            means = self.backend.collect(batch)
        collected = time.perf_counter()
        if batch.out_of_range is not None:
            self._end_at(numbers, batch.out_of_range)
            numbers = numbers[: batch.out_of_range.frame]
            means = [[terms[: len(numbers)] for terms in plane] for plane in means]
        if numbers:
            self.reached = numbers.stop
            self._give(self.sequence.add(means))
        self.host_seconds += time.perf_counter() - collected
        return batch

    def _give(self, columns: Mapping[str, Doubles]) -> None:
        """Add the scores of the next frames to the report, and pass them on."""
        report, schedule = self.report, self.schedule
        first, count = self.frame_range.first + len(report.frames), len(next(iter(columns.values()), ()))
        settled = range(self.next_given, self.next_given + count * self.step, self.step)
        self.next_given = settled.start + count * self.step
        numbers = self._of_schedule(settled)
        if not numbers:
            return
        if len(numbers) < count:
            columns = {name: column[numbers.start - settled.start :: schedule.step] for name, column in columns.items()}

        pairing, (reference, distorted) = schedule.pairing, self.sources
        times, distorted_times = reference.times_of(pairing.reference(numbers)), distorted.times_of(pairing.distorted(numbers))
        self.distorted_times += distorted_times
        scored = rows(columns, pairing.indices(numbers), times)
        report.frames += scored
        report.seconds = time.perf_counter() - self.started
        self.on_batch(BatchScored(first, scored, distorted_times, schedule.pairs, self.backend.info))

    def _of_schedule(self, numbers: range) -> range:
        """Return those of some pairs that the schedule does not leave out."""
        step = self.schedule.step
        first = numbers.start + (self.schedule.start - numbers.start) % step
        return range(first, numbers.stop, step)

    def _end_at(self, numbers: range, sample: OutOfRangeSample) -> None:
        """End the run before a pair with a sample that is larger than its depth allows."""
        pairing, source = self.schedule.pairing, self.sources[sample.clip]
        frame = (pairing.reference, pairing.distorted)[sample.clip](numbers)[sample.frame]
        source.problem = sample_problem(source.info, frame, sample.plane, sample.value)
        self.is_out_of_range = True

    def _note_lengths(self) -> None:
        """Note a shorter file whose end the run did not reach: its length was known before, or subsampling skipped its end."""
        pairing, selected_stop = self.schedule.pairing, self.schedule.selected_stop
        lengths = [source.length for source in self.sources]
        left = [length - skip for length, skip in zip(lengths, pairing.skips, strict=True) if length is not None]
        if self.shorter is not None or len(left) < 2 or left[0] == left[1]:
            return
        if selected_stop is None or min(left) < selected_stop:
            self.shorter = (
                f"{self.sources[0].info.path} has {counted(left[0], 'frame')} to compare,"
                f" {self.sources[1].info.path} {left[1]}; the {counted(min(left), 'pair')} that both have"
                f" {'was' if min(left) == 1 else 'were'} compared"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, failure: BaseException | None, _trace: TracebackType | None) -> None:
        for source in self.sources:
            if failure is not None:  # the frames that are being read are no longer needed
                source.give_up()
        ended = [reader.close() for reader in self.readers]
        if failure is not None and not all(ended):
            mark_in_use(failure)


def _are_read(clips: Sequence[Sequence[Future[int]]]) -> bool:
    return all(future.done() for reads in clips for future in reads)


class _SourceReader:
    """The threads that read one source, so that reading overlaps with the device and with the other source."""

    def __init__(self, source: FrameSource) -> None:
        self._source = source
        self._threads = min(_MAX_READERS, os.cpu_count() or 1) if source.concurrent else 1
        self._pool = ThreadPool(self._threads, "vkssim-read")

    def start_external(self, numbers: Sequence[int], frames: Sequence[ExternalFrame]) -> list[Future[int]]:
        return [self._pool.submit(self._source.read_external, numbers, frames[: len(numbers)])]

    def start(self, numbers: Sequence[int], planes: Sequence[Samples]) -> list[Future[int]]:
        size = self._frames_each(len(numbers))
        targets = list(zip(*planes, strict=True))[: len(numbers)]
        return [
            self._pool.submit(self._source.read, numbers[first : first + size], targets[first : first + size])
            for first in range(0, len(numbers), size)
        ]

    def finish(self, reads: list[Future[int]], frames: int) -> int:
        """Return how many of `frames` frames were read without a gap: a file may be truncated while it is read."""
        size, count = self._frames_each(frames), 0
        for read in [result_of(future) for future in reads]:
            count += read
            if read < size:
                break
        return count

    def _frames_each(self, frames: int) -> int:
        return max(1, -(-frames // self._threads))

    def close(self) -> bool:
        """Wait for the reads in progress, and return False if they do not end in time."""
        return self._pool.close()
