"""Declare what the scheduler hands tasks to: pools, and a handle for each of their workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Self

from .task import Done, Task, Tell


class WorkerDiedError(Exception):
    """Report that the process of a worker, or its node, ended before the task was done."""


class WorkerHandle(ABC):
    """Hand tasks to one worker, one at a time. A worker that died is started again for the next task."""

    label: str
    host: str = ""
    """The machine that the worker runs on."""
    shares_decoder = False
    """True if other workers use the same hardware decoder."""

    @abstractmethod
    def submit(self, task: Task, tell: Tell) -> Future[Done]:
        """Have the worker do a task, and tell of its events in order, from any thread, before the future is done.

        The future raises WorkerDiedError or the errors of `Worker.do`. A worker in the thread of the caller does the task at
        once, and what `tell` raises is raised.
        """

    @abstractmethod
    def close(self) -> None:
        """End the worker, even during a task; a second call does nothing."""


class WorkerPool(ABC):
    """Workers; use with `with`."""

    by_hardware = False
    """True if the workers share one GPU, so that they are faster than one of them only if the GPU decodes the clips."""

    @property
    def several(self) -> bool:
        """Return True if pairs are divided for several workers, some of which may come later, as those of a cluster do."""
        return True

    @abstractmethod
    def workers(self) -> Sequence[WorkerHandle]:
        """Return the current workers; those of a cluster come and go. Raises DeviceError if there never was one."""

    @abstractmethod
    def close(self, *, failed: bool = False) -> None:
        """End all workers. Unless the run has `failed`, the next pool may find the device open. A second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self.close(failed=kind is not None)


class FixedPool(WorkerPool):
    """Workers that never change."""

    def __init__(self, workers: Sequence[WorkerHandle]) -> None:
        self._workers = workers

    @property
    def several(self) -> bool:
        """See WorkerPool."""
        return len(self._workers) > 1

    def workers(self) -> Sequence[WorkerHandle]:
        """See WorkerPool."""
        return self._workers

    def close(self, *, failed: bool = False) -> None:
        """See WorkerPool."""
        for worker in self._workers:
            worker.close()
