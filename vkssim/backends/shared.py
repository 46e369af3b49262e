"""Share a backend between several runs at a time, each with its own batches."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from ..errors import DeviceError
from ..features.plane_metrics import PlaneMetrics
from ..types import Doubles, FrameFormat
from .base import Backend, Batch

_SECONDS_TO_CLOSE = 5.0


class SharedBackend:
    """Backends that stay open between runs, one for each format of frames; use with `with`.

    `open_engine` opens a backend. A backend is closed when frames of another format arrive and no run uses it. Runs at the same
    time need the same metrics.
    """

    def __init__(self, open_engine: Callable[[Sequence[PlaneMetrics]], Backend]) -> None:
        self._open = open_engine
        self._lock = threading.Lock()
        self._engines: dict[tuple[FrameFormat, ...], Backend] = {}
        self._warnings: dict[tuple[FrameFormat, ...], tuple[str, ...]] = {}  # until a run reports them
        self._closed = False
        self._runs: Counter[tuple[FrameFormat, ...]] = Counter()

    def part(self, number: int, parts: int, planes: Sequence[PlaneMetrics]) -> Backend:
        """Return a backend with every `parts`-th batch, starting at batch `number`. Closing it does not affect the others."""
        formats = _formats(planes)
        with self._lock:
            self._open_for(planes)
            self._runs[formats] += 1
            engine, warnings = self._engines[formats], self._warnings.pop(formats, ())
        view = _BackendView(engine, self._lock, engine.batches[number::parts], lambda: self._leave(formats))
        view.warnings = warnings
        return view

    def open_ahead(self, planes: Sequence[PlaneMetrics]) -> None:
        """Open the backend of the runs to come, which get its warnings."""
        with self._lock:
            if not self._closed:
                self._open_for(planes)
            if self._closed:  # `close` did not wait for a device that opens slowly
                self._close_idle()

    def _open_for(self, planes: Sequence[PlaneMetrics]) -> None:
        formats = _formats(planes)
        if formats not in self._engines:
            self._close_idle()
            self._engines[formats] = self._open(planes)
            self._warnings[formats] = self._engines[formats].warnings

    def _close_idle(self) -> None:
        for idle in [key for key in self._engines if not self._runs[key]]:
            self._engines.pop(idle).close()

    def _leave(self, formats: tuple[FrameFormat, ...]) -> None:
        with self._lock:
            self._runs[formats] -= 1
            if self._closed and not self._runs[formats] and formats in self._engines:
                self._engines.pop(formats).close()

    def close(self) -> None:
        """Close the backends that no run uses, and the others after their last run; a second call does nothing."""
        self._closed = True
        if self._lock.acquire(timeout=_SECONDS_TO_CLOSE):  # a run that does not end may hang while it opens a backend
            try:
                self._close_idle()
            finally:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _formats(planes: Sequence[PlaneMetrics]) -> tuple[FrameFormat, ...]:
    return tuple(plane.format for plane in planes)


@dataclass(frozen=True)
class Share:
    """The share of a backend that one of several users has: every `users`-th batch, from the batch `number` on."""

    backend: SharedBackend
    number: int = 0
    users: int = 1

    def open(self, planes: Sequence[PlaneMetrics], index: int = 0, of: int = 1) -> Backend:
        """Return a backend with these batches, or with the share that one of several runs has of them."""
        return self.backend.part(self.number * of + index, self.users * of, planes)


class _BackendView(Backend):
    """Some of the batches of a shared backend. Only submissions must take turns."""

    def __init__(self, engine: Backend, lock: threading.Lock, batches: tuple[Batch, ...], leave: Callable[[], None]) -> None:
        self._engine = engine
        self._lock = lock
        self._leave: Callable[[], None] | None = leave
        self._in_flight: list[Batch] = []
        self.info = engine.info
        self.batches = batches

    def submit(self, batch: Batch, frames: int) -> None:
        with self._lock:
            self._engine.submit(batch, frames)
        self._in_flight.append(batch)

    def is_done(self, batch: Batch) -> bool:
        return self._engine.is_done(batch)

    def collect(self, batch: Batch) -> list[list[Doubles]]:
        self._in_flight.remove(batch)
        return self._engine.collect(batch)

    def stage_seconds(self) -> Mapping[str, float]:
        return self._engine.stage_seconds()

    def close(self) -> None:
        """Wait for the submissions of a failed run, so that its batches are free for the next run."""
        try:
            with suppress(DeviceError):  # the failed run has its error, and other runs on the device get their own
                while self._in_flight:
                    self.collect(self._in_flight[-1])
        finally:
            leave, self._leave = self._leave, None
            if leave is not None:
                leave()
