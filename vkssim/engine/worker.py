"""Do tasks on one device, which stays open from task to task."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from time import perf_counter

from ..backends.base import Backend
from ..backends.decoding import hardware_decoder, may_share, sessions
from ..backends.open import open_backend
from ..backends.sessions import open_ahead
from ..errors import DecoderBusyError, DeviceError, InputError
from ..frames.decode.hardware import HardwareDecoder
from ..frames.open import may_be_containers, open_file, oriented
from ..frames.options import RawDescription
from ..frames.pairing.preprocessing import match_pair
from ..frames.pairing.schedule import schedule_pairs
from ..frames.pairing.tee import Tee
from ..frames.source import FrameSource
from ..metrics.plane_metrics import PlaneMetrics
from ..storage.inputs import sequence
from ..storage.location import is_url
from ..utils.interruption import take
from ..utils.thread_pool import Closable, ThreadPool, close_at_end, is_in_use, leave_open, run_in_thread
from .options import Clips, ScoreOptions
from .ranges import MIN_PAIRS, PIXELS_A_SECOND, BatchScored, Event, FrameRange, RangeBegun, divide_pairs
from .run import frame_metrics, score_range, video_packets
from .source_cache import SourceCache, Sources, are_decoded_by_hardware
from .task import MAX_WORKERS, OnEvent, Part, Task, TaskResult, TaskStoppedError, WorkerHandle, WorkerSpec

_MIN_BATCHES = 4
_BATCHES_EACH = 2  # one batch is filled while the device works on the other

_MIN_SECONDS_EACH = 0.2
"""The least time in seconds for which a worker shares a pair that hardware decodes, at the assumed speed.

