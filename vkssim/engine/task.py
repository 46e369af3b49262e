"""Tasks and their results, as plain values that are small enough to be sent, and the interface of workers.

Frames are never sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Self

from ..errors import VkssimError
from .options import Clips, ScoreOptions
from .ranges import ClipPackets, Event, FrameRange, ScoredFrame

MAX_WORKERS = 8
"""The largest number of workers of a device."""


@dataclass(frozen=True)
class WorkerSpec:
    """The device of a worker."""

    backend: str
    device: str | int | None
    """A selector of `Scorer`: a UUID in other processes, None for the backend ``"cpu"``."""
    kind: str
    """``"gpu"``, ``"software"`` or, for the backend of that name, ``"cpu"``."""
    label: str
    """The name in messages."""
    profile: bool = False
    """True if the time of each stage is measured."""
    workers: int = 1
    """The number of workers of the device, which are threads of one process."""
    in_step: int = 1
    """The largest number of pairs that a worker scores in step."""
    threads: int | None = None
    """The number of threads of a software device; None for its driver's choice."""
    decode: str | None = None
    """If given, a process reports first how many video engines it has for this decoder, see `score_files`."""


@dataclass(frozen=True)
class Part:
    """A range of the clips of one job."""

    job: int
    """The number of the job."""
    clips: Clips
    earlier: Sequence[ScoredFrame] = ()
    """The first frames of the range, which are already scored."""
    frame_range: FrameRange = field(default_factory=FrameRange)


@dataclass(frozen=True)
class Division:
    """The way to divide a pair of clips into ranges."""

    workers: int
    """The number of workers that share the pair."""
    seconds: float
    """The longest time in seconds that a range should take."""


@dataclass(frozen=True)
class Task:
    """A range of one pair, or the same range of several pairs that share their reference, which is decoded once."""

    parts: tuple[Part, ...]
    options: ScoreOptions
    division: Division | None = None
    """If given, the clips of the only part are divided, and are scored only if they cannot be divided."""
    batch: int | None = None
    """The largest number of frames of a batch; None for that of the device. If it is 1, frames are reported one by one."""
    next_clips: tuple[Clips, ScoreOptions] | None = None
    """The clips and options of the task that the worker probably gets next, which are opened meanwhile."""

    @property
    def clips(self) -> Clips:
        """Return the clips of the first part."""
        return self.parts[0].clips


@dataclass
class TaskResult:
    """The result of a task besides its events."""

    frames: int = 0
    """The number of scored frames."""
    bytes: int = 0
    """The number of bytes that were read from the clips."""
    ranges: Sequence[FrameRange] = ()
    """The ranges of the clips if they were divided."""
    packets: ClipPackets | None = None
    """The packets of both video streams if the clips were divided."""


OnEvent = Callable[[int, Event], None]
"""A function that gets the events of a task, each with the number of its job."""


class WorkerDiedError(Exception):
    """The process of a worker, or its node, ended before the task was done."""


class TaskStoppedError(VkssimError):
    """The worker was stopped, so its task ended without an outcome, which is no longer needed."""


class WorkerHandle(ABC):
    """A worker, which gets one task at a time. If it has died, it is restarted for the next task."""

    label: str
    """The name in messages."""
    host: str = ""
    """The machine that the worker runs on."""

    @abstractmethod
    def submit(self, task: Task, on_event: OnEvent) -> Future[TaskResult]:
        """Have the worker do a task. `on_event` gets its events in order, from any thread, before the future is done.

        The future raises WorkerDiedError or the errors of `Worker.do`. A worker in the thread of the caller does the task at
        once.
        """

    def close_idle_clips(self) -> None:  # noqa: B027 - a worker that keeps nothing open has nothing to close
        """Have the worker close its clips, because there will probably be no other task for it."""

    def retire(self) -> None:
        """End a worker that has no task and gets no other."""
        self.close()

    def begin_to_close(self) -> None:  # noqa: B027 - most workers end at once
        """Have the worker end its work, without waiting for the end."""

    @abstractmethod
    def close(self) -> None:
        """End the worker, even during a task; a second call does nothing."""


class WorkerPool(ABC):
    """Workers; use with `with`."""

    several = True
    """True if pairs are divided for several workers, some of which may come later, as those of a cluster do."""
    in_step = 1
    """The largest number of pairs of one reference that a worker scores in step, so that the reference is decoded once."""

    @abstractmethod
    def workers(self) -> Sequence[WorkerHandle]:
        """Return the current workers; those of a cluster come and go. Raises DeviceError if there never was one."""

    @abstractmethod
    def close(self) -> None:
        """End all workers; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class FixedPool(WorkerPool):
    """Workers that never change."""

    def __init__(self, workers: Sequence[WorkerHandle], in_step: int = 1) -> None:
        self._workers = workers
        self.several = len(workers) > 1
        self.in_step = in_step

    def workers(self) -> Sequence[WorkerHandle]:
        """Return all workers."""
        return self._workers

    def close(self) -> None:
        """End all workers, side by side."""
        for worker in self._workers:
            worker.begin_to_close()
        for worker in self._workers:
            worker.close()
