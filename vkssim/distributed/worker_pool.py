"""What the scheduler hands tasks to: workers, and the pools that they are in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Self

from .task import Done, Task


class WorkerDiedError(Exception):
    """The process of a worker ended, or its node did, before its task was done."""


class WorkerHandle(ABC):
    """A place where a worker runs, one task at a time."""

    label: str
    host: str = ""
    """The machine that it is on."""

    @abstractmethod
    def submit(self, task: Task) -> Future[Done]:
        """Have the worker do a task. The future raises WorkerDiedError, or what `Worker.do` raises."""

    @abstractmethod
    def renew(self) -> None:
        """Put a new worker in the place of one that died."""

    @abstractmethod
    def close(self) -> None:
        """End the worker, whatever it does; a second call does nothing."""


class WorkerPool(ABC):
    """Where workers run; use with `with`."""

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