Each worker opens two decoders, and the driver starts one after the other, so that several workers would take longer for a short
pair than one.
"""


class Peers:
    """The workers of one device in this process, which share its video engines."""

    def __init__(self, *, share_cores: bool = False) -> None:
        self.share_cores = share_cores
        """True if the same cores decode for all workers of a run, and there were several of this device at first."""
        self.workers: list[Worker] = []
        """The workers that are not closed."""
        self.decoders: dict[str, HardwareDecoder | None] = {}
        """The hardware decoder for each value of `decode`. It is shared, so that the first frame of a clip is compared once."""
        self.warned: set[object] = set()
        """The formats of frames for which a report has the warnings of the device."""


class Worker(WorkerHandle, Closable):
    """A worker that divides clips, and scores their ranges on one device, in the thread of the caller; use with `with`.

    The device stays open for the next worker of the process; see `backends.sessions`. Workers of one device are `peers`, and
    share a backend, because opening a device takes longer than scoring a short clip. Times of stages are measured for a whole
    backend, so with `profile` each worker has its own.
    """

    def __init__(self, spec: WorkerSpec, peers: Peers | None = None) -> None:
        self.label = spec.label
        self._spec = spec
        self._sharing = 1 if spec.profile else spec.workers
        self._slots = max(_MIN_BATCHES, _BATCHES_EACH * max(self._sharing, spec.in_step))
        self._pixels_a_second = PIXELS_A_SECOND[spec.kind]
        self._stopped = threading.Event()
        self._sources = SourceCache()
        self._busy = self._has_worked = False
        self._peers = peers or Peers()
        self._peers.workers.append(self)

    def submit(self, task: Task, on_event: OnEvent) -> Future[TaskResult]:
        """Do a task at once, in the thread that calls this method, which `on_event` is called in as well.

        The future raises DeviceError if the device fails, RangeError if the clips must be scored as one range, and other errors
        of vkssim if the clips of the only part cannot be scored. A part without an event of its end may be tried again.
        """
        started = perf_counter()
        future: Future[TaskResult] = Future()
        result, size = TaskResult(), 0

        def pass_on(job: int, event: Event) -> None:
            nonlocal size
            self._check()
            if isinstance(event, RangeBegun):
                size = event.report.width * event.report.height
            elif isinstance(event, BatchScored):
                result.frames += len(event.frames)
            on_event(job, event)

        self._busy = True
        try:
            self._check()
            options = self._with_decoder(task.options)
            decoder = options.decoder if self._spec.backend == "vulkan" else None
            if decoder is not None and not self._has_worked and may_be_containers(task.clips.paths, task.clips.raw):
                sharing = decoder.surfaces is not None
                run_in_thread("vkssim-open", partial(open_ahead, self._spec.device, sharing=sharing))  # beside the clips
            self._has_worked = True
            if len(task.parts) > 1:
                result.bytes = self._score_in_step(task, options, pass_on)
            else:
                (part,) = task.parts
                with self._sources.use(part.clips, part.frame_range, options) as sources:
                    if task.next_clips is not None:
                        clips, following = task.next_clips
                        self._sources.open_ahead(clips, self._with_decoder(following))
                    before = sum(source.bytes_read for source in sources)
                    ranges = self._divide(task, options, sources)
                    if len(ranges) > 1:
                        result.ranges, result.packets = ranges, video_packets(sources, options.selection)
                    else:
                        self._score(task, part, options, sources, pass_on)
                    result.bytes = sum(source.bytes_read for source in sources) - before
            if result.frames:
                self._pixels_a_second = result.frames * size / (perf_counter() - started)
            future.set_result(result)
        except Exception as error:
            if isinstance(error, DecoderBusyError):
                self.close()  # the last worker of the device then shares the decoder with nobody
            future.set_exception(error)
        finally:
            self._busy = False
        return future

    def do(self, task: Task, on_event: OnEvent) -> TaskResult:
        """Do a task as `submit` does, and return its result."""
        return self.submit(task, on_event).result()

    def _score(self, task: Task, part: Part, options: ScoreOptions, sources: Sources, on_event: OnEvent) -> None:
        """Score a part of a task, and pass on its events, the last of which is its scores."""
        on_part_event, opener = partial(on_event, part.job), partial(self._open_backend, task)
        live, profile = task.batch == 1, self._spec.profile
        on_part_event(
            score_range(
                sources, part.clips, opener, options, part.frame_range, part.earlier, on_part_event, live=live, profile=profile
            )
        )

    def _open_backend(self, task: Task, planes: Sequence[PlaneMetrics]) -> Backend:
        """Return a backend with the batches of one of the runs of a task."""
        backend = self._shared_backend(task, planes, max(1, self._slots // (self._sharing * len(task.parts))))
        kind = task.batch, *(plane.format for plane in planes)
        if kind in self._peers.warned:
            backend.warnings = ()
        self._peers.warned.add(kind)
        return backend

    def _shared_backend(self, task: Task, planes: Sequence[PlaneMetrics], taken: int) -> Backend:
        spec, slots = self._spec, self._slots
        return open_backend(
            spec.backend, planes, device=spec.device, batch=task.batch, slots=slots, taken=taken, profile=spec.profile
        )

    def _open_device_ahead(self, task: Task, planes: Sequence[PlaneMetrics]) -> None:
        """Open the device, and make the memory of the runs to come."""
        self._shared_backend(task, planes, taken=0).close()

    def _with_decoder(self, options: ScoreOptions) -> ScoreOptions:
        decoders = self._peers.decoders
        if options.decode not in decoders:
            decoders[options.decode] = hardware_decoder(options.decode, self._spec.backend, self._spec.device)
        decoder = decoders[options.decode]
        if decoder is not None and len(self._peers.workers) > 1:
            decoder = replace(decoder, shared=True)
        return replace(options, decoder=decoder)

    # -- division ----------------------------------------------------------------------------------------------------

    def _divide(self, task: Task, options: ScoreOptions, sources: Sources) -> list[FrameRange]:
        """Return the ranges of the clips of a task that divides; none if one worker scores them."""
        if task.division is None or options.sync != "index":  # to pair frames by time, all packets would be read here as well
            return []
        by_hardware = are_decoded_by_hardware(sources, options)
        if self._peers.share_cores and not by_hardware:  # the cores decode, whatever the number of workers
            return []

        info, schedule = sources[0].info, schedule_pairs(options.selection, *sources, options.sync)
        pixels = info.width * info.height
        decoded = _MIN_SECONDS_EACH * PIXELS_A_SECOND[self._spec.kind] / (pixels * schedule.step) if by_hardware else 0
        workers = task.division.workers
        if (schedule.pairs or 0) < workers * max(MIN_PAIRS, decoded):
            workers = 1

        metrics = frame_metrics(sources, options)
        if by_hardware:
            run_in_thread("vkssim-open", partial(self._open_device_ahead, task, metrics.planes))
        idle = [peer for peer in self._peers.workers if not peer._busy]
        for peer in idle[: workers - 1]:
            peer._open_ahead(task.clips, task.options)
        most = int(task.division.seconds * self._pixels_a_second / pixels)
        return divide_pairs(sources, schedule, most, workers, lead=metrics.frames_before)

    def _open_ahead(self, clips: Clips, options: ScoreOptions) -> None:
        """Have a thread open clips that another worker divides: this worker will probably get one of the ranges."""
        self._sources.close_unused()
        self._sources.open_ahead(clips, self._with_decoder(options))

    # -- several pairs of one reference ------------------------------------------------------------------------------

    def _score_in_step(self, task: Task, options: ScoreOptions, on_event: OnEvent) -> int:
        """Score the parts on a thread each, so that their reference is decoded once. Return the bytes read of the reference."""
        parts: list[Part] = []
        for part in task.parts:
            missing = _why_missing(part.clips.distorted, part.clips.raw)
            if missing is None:
                parts.append(part)
            else:
                on_event(part.job, missing)
        if not parts:
            return 0

        with ExitStack() as stack:
            try:
                references = _open_reference(stack, task.clips, len(parts), options)
            except DeviceError:
                raise
            except Exception as error:
                for part in parts:
                    on_event(part.job, copy(error))
                return 0

            # A signal that ends `concurrent.futures.wait` may leave futures locked, and their runs waiting forever.
            steps: SimpleQueue[Future[None] | tuple[int, Event]] = SimpleQueue()
            stop, pool = threading.Event(), ThreadPool(len(parts), "vkssim-score")
            runs: dict[Future[None], Part] = {}
            stack.push(partial(_end, stack, pool, stop, runs))

            def put(job: int, event: Event) -> None:
                if stop.is_set():
                    raise TaskStoppedError("the outcome is no longer needed")
                steps.put((job, event))

            for part, reference in zip(parts, references, strict=True):
                runs[pool.submit(self._score_part, task, part, options, reference, put)] = part
            for run in runs:
                run.add_done_callback(steps.put)
            _pass_on_events(steps, runs, on_event)
            return references[0].bytes_read

    def _score_part(self, task: Task, part: Part, options: ScoreOptions, reference: FrameSource, on_event: OnEvent) -> None:
        clips = part.clips
        with ExitStack() as stack:
            close_at_end(stack, reference)
            distorted = close_at_end(stack, _open_clip(clips.distorted, clips.raw, options.selection.streams[1], options))
            sources = match_pair(reference, distorted, clips.raw, options.pictures, options.chroma)
            self._score(task, part, options, sources, on_event)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._stopped.is_set():
            raise TaskStoppedError("the outcome is no longer needed")

    def close_idle_clips(self) -> None:
        """Close the clips that no task uses; another task opens them again."""
        self._sources.close_unused()

    def stop(self) -> None:
        """Let the current task end soon with TaskStoppedError. Call this method from another thread."""
        self._stopped.set()

    def close(self) -> None:
        """Close the clips; a second call does nothing."""
        if self in self._peers.workers:
            self._peers.workers.remove(self)
        self._sources.close()


def engines_of(spec: WorkerSpec) -> int:
    """Return how many video engines of a GPU decode clips, or 0 if no hardware does. Have a thread open the device meanwhile.

    CUDA takes a second for the answer.
    """
    decoder = None if spec.decode is None else hardware_decoder(spec.decode, spec.backend, spec.device)
    if decoder is None:
        return 0
    run_in_thread("vkssim-open", partial(open_ahead, spec.device, sharing=may_share(decoder)))
    return sessions(decoder)


def has_lock() -> bool:
    """Return whether Python's global interpreter lock is on: then only one thread runs Python code at a time."""
    is_on: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)  # Python 3.12 has a lock, and no such function
    return is_on()


