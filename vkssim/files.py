"""Scores two video files: reads both ahead of the device, batch after batch."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np

from .backends.base import Backend, Batch
from .errors import DemandError, InputError, InterruptedRunError, VkssimError
from .features.base import FrameScorer
from .formats import FrameFormat
from .frames.open import RawDescription, open_source
from .frames.source import FrameSource
from .results import ScoreReport
from .scorer import finish, make_scorers, open_backend, rows
from .types import Samples

Progress = Callable[[int, int | None], None]
"""Called with the frames scored so far and their total, None where it is not known."""

EngineOpener = Callable[[FrameFormat, Sequence[FrameScorer]], Backend]
"""Gives the backend for frames of a format and their metrics."""

_MOST_READERS = 4  # of each file; more only wait for each other between their reads
_MOST_NAMED_FRAMES = 8


@dataclass(frozen=True)
class Selection:
    """Which frames are compared: every `subsample`-th pair, at most `count` pairs in, after skipping some of each file."""

    skip_reference: int = 0
    skip_distorted: int = 0
    count: int | None = None
    subsample: int = 1

    def __post_init__(self) -> None:
        for name, value, least in (
            ("--frame_skip_ref", self.skip_reference, 0),
            ("--frame_skip_dist", self.skip_distorted, 0),
            ("--frame_cnt", self.count, 1),
            ("--subsample", self.subsample, 1),
        ):
            if value is not None and value < least:
                raise InputError(f"{name} is {value}; it must be {least} or more")

    def pairs(self, reference: FrameSource, distorted: FrameSource) -> int | None:
        """How many pairs there are before subsampling, or None where that is not known."""
        known = [
            max(0, source.info.frames - skip)
            for source, skip in ((reference, self.skip_reference), (distorted, self.skip_distorted))
            if source.concurrent and source.info.frames is not None
        ]
        if self.count is not None:
            known.append(self.count)
        return min(known) if len(known) >= (2 if self.count is None else 3) else None

    def expected_pairs(self, reference: FrameSource, distorted: FrameSource) -> int | None:
        """The same by what the sources say of themselves, which may be wrong: for the progress bar only."""
        skips = (reference, self.skip_reference), (distorted, self.skip_distorted)
        expected = [max(0, source.expected - skip) for source, skip in skips if source.expected is not None]
        return min([*expected, self.count or max(expected)]) if expected else None


def score_files(
    reference: str | os.PathLike[str],
    distorted: str | os.PathLike[str],
    *,
    features: Sequence[str] | str = ("float_ms_ssim", "float_ssim"),
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),
    strict: bool = False,
    backend: str = "vulkan",
    device: str | int | None = None,
    profile: bool = False,
    progress: Progress | None = None,
) -> ScoreReport:
    """Score a distorted clip against its reference, frame by frame.

    Parameters
    ----------
    reference, distorted
        Files: raw YUV, Y4M, or a container that FFmpeg reads; ``-`` for raw or Y4M on standard input, one of the two.
    features
        Metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``.
    raw
        Size, pixel format and depth of raw files.
    selection
        Which frames are compared.
    strict
        Raise DemandError where one file is shorter than the other; otherwise the report has a warning.
    backend, device
        Where to compute; see `Scorer`.
    profile
        Take the time of each stage, for `ScoreReport.stage_seconds`.
    progress
        Called after every batch.

    Returns
    -------
    ScoreReport
        Luma scores of every pair of frames.

    Raises
    ------
    VkssimError
        See `vkssim.errors`. Where frames were scored before it went wrong its attribute `report` holds them.

    """
    paths = os.fspath(reference), os.fspath(distorted)
    if paths == ("-", "-"):
        raise InputError("reference and distorted are both standard input; one of them must be a file")
    with ExitStack() as stack:
        first, second = (stack.enter_context(open_source(path, raw)) for path in paths)
        return score_sources(
            (first, second),
            paths,
            partial(open_backend, backend, device=device, profile=profile),
            features=features,
            selection=selection,
            strict=strict,
            profile=profile,
            progress=progress,
        )


def score_sources(
    sources: tuple[FrameSource, FrameSource],
    paths: tuple[str, str],
    open_engine: EngineOpener,
    *,
    features: Sequence[str] | str,
    selection: Selection,
    strict: bool = False,
    profile: bool = False,
    progress: Progress | None = None,
) -> ScoreReport:
    """Score two sources that are open already, reference first, on the backend that `open_engine` gives; else as `score_files`.

    `paths` are their names in the report. The backend is closed at the end, the sources are not.
    """
    with ExitStack() as stack:
        frame = common_format(*sources)
        scorers = make_scorers(features, frame)
        engine = stack.enter_context(open_engine(frame, scorers))
        names = tuple(name for scorer in scorers for name in scorer.names)
        info = sources[0].info
        report = ScoreReport(*paths, info.width, info.height, info.bits, names, engine.info)
        run = _Run(sources, engine, selection, report, lambda means: finish(scorers, means), progress)
        try:
            stack.enter_context(run)
            run.score()
            _judge(report, sources, run, strict)
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


def common_format(reference: FrameSource, distorted: FrameSource) -> FrameFormat:
    """The format of both sources. Raises InputError where they differ."""
    first, second = reference.info, distorted.info
    if (first.width, first.height, first.bits) != (second.width, second.height, second.bits):
        described = [f"{info.path} is {info.width}x{info.height} with {info.bits} bits" for info in (first, second)]
        raise InputError(f"{described[0]}, {described[1]}; they must be alike. Scale or convert one of them first")
    return FrameFormat.of_bits(first.width, first.height, first.bits)


def _judge(report: ScoreReport, sources: Sequence[FrameSource], run: _Run, strict: bool) -> None:
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
    if run.shorter is not None:
        report.warnings.append(run.shorter)
        if strict:
            raise DemandError(f"{run.shorter} (--strict)")


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
        selection: Selection,
        report: ScoreReport,
        finish_means: Callable[..., dict[str, np.ndarray]],
        progress: Progress | None,
    ) -> None:
        self._sources = sources
        self._engine = engine
        self._selection = selection
        self._report = report
        self._finish = finish_means
        self._progress = progress
        self._readers = [_Reader(source) for source in sources]
        self.read_seconds = 0.0
        self.host_seconds = 0.0
        self.shorter: str | None = None

    def score(self) -> None:
        """Read, submit and collect until a source ends."""
        engine, selection = self._engine, self._selection
        pairs = selection.pairs(*self._sources)
        limit = selection.count if pairs is None else pairs
        expected = pairs if pairs is not None else selection.expected_pairs(*self._sources)
        total = None if expected is None else -(-expected // selection.subsample)
        free = deque(engine.batches)
        reading: deque[tuple[Batch, range, list[list[Future[int]]]]] = deque()
        in_flight: deque[tuple[Batch, range]] = deque()
        next_number = 0
        ended = False
        started = time.perf_counter()
        while True:
            while free and not ended and (limit is None or next_number < limit):
                batch = free.popleft()
                stop = next_number + engine.batch_size * selection.subsample
                numbers = range(next_number, stop if limit is None else min(stop, limit), selection.subsample)
                reading.append((batch, numbers, self._start_reading(batch, numbers)))
                next_number = stop
            if in_flight and (not reading or (not free and engine.is_done(in_flight[0][0]))):
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
        skips = self._selection.skip_reference, self._selection.skip_distorted
        planes = batch.reference, batch.distorted
        return [
            reader.start(range(numbers.start + skip, numbers.stop + skip, numbers.step), target)
            for reader, skip, target in zip(self._readers, skips, planes, strict=True)
        ]

    def _frames_read(self, numbers: range, futures: list[list[Future[int]]]) -> int:
        waited = time.perf_counter()
        counts = [reader.finish(parts) for reader, parts in zip(self._readers, futures, strict=True)]
        self.read_seconds += time.perf_counter() - waited
        if counts[0] != counts[1] and self.shorter is None and all(source.problem is None for source in self._sources):
            short, long = (0, 1) if counts[0] < counts[1] else (1, 0)
            scored = numbers.start // numbers.step + counts[short]
            self.shorter = (
                f"{self._sources[short].info.path} is shorter than {self._sources[long].info.path}; the first {scored} pairs"
                " were scored"
            )
        return min(counts)

    def _collect(self, batch: Batch, numbers: range, total: int | None, started: float) -> Batch:
        report = self._report
        means = self._engine.collect(batch)
        collected = time.perf_counter()
        report.frames += rows(self._finish(means), numbers)
        report.seconds = time.perf_counter() - started
        self.host_seconds += time.perf_counter() - collected
        if self._progress is not None:
            self._progress(len(report.frames), total)
        return batch

    def _note_lengths(self) -> None:
        """Note a shorter file whose end reading did not meet: lengths are known at the start, or subsampling passed it."""
        selection = self._selection
        lengths = [source.length for source in self._sources]
        skips = selection.skip_reference, selection.skip_distorted
        left = [length - skip for length, skip in zip(lengths, skips, strict=True) if length is not None]
        if self.shorter is not None or len(left) < 2 or left[0] == left[1]:
            return
        if selection.count is None or min(left) < selection.count:
            self.shorter = (
                f"{self._sources[0].info.path} has {left[0]} frames to compare, {self._sources[1].info.path} {left[1]};"
                f" the {min(left)} pairs that both have were compared"
            )

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *exception: object) -> None:
        for reader in self._readers:
            reader.close()


class _Reader:
    """Reads one source on threads of its own, so that reading overlaps with the device and with the other source."""

    def __init__(self, source: FrameSource) -> None:
        self._source = source
        threads = min(_MOST_READERS, os.cpu_count() or 1) if source.concurrent else 1
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="vkssim-read")

    def start(self, numbers: range, targets: Samples) -> list[Future[int]]:
        part = -(-len(numbers) // self._threads)
        return [
            self._pool.submit(
                self._source.read, numbers[first : first + part], list(targets[first : first + part][: len(numbers) - first])
            )
            for first in range(0, len(numbers), part)
        ]

    @staticmethod
    def finish(parts: list[Future[int]]) -> int:
        return sum(future.result() for future in parts)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
