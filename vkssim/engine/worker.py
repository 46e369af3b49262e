"""Do tasks on one device, which stays open from task to task."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import partial
from queue import SimpleQueue

from ..backends.base import Backend
from ..backends.decoding import hardware_decoder
from ..backends.open import open_backend
from ..errors import DeviceError, InputError
from ..frames.decode.hardware import HardwareDecoder
from ..frames.info import VideoInfo
from ..frames.inputs import sequence
from ..frames.open import open_file, oriented
from ..frames.options import RawDescription
from ..frames.pairing.preprocessing import match_pair
from ..frames.pairing.schedule import Schedule, schedule_pairs
from ..frames.pairing.tee import Tee
from ..frames.source import FrameSource
from ..metrics.plane_metrics import PlaneMetrics
from ..storage.location import is_url
from ..utils.interruption import take
from ..utils.thread_pool import Closable, ThreadPool, close_at_end, is_in_use, leave_open, run_in_thread
from .options import Clips, ScoreOptions
from .ranges import BatchScored, FrameRange, RangeBegun, divided
from .rates import PIXELS_A_SECOND
from .run import frame_metrics, score_range, video_packets
from .source_cache import SourceCache, Sources
from .task import ClipsOpened, Part, Task, TaskEvent, TaskResult, TaskStoppedError, Tell, WorkerSpec

_MIN_BATCHES = 4
_BATCHES_EACH = 2  # one batch is filled while the device works on the other

_MIN_SECONDS_EACH = 0.2
"""The least time in seconds for which workers of a GPU share a pair, for each of them, at the assumed speed. Each opens two
decoders, and the driver starts one after the other, so that several workers would take longer for a short pair than one."""


def slots_for(runs: int) -> int:
    """Return the number of batches of a backend for that many runs at a time."""
    return max(_MIN_BATCHES, _BATCHES_EACH * runs)


class Worker(Closable):
    """A worker that divides clips, and scores their ranges on one device; use with `with`.

    The device stays open for the next worker of the process; see `backends.sessions`. `workers` share the `slots` batches of a
    backend. They also share `decoders`, which has the hardware decoder for each value of `decode`, and `warned`, which has the
    formats of frames for which a report has the warnings of the device.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        slots: int = _MIN_BATCHES,
        workers: int = 1,
        decoders: dict[str, HardwareDecoder | None] | None = None,
        warned: set[object] | None = None,
    ) -> None:
        self._spec = spec
        self._slots, self._workers = slots, workers
        self._pixels_a_second = PIXELS_A_SECOND[spec.kind]
        self._stopped = threading.Event()
        self._decoders = {} if decoders is None else decoders
        self._warned = set() if warned is None else warned
        self._sources = SourceCache()

    def _open_backend(self, task: Task, planes: Sequence[PlaneMetrics]) -> Backend:
        """Return a backend with the batches of one of the runs of a task."""
        backend = self._shared_backend(task, planes, max(1, self._slots // (self._workers * len(task.parts))))
        kind = task.batch, *(plane.format for plane in planes)
        if kind in self._warned:
            backend.warnings = ()
        self._warned.add(kind)
        return backend

    def _shared_backend(self, task: Task, planes: Sequence[PlaneMetrics], taken: int) -> Backend:
        spec, slots = self._spec, self._slots
        return open_backend(
            spec.backend, planes, device=spec.device, batch=task.batch, slots=slots, taken=taken, profile=spec.profile
        )

    def do(self, task: Task, tell: Tell) -> TaskResult:
        """Do a task, and return its result; `tell` gets its events, in the thread that calls this method.

        Raises DeviceError if the device fails, RangeError if the clips must be scored as one range, and other errors of vkssim
        if the clips of the only part cannot be scored. A part that has not told of its end may be tried again.
        """
        started = time.perf_counter()
        frames = size = 0

        def count(job: int, event: TaskEvent) -> None:
            nonlocal frames, size
            self._check()
            if isinstance(event, RangeBegun):
                size = event.report.width * event.report.height
            elif isinstance(event, BatchScored):
                frames += len(event.frames)
            tell(job, event)

        self._check()
        options = self._with_decoder(task.options, task)
        done = (self._alone if len(task.parts) == 1 else self._in_step)(task, options, count)
        done.frames, done.seconds = frames, time.perf_counter() - started
        if frames:
            self._pixels_a_second = frames * size / done.seconds
        return done

    def _alone(self, task: Task, options: ScoreOptions, tell: Tell) -> TaskResult:
        (part,) = task.parts
        done = TaskResult()
        with self._sources.use(task, options) as sources:
            if task.then is not None:
                clips, following = task.then
                self._sources.open_ahead(clips, self._with_decoder(following, task))
            before = sum(source.bytes_read for source in sources)
            ranges = self._divided(task, options, sources, partial(tell, part.job)) if task.divides else []
            if len(ranges) > 1:
                done.ranges, done.packets = ranges, video_packets(sources, options.selection)
            else:
                self._score(task, part, options, sources, tell)
            done.bytes = sum(source.bytes_read for source in sources) - before
        return done

    def _divided(
        self, task: Task, options: ScoreOptions, sources: Sources, tell: Callable[[TaskEvent], object]
    ) -> list[FrameRange]:
        decoder, info, shares = options.decoder, sources[0].info, task.shares
        if options.sync != "index":  # to pair frames by time, all packets would be read here as well
            return []
        if task.by_hardware and (decoder is None or not all(decoder.decodes(source.clip_facts()) for source in sources)):
            return []
        schedule = schedule_pairs(options.selection, *sources, options.sync)
        if task.by_hardware:
            run_in_thread("vkssim-open", partial(self._open_ahead, task, frame_metrics(sources, options).planes))
            if shares > 1 and not self._is_short(schedule, info, shares):
                tell(ClipsOpened(task))
            else:
                shares = 1
        return divided(sources, schedule, int(task.seconds * self._pixels_a_second / (info.width * info.height)), shares)

    def _is_short(self, schedule: Schedule, info: VideoInfo, workers: int) -> bool:
        """Return whether one worker scores a pair sooner than several, each of which would open the clips."""
        pixels = (schedule.pairs or 0) * schedule.step * info.width * info.height  # those of all frames, which are decoded
        return pixels < workers * _MIN_SECONDS_EACH * PIXELS_A_SECOND[self._spec.kind]

    def _open_ahead(self, task: Task, planes: Sequence[PlaneMetrics]) -> None:
        """Open the device, and make the memory of the runs to come."""
        self._shared_backend(task, planes, taken=0).close()

    def _score(self, task: Task, part: Part, options: ScoreOptions, sources: Sources, tell: Tell) -> None:
        tell_of = partial(tell, part.job)
        how: dict[str, bool] = {"live": task.live, "profile": self._spec.profile}
        opener = partial(self._open_backend, task)
        scores = score_range(sources, part.clips, opener, options, part.frame_range, part.earlier, tell_of, **how)
        tell_of(scores)

    # -- several pairs of one reference ------------------------------------------------------------------------------

    def _in_step(self, task: Task, options: ScoreOptions, tell: Tell) -> TaskResult:
        """Score the parts on a thread each, so that their reference is decoded once."""
        done = TaskResult()
        parts: list[Part] = []
        for part in task.parts:
            missing = _why_missing(part.clips.distorted, part.clips.raw)
            if missing is None:
                parts.append(part)
            else:
                tell(part.job, missing)
        if not parts:
            return done
        failures: list[DeviceError] = []
        with ExitStack() as stack:
            try:
                references = _open_reference(stack, task.clips, len(parts), options)
            except DeviceError:
                raise
            except Exception as error:
                for part in parts:
                    tell(part.job, copy(error))
                return done
            # A signal that ends `concurrent.futures.wait` may leave futures locked, and their runs waiting for ever.
            steps: SimpleQueue[Future[None] | tuple[int, TaskEvent]] = SimpleQueue()
            stop, pool = threading.Event(), ThreadPool(len(parts), "vkssim-score")
            runs: dict[Future[None], Part] = {}
            stack.push(partial(_end, stack, pool, stop, runs))

            def put(job: int, event: TaskEvent) -> None:
                if stop.is_set():
                    raise TaskStoppedError("the outcome is no longer needed")
                steps.put((job, event))

            for part, reference in zip(parts, references, strict=True):
                run = pool.submit(self._score_in_step, task, part, options, reference, put)
                runs[run] = part
            for run in runs:
                run.add_done_callback(steps.put)
            left = len(runs)
            while left:
                step = take(steps)
                if isinstance(step, tuple):
                    tell(*step)
                    continue
                left -= 1
                failure = step.exception()
                if isinstance(failure, DeviceError):
                    failures.append(failure)
                elif isinstance(failure, Exception):
                    tell(runs[step].job, failure)
                elif failure is not None:
                    raise failure
            done.bytes = references[0].bytes_read
        if failures:
            raise failures[0]
        return done

    def _score_in_step(self, task: Task, part: Part, options: ScoreOptions, reference: FrameSource, tell: Tell) -> None:
        clips = part.clips
        with ExitStack() as stack:
            close_at_end(stack, reference)
            _, stream = options.selection.streams
            other = open_file(
                clips.distorted, clips.raw, stream, options.decoder, pipes=False, adds_grain=options.pictures.adds_grain
            )
            distorted = close_at_end(stack, other)
            sources = match_pair(reference, distorted, clips.raw, options.pictures, options.chroma)
            self._score(task, part, options, sources, tell)

    # -- what stays open ---------------------------------------------------------------------------------------------

    def open_ahead(self, task: Task) -> None:
        """Have a thread open the clips of a task that another worker divides."""
        if not self._stopped.is_set():
            self._sources.close_unused()
            self._sources.open_ahead(task.clips, self._with_decoder(task.options, task))

    def _with_decoder(self, options: ScoreOptions, task: Task) -> ScoreOptions:
        if options.decode not in self._decoders:
            self._decoders[options.decode] = hardware_decoder(options.decode, self._spec.backend, self._spec.device)
        decoder = self._decoders[options.decode]
        if decoder is not None and not task.alone:
            decoder = replace(decoder, shared=True)
        return replace(options, decoder=decoder)

    def _check(self) -> None:
        if self._stopped.is_set():
            raise TaskStoppedError("the outcome is no longer needed")

    def rest(self) -> None:
        """Close the clips that are open; another task opens them again."""
        self._sources.close_unused()

    def stop(self) -> None:
        """Let the current task end soon with TaskStoppedError. Call this method from another thread."""
        self._stopped.set()

    def close(self) -> None:
        """Close the clips. A second call does nothing."""
        self._sources.close()


def _open_reference(stack: ExitStack, clips: Clips, readers: int, options: ScoreOptions) -> Sequence[FrameSource]:
    """Open the reference of several pairs, and return a reader for each.

    A source that needs no decoding is opened for each pair. So is a source whose frames or colours depend on the clip with
    which it is compared.
    """

    def opened() -> FrameSource:
        stream, _ = options.selection.streams
        grain = options.pictures.adds_grain
        source = open_file(clips.reference, clips.raw, stream, options.decoder, pipes=False, adds_grain=grain)
        return stack.enter_context(source)

    source = opened()
    if source.concurrent or source.is_rgb or options.sync != "index":
        return [source, *(opened() for _ in range(readers - 1))]
    return Tee(oriented(source), readers).readers


def _end(
    stack: ExitStack, pool: ThreadPool, stop: threading.Event, runs: Collection[Future[None]], *_exception: object
) -> None:
    """Stop runs whose results nobody needs, as after Ctrl-C. The reference of a run that does not end stays open."""
    stop.set()
    if not pool.close() or any(is_in_use(run.exception()) for run in runs if not run.cancelled()):
        leave_open(stack.pop_all())


def _why_missing(path: str, raw: RawDescription) -> InputError | None:
    """Return the error for a path that does not exist, so that no reference need be opened. None for every other path."""
    if is_url(path) or os.path.exists(path):
        return None
    try:
        if sequence(path) is None:
            open_file(path, raw, pipes=False).close()
    except InputError as error:
        return error
    return None