def workers_of(engines: int) -> int:
    """Return how many workers of a GPU keep its video engines busy, without making each other slower; one if it has none.

    A worker has two decoders, one for each clip, and an engine needs two of them to be always busy. So there is a worker for
    each engine. With Python's lock there are half as many, rounded up: the threads of more workers wait longer for the lock.
    """
    return max(1, min(-(-engines // 2) if has_lock() else engines, MAX_WORKERS))


def workers_on(spec: WorkerSpec, *, one_machine: bool = True) -> list[Worker]:
    """Return the workers of a device; `one_machine` is False if the run has workers on other machines as well."""
    peers = Peers(share_cores=one_machine and spec.workers > 1)
    return [Worker(spec, peers) for _ in range(spec.workers)]


def _pass_on_events(
    steps: SimpleQueue[Future[None] | tuple[int, Event]], runs: dict[Future[None], Part], on_event: OnEvent
) -> None:
    """Pass on the events of runs until all have ended. Raises DeviceError if the device failed one of them."""
    failures: list[DeviceError] = []
    left = len(runs)
    while left:
        step = take(steps)
        if isinstance(step, tuple):
            on_event(*step)
            continue
        left -= 1
        failure = step.exception()
        if isinstance(failure, DeviceError):
            failures.append(failure)
        elif isinstance(failure, Exception):
            on_event(runs[step].job, failure)
        elif failure is not None:
            raise failure
    if failures:
        raise failures[0]


def _open_reference(stack: ExitStack, clips: Clips, readers: int, options: ScoreOptions) -> Sequence[FrameSource]:
    """Open the reference of several pairs, and return a reader for each.

    A source that needs no decoding is opened for each pair. So is a source whose frames or colours depend on the clip with
    which it is compared.
    """
    open_reference: Callable[[], FrameSource] = partial(
        _open_clip, clips.reference, clips.raw, options.selection.streams[0], options
    )
    source = stack.enter_context(open_reference())
    if source.concurrent or source.is_rgb or options.sync != "index":
        return [source, *(stack.enter_context(open_reference()) for _ in range(readers - 1))]
    return Tee(oriented(source), readers).readers


def _open_clip(path: str, raw: RawDescription, stream: int | None, options: ScoreOptions) -> FrameSource:
    return open_file(path, raw, stream, options.decoder, adds_grain=options.pictures.adds_grain)


def _end(
    stack: ExitStack, pool: ThreadPool, stop: threading.Event, runs: Collection[Future[None]], *_exception: object
) -> None:
    """Stop runs whose results are no longer needed, as after Ctrl-C. The reference of a run that does not end stays open."""
    stop.set()
    if not pool.close() or any(is_in_use(run.exception()) for run in runs if not run.cancelled()):
        leave_open(stack.pop_all())


def _why_missing(path: str, raw: RawDescription) -> InputError | None:
    """Return the error for a path that does not exist, so that no reference need be opened. None for every other path."""
    if is_url(path) or os.path.exists(path):
        return None
    try:
        if sequence(path) is None:
            open_file(path, raw).close()
    except InputError as error:
        return error
    return None
