"""Declare what the scheduler hands tasks to: pools, and a handle for each of their workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Self

from .task import Done, Task


class WorkerDiedError(Exception):
    """The process of a worker ended, or its node did, before its task was done."""


class WorkerHandle(ABC):
    """Hand tasks to one worker, one at a time. A worker that died is started again for the next task."""

    label: str
    host: str = ""
    """The machine that the worker runs on."""

    @abstractmethod
    def submit(self, task: Task) -> Future[Done]:
        """Have the worker do a task. The future raises WorkerDiedError, or what `Worker.do` raises."""

    @abstractmethod
    def close(self) -> None:
        """End the worker, whatever it does; a second call does nothing."""


class WorkerPool(ABC):
    """Hold workers; use with `with`."""

    @abstractmethod
    def workers(self) -> Sequence[WorkerHandle]:
        """Return the workers that there are now; those of a cluster come and go. Raises DeviceError if none was ever there."""

    @abstractmethod
    def close(self) -> None:
        """End all workers; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class FixedPool(WorkerPool):
    """Hold the same workers from beginning to end."""

    def __init__(self, workers: Sequence[WorkerHandle]) -> None:
        self._workers = workers

    def workers(self) -> Sequence[WorkerHandle]:
        """See WorkerPool."""
        return self._workers

    def close(self) -> None:
        """See WorkerPool."""
        for worker in self._workers:
            worker.close()
