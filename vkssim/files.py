"""Scores two video files: reads both ahead of the device, batch after batch."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np

from .backends.base import Backend, Batch
from .demands import Demand, check_names, parse_demand, unmet
from .errors import DemandError, InputError, InterruptedRunError, VkssimError
from .formats import FrameFormat
from .frames.open import RawDescription
from .frames.pictures import PictureOptions, colour_warnings, open_pair
from .frames.source import FrameSource
from .planes import FrameMetrics, plane_formats
from .results import ScoreReport
from .scorer import FrameScores, open_backend, rows
from .selection import Schedule, Selection
from .timing import Clock
from .types import Samples

Progress = Callable[[int, int | None], None]
"""Called with the frames scored so far and their total, None where it is not known."""

OnFrames = Callable[[Sequence[FrameScores]], None]
"""Called with frames that have just been scored, in order."""

_MOST_READERS = 4  # of each file; more only wait for each other between their reads
_MOST_NAMED_FRAMES = 8


def score_files(
    reference: str | os.PathLike[str],
    distorted: str | os.PathLike[str],
    *,
    features: Sequence[str] | str = ("float_ms_ssim", "float_ssim"),
    planes: str = "y",
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),  # noqa: B008 - frozen
    sync: str = "index",
    pictures: PictureOptions = PictureOptions(),  # noqa: B008 - frozen
    strict: bool = False,
    backend: str = "vulkan",
    device: str | int | None = None,
    profile: bool = False,
    progress: Progress | None = None,
    on_frames: OnFrames | None = None,
    fail_under: Sequence[str] = (),
) -> ScoreReport:
    """Score a distorted clip against its reference, frame by frame.

    Parameters
    ----------
    reference, distorted
        Files: raw YUV, Y4M, or what FFmpeg reads, pictures and their sequences (``frame_%04d.png``) among them; ``-`` for raw
        or Y4M on standard input, one of the two.
    features
        Metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``.
    planes
        ``"y"``, the luma; ``"yuv"``, all three planes; ``"all"``, also their mean weighted by area. See `Scorer`.
    raw
        Size, pixel format and depth of raw files.
    selection
        Which frames are compared.
    sync
        ``"index"`` pairs frames by their number, ``"pts"`` by the time at which they are shown.
    pictures
        Whether they are scaled or cropped first.
    strict
        Raise DemandError where one file is shorter than the other, or frames have no partner; otherwise the report has a
        warning.
    backend, device
        Where to compute; see `Scorer`.
    profile
        Take the time of each stage, for `ScoreReport.stage_seconds`.
    progress
        Called after every batch.
    on_frames
        Called with each frame as soon as it is scored. Batches are of one frame then, and none waits for the next: scores come
        early, but fewer a second.
    fail_under
        Raise DemandError where a pooled score is lower: ``"float_ms_ssim=0.98"`` for the mean, ``"float_ms_ssim:p5=0.95"`` for
        another pooled value (`vkssim.demands.POOLINGS`). One that does not exist counts as lower.

    Returns
    -------
    ScoreReport
        Scores of every pair of frames.

    Raises
    ------
    VkssimError
        See `vkssim.errors`. Where frames were scored before it went wrong its attribute `report` holds them.

    """
    demands = [parse_demand(text) for text in fail_under]
    paths = os.fspath(reference), os.fspath(distorted)
    if paths == ("-", "-"):
        raise InputError("reference and distorted are both standard input; one of them must be a file")
    with ExitStack() as stack:
        sources = open_pair(*paths, raw, pictures, chroma=planes != "y")
        for source in sources:
            stack.enter_context(source)
        info = sources[0].info
        formats = plane_formats(common_format(*sources, chroma=planes != "y"), planes, info.chroma)
        metrics = FrameMetrics(features, formats, total=planes == "all")
        check_names(demands, metrics.names, metrics.similarities)
        schedule = selection.schedule(*sources, sync)
        batch = None if on_frames is None else 1
        engine = stack.enter_context(open_backend(backend, metrics.planes, device=device, batch=batch, profile=profile))
        report = ScoreReport(*paths, info.width, info.height, info.bits, metrics.names, engine.info)
        report.similarities = metrics.similarities
        report.rate = None if info.fps is None else float(info.fps)
        report.notes = [f"{source.info.path}: {note}" for source in sources for note in source.info.notes]
        report.warnings = colour_warnings(info, sources[1].info)
        report.selection, report.sync, report.pictures = selection, sync, pictures
        clock = Clock(sources, schedule.pairing, sync)
        run = _Run(sources, engine, schedule, clock, report, metrics, progress, on_frames)
        try:
            stack.enter_context(run)
            run.score()
            _judge(report, sources, clock, run, strict, demands)
        except VkssimError as error:
            error.report = report
            raise
        except KeyboardInterrupt:
            stopped = InterruptedRunError(f"stopped after {len(report.frames)} frames; what was scored is kept")
            stopped.report = report
            raise stopped from None
        finally:
            if profile:
                report.stage_seconds = {"read": run.read_seconds, **engine.stage_seconds(), "host": run.host_seconds}
    return report


def common_format(reference: FrameSource, distorted: FrameSource, *, chroma: bool = False) -> FrameFormat:
    """The format of the luma of both sources. Raises InputError where they differ, with `chroma` also where that does."""
    first, second = reference.info, distorted.info
    if (first.width, first.height, first.bits) != (second.width, second.height, second.bits):
        described = [f"{info.path} is {info.width}x{info.height} with {info.bits} bits" for info in (first, second)]
        raise InputError(
            f"{described[0]}, {described[1]}; they must be alike. --scale reference brings both to the size of the"
            " reference, and the one of less depth to that of the other"
        )
    if chroma and first.chroma != second.chroma:
        raise InputError(
            f"{first.path} is {first.chroma}, {second.path} {second.chroma}: their chroma has not the same size. Score the luma"
            " alone (--planes y), or convert one of them"
        )
    return FrameFormat.of_bits(first.width, first.height, first.bits)


def _judge(
    report: ScoreReport, sources: Sequence[FrameSource], clock: Clock, run: _Run, strict: bool, demands: Sequence[Demand]
) -> None:
    for name in report.names:
        missing = [frame.index for frame in report.frames if np.isnan(frame.metrics[name])]
        if missing:
            report.warnings.append(_null_warning(name, missing))
    for source in sources:
        if source.problem is not None:
            raise source.problem
        claimed, found = source.info.frames, source.length
        if claimed is not None and found is not None and found < claimed:
            report.warnings.append(f"{source.info.path} says that it has {claimed} frames; only {found} could be decoded")
    if not report.frames:
        raise InputError(
            f"no frame to score in {sources[0].info.path} and {sources[1].info.path}: one is empty, or all frames are skipped"
        )
    if clock.out_of_step is not None:
        report.warnings.append(clock.out_of_step)
    failed = unmet(demands, report)
    if run.shorter is not None:
        report.warnings.append(run.shorter)
        if strict:
            failed.insert(0, f"{run.shorter} (--strict)")
    if failed:
        raise DemandError("; ".join(failed))


def _null_warning(name: str, missing: Sequence[int]) -> str:
    listed = ", ".join(map(str, missing[:_MOST_NAMED_FRAMES])) + (", …" if len(missing) > _MOST_NAMED_FRAMES else "")
    return (
        f"{name} is null in {len(missing)} frames ({listed}): their mean structure is negative, or samples are not numbers."
        " negative=clamp counts a negative mean as 0"
    )


class _Run:
    """Batches on their way: reading, then on the device, then scored. Use with `with`."""

    def __init__(
        self,
        sources: Sequence[FrameSource],
        engine: Backend,
        schedule: Schedule,
        clock: Clock,
        report: ScoreReport,
        metrics: FrameMetrics,
        progress: Progress | None,
        on_frames: OnFrames | None,
    ) -> None:
        self._sources = sources
        self._engine = engine
        self._schedule = schedule
        self._clock = clock
        self._report = report
        self._metrics = metrics
        self._progress = progress
        self._on_frames = on_frames
        self._readers = [_Reader(source) for source in sources]
        self.read_seconds = 0.0
        self.host_seconds = 0.0
        self.shorter = schedule.unmatched

    def score(self) -> None:
        """Read, submit and collect until a source ends."""
        engine, schedule, step = self._engine, self._schedule, self._schedule.step
        limit = schedule.stop
        total = None if schedule.expected is None else len(range(schedule.start, schedule.expected, step))
        free = deque(engine.batches)
        reading: deque[tuple[Batch, range, list[list[Future[int]]]]] = deque()
        in_flight: deque[tuple[Batch, range]] = deque()
        next_number = schedule.start
        ended = False
        started = time.perf_counter()
        while True:
            while free and not ended and (limit is None or next_number < limit):
                batch = free.popleft()
                stop = next_number + engine.batch_size * step
                numbers = range(next_number, stop if limit is None else min(stop, limit), step)
                reading.append((batch, numbers, self._start_reading(batch, numbers)))
                next_number = stop
            if in_flight and (
                not reading
                or (not free and engine.is_done(in_flight[0][0]))
                or (self._on_frames is not None and not _all_done(reading[0][2]))
            ):
                free.append(self._collect(*in_flight.popleft(), total, started))
            elif reading:
                batch, numbers, futures = reading.popleft()
                frames = self._frames_read(numbers, futures)
                ended = ended or frames < len(numbers)
                if frames:
                    engine.submit(batch, frames)
                    in_flight.append((batch, numbers[:frames]))
                else:
                    free.append(batch)
            else:
                break
        self._note_lengths()

    def _start_reading(self, batch: Batch, numbers: range) -> list[list[Future[int]]]:
        pairing = self._schedule.pairing
        reference, distorted = self._readers
        return [
            reference.start(pairing.reference(numbers), batch.reference),
            distorted.start(pairing.distorted(numbers), batch.distorted),
        ]

    def _frames_read(self, numbers: range, futures: list[list[Future[int]]]) -> int:
        waited = time.perf_counter()
        counts = [reader.finish(parts) for reader, parts in zip(self._readers, futures, strict=True)]
        self.read_seconds += time.perf_counter() - waited
        if counts[0] != counts[1] and self.shorter is None and all(source.problem is None for source in self._sources):
            short, long = (0, 1) if counts[0] < counts[1] else (1, 0)
            scored = (numbers.start - self._schedule.start) // numbers.step + counts[short]
            self.shorter = (
                f"{self._sources[short].info.path} is shorter than {self._sources[long].info.path}; the first {scored} pairs"
                " were scored"
            )
        return min(counts)

    def _collect(self, batch: Batch, numbers: range, total: int | None, started: float) -> Batch:
        report = self._report
        means = self._engine.collect(batch)
        collected = time.perf_counter()
        scored = rows(self._metrics.finish(means), self._schedule.pairing.indices(numbers), self._clock.times(numbers))
        report.frames += scored
        report.seconds = time.perf_counter() - started
        self.host_seconds += time.perf_counter() - collected
        if self._progress is not None:
            self._progress(len(report.frames), total)
        if self._on_frames is not None:
            self._on_frames(scored)
        return batch

    def _note_lengths(self) -> None:
        """Note a shorter file whose end reading did not meet: lengths are known at the start, or subsampling passed it."""
        pairing, asked = self._schedule.pairing, self._schedule.asked_stop
        lengths = [source.length for source in self._sources]
        left = [length - skip for length, skip in zip(lengths, pairing.skips, strict=True) if length is not None]
        if self.shorter is not None or len(left) < 2 or left[0] == left[1]:
            return
        if asked is None or min(left) < asked:
            self.shorter = (
                f"{self._sources[0].info.path} has {left[0]} frames to compare, {self._sources[1].info.path} {left[1]};"
                f" the {min(left)} pairs that both have were compared"
            )

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *exception: object) -> None:
        for reader in self._readers:
            reader.close()


def _all_done(futures: list[list[Future[int]]]) -> bool:
    return all(future.done() for parts in futures for future in parts)


class _Reader:
    """Reads one source on threads of its own, so that reading overlaps with the device and with the other source."""

    def __init__(self, source: FrameSource) -> None:
        self._source = source
        threads = min(_MOST_READERS, os.cpu_count() or 1) if source.concurrent else 1
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="vkssim-read")

    def start(self, numbers: Sequence[int], planes: Sequence[Samples]) -> list[Future[int]]:
        size = max(1, -(-len(numbers) // self._threads))
        targets = list(zip(*planes, strict=True))[: len(numbers)]
        return [
            self._pool.submit(self._source.read, numbers[first : first + size], targets[first : first + size])
            for first in range(0, len(numbers), size)
        ]

    @staticmethod
    def finish(parts: list[Future[int]]) -> int:
        return sum(future.result() for future in parts)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
