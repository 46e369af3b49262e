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
from .ranges import Event, FrameRange, ScoredFrame
from .rates import SECONDS
from .record import ClipPackets


@dataclass(frozen=True)
class WorkerSpec:
    """The device of a worker. `device` is a selector of `Scorer`: a UUID in other processes, None for the backend ``"cpu"``.

    `kind` is ``"gpu"``, ``"software"`` or, for the backend of that name, ``"cpu"``. `label` is the name in messages. With
    `profile`, the time of each stage is measured.
    """

    backend: str
    device: str | int | None
    kind: str
    label: str
    profile: bool = False


@dataclass(frozen=True)
class Part:
    """A range of the clips of one job. `earlier` are the first frames of the range that are already scored."""

    job: int
    clips: Clips
    earlier: Sequence[ScoredFrame] = ()
    frame_range: FrameRange = field(default_factory=FrameRange)


@dataclass(frozen=True)
class Task:
    """The same range of several pairs that share their reference, which is decoded once.

    If `divides`, the clips of its only part are divided instead, and are scored only if they cannot be divided. Ranges take
    about `seconds` seconds each at most, and get shorter by `shares`, see `divided`. With `by_hardware`, only clips that a
    hardware decoder decodes are divided, and short ones have one share. `batch` is the largest number of frames of a batch,
    None for that of the device. A worker that is not `alone` shares its hardware decoder with other workers. `live` tells of
    frames as soon as they are scored. `pipes` allows inputs that can be read only once. `then` are the clips and options of the
    task that the worker probably gets next, to be opened meanwhile.
    """

    parts: tuple[Part, ...]
    options: ScoreOptions
    divides: bool = False
    seconds: float = SECONDS
    shares: int = 1
    by_hardware: bool = False
    batch: int | None = None
    alone: bool = True
    live: bool = False
    pipes: bool = False
    then: tuple[Clips, ScoreOptions] | None = None

    @property
    def clips(self) -> Clips:
        """Return the clips of the first part."""
        return self.parts[0].clips


@dataclass
class TaskResult:
    """The result of a task besides its events: `ranges` and `packets` if its clips were divided.

    `frames` is the number of scored frames, `bytes` the number of bytes that were read from the clips, and `seconds` the time
    that the task took.
    """

    frames: int = 0
    bytes: int = 0
    seconds: float = 0.0
    ranges: Sequence[FrameRange] = ()
    packets: ClipPackets | None = None


@dataclass(frozen=True)
class ClipsOpened:
    """The event that clips which a GPU decodes are open and about to be divided: other workers may open them as well."""

    task: Task


TaskEvent = ClipsOpened | Event

Tell = Callable[[int, TaskEvent], None]
"""A function that gets the events of a task, each with the number of its job."""


class WorkerDiedError(Exception):
    """The process of a worker, or its node, ended before the task was done."""


class TaskStoppedError(VkssimError):
    """The worker was told to stop, so its task ended without an outcome, which is no longer needed."""


class WorkerHandle(ABC):
    """A worker, which gets one task at a time. If it has died, it is started again for the next task."""

    label: str
    host: str = ""
    """The machine that the worker runs on."""
    shares_decoder = False
    """True if other workers use the same hardware decoder."""

    @abstractmethod
    def submit(self, task: Task, tell: Tell) -> Future[TaskResult]:
        """Have the worker do a task, and tell of its events in order, from any thread, before the future is done.

        The future raises WorkerDiedError or the errors of `Worker.do`. A worker in the thread of the caller does the task at
        once, and what `tell` raises is raised.
        """

    def open_ahead(self, task: Task) -> None:  # noqa: B027 - most workers open clips when they need them
        """Have the worker open the clips of a task that another worker divides: it will probably get a range of them."""

    def rest(self) -> None:  # noqa: B027 - a worker that keeps nothing open has nothing to close
        """Have the worker close its clips, because there will probably be no other task for it."""

    def begin_to_close(self) -> None:  # noqa: B027 - most workers end at once
        """Have the worker end its work, without waiting for the end."""

    @abstractmethod
    def close(self) -> None:
        """End the worker, even during a task; a second call does nothing."""


class WorkerPool(ABC):
    """Workers; use with `with`."""

    by_hardware = False
    """True if the workers share one GPU, so that several are faster than one only if the GPU decodes the clips."""
    several = True
    """True if pairs are divided for several workers, some of which may come later, as those of a cluster do."""

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

    def __init__(self, workers: Sequence[WorkerHandle]) -> None:
        self._workers = workers
        self.several = len(workers) > 1

    def workers(self) -> Sequence[WorkerHandle]:
        """See WorkerPool."""
        return self._workers

    def close(self) -> None:
        """See WorkerPool."""
        for worker in self._workers:
            worker.begin_to_close()
        for worker in self._workers:
            worker.close()
