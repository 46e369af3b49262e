"""Do tasks on one device, which stays open from task to task."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Self

from ..backends.base import Backend
from ..backends.decoding import hardware_decoder
from ..backends.failure_policy import BackendOpener, FailurePolicy
from ..backends.open import open_backend
from ..backends.shared import Share, SharedBackend
from ..errors import DeviceError, InterruptedRunError, OutputError
from ..features.plane_metrics import PlaneMetrics
from ..frames.hardware import HardwareDecoder
from ..frames.source import FrameSource
from ..scoring.options import Clips, ScoreOptions
from ..scoring.range_folder import RangeFolder
from ..scoring.ranges import FrameRange, RangeScores
from ..scoring.run_settings import RunSettings
from ..scoring.session import score_range, video_packets
from .division import divided
from .open_sources import OpenPair, OpenSources
from .rates import PIXELS_A_SECOND
from .task import Done, Task, WorkerSpec


class Worker:
    """Divide clips, and score their ranges on one device; use with `with`.

    Workers of one device may have shares of one backend. A worker whose device fails opens a backend of its own. A worker uses
    `clips`, which are open already, for the first task that they fit, and closes them.
    """

    def __init__(self, spec: WorkerSpec, share: Share | None = None, clips: OpenPair | None = None) -> None:
        self._spec = spec
        self._pixels_a_second = PIXELS_A_SECOND[spec.kind]
        self._stopped = threading.Event()
        self._decoders: dict[str, HardwareDecoder | None] = {}
        self._sources = OpenSources(clips)
        self._policy = FailurePolicy(losses=0)  # the scheduler gives the task of a lost device to another worker
        self._own: SharedBackend | None = None
        self._share = self._open() if share is None else share

    def _open(self) -> Share:
        """Return a backend for the next task, or for another try at a task. Its device is opened when it is used."""
        spec = self._spec
        opener = partial(open_backend, spec.backend, device=spec.device, profile=spec.profile)
        self._own = SharedBackend(BackendOpener(opener, self._policy))
        return Share(self._own)

    def do(self, task: Task) -> Done:
        """Do a task, and return its result.

        Raises DeviceError if the device fails, RangeError if the clips must be scored as one range, and other errors of vkssim
        if the clips cannot be scored.
        """
        failed = False
        try:
            while True:
                try:
                    return self._do(task)
                except DeviceError as error:
                    failed = True
                    if not self._policy.allows_another_try(error):
                        raise
                    self._reopen(self._policy)
        finally:
            if failed:
                self._reopen(FailurePolicy(losses=0))  # the next task has the usual batches again

    def _reopen(self, policy: FailurePolicy) -> None:
        self._close_backend()
        self._policy = policy
        self._share = self._open()

    def _close_backend(self) -> None:
        if self._own is not None:  # other workers use a backend that is shared
            self._own.close()

    def _do(self, task: Task) -> Done:
        self._check()
        started = time.perf_counter()
        with self._sources.use(task, task.options.decoder or self._decoder(task.options.decode)) as sources:
            read_before = sum(source.bytes_read for source in sources)
            frame_range = task.frame_range
            if frame_range is None:
                pixels = sources[0].info.width * sources[0].info.height
                pairs = int(task.seconds * self._pixels_a_second / pixels)
                ranges = divided(sources, task.options.selection, task.options.sync, pairs, task.least)
                if len(ranges) > 1:
                    seconds = time.perf_counter() - started
                    read = sum(source.bytes_read for source in sources) - read_before
                    packets = video_packets(sources, task.options.selection)
                    return Done(None, ranges, 0, read, seconds, self._spec.label, packets=packets)
                frame_range = ranges[0]
            scores = self._scored(sources, task, frame_range)
            stored = _store(scores, task)
            frames = len(scores.report.frames)
            seconds = time.perf_counter() - started
            if frames:
                self._pixels_a_second = frames * scores.report.width * scores.report.height / seconds
            read = sum(source.bytes_read for source in sources) - read_before
            return Done(scores, [frame_range], frames, read, seconds, self._spec.label, stored=stored)

    def open_ahead(self, clips: Clips, options: ScoreOptions) -> None:
        """Open the clips of the tasks to come, which `options` have a decoder for."""
        if not self._stopped.is_set():
            self._sources.open_ahead(clips, options)

    def _decoder(self, decode: str) -> HardwareDecoder | None:
        if decode not in self._decoders:
            self._decoders[decode] = hardware_decoder(decode, self._spec.backend, self._spec.device)
        return self._decoders[decode]

    def _scored(self, sources: tuple[FrameSource, FrameSource], task: Task, frame_range: FrameRange) -> RangeScores:
        settings = RunSettings(profile=self._spec.profile, progress=self._check)
        return score_range(sources, task.clips, self._open_share, task.options, frame_range, settings, task.earlier)

    def _open_share(self, planes: Sequence[PlaneMetrics]) -> Backend:
        backend = self._share.open(planes)
        self._policy.batch = backend.batch_size  # another worker may have opened it
        return backend

    def _check(self, _done: int = 0, _total: int | None = None) -> None:
        if self._stopped.is_set():
            raise InterruptedRunError("stopped")

    def stop(self) -> None:
        """Let the current task end soon with InterruptedRunError. Call this method from another thread."""
        self._stopped.set()

    def close(self) -> None:
        """Close the clips, and the device unless a thread that did not end still uses it. A second call does nothing."""
        self._sources.close()
        self._close_backend()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _store(scores: RangeScores, task: Task) -> bool:
    """Write the scores of a range into the folder of the task, and return whether this worker could do so."""
    if task.folder is None or scores.problem:
        return False
    try:
        RangeFolder(task.folder).write(task.name, scores)
    except OutputError:  # the coordinator writes the file, or raises the error
        return False
    return True
