"""A backend for several runs at a time, each on batches of its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Self

from ..errors import DeviceError
from ..features.plane_metrics import PlaneMetrics
from ..types import Doubles, FrameFormat
from .base import Backend, Batch


class SharedBackend:
    """Keeps backends open from run to run, one for each format that frames have; use with `with`.

    `open_engine` opens one. It is closed when frames of another format come while no run is on it. Runs at the same time need
    the same metrics.
    """

    def __init__(self, open_engine: Callable[[Sequence[PlaneMetrics]], Backend]) -> None:
        self._open = open_engine
        self._lock = threading.Lock()
        self._engines: dict[tuple[FrameFormat, ...], Backend] = {}
        self._runs: Counter[tuple[FrameFormat, ...]] = Counter()

    def part(self, number: int, parts: int, planes: Sequence[PlaneMetrics]) -> Backend:
        """Return the backend with every `parts`-th batch from batch `number` on; closing it leaves the others be."""
        formats = tuple(plane.format for plane in planes)
        with self._lock:
            opened = formats not in self._engines
            if opened:
                for idle in [key for key in self._engines if not self._runs[key]]:
                    self._engines.pop(idle).close()
                self._engines[formats] = self._open(planes)
            self._runs[formats] += 1
            engine = self._engines[formats]
        part = _Part(engine, self._lock, engine.batches[number::parts], lambda: self._leave(formats))
        part.warnings = engine.warnings if opened else ()  # whoever opened it says so, once
        return part

    def _leave(self, formats: tuple[FrameFormat, ...]) -> None:
        with self._lock:
            self._runs[formats] -= 1

    def close(self) -> None:
        """Let go of the device, but for what a run still uses; a second call does nothing."""
        for idle in [key for key in self._engines if not self._runs[key]]:
            self._engines.pop(idle).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Part(Backend):
    """Some of the batches of a backend that others use as well. Only submissions have to take turns."""

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
        """Wait for what a failed run left on its way, so that its batches are free for the next."""
        try:
            with suppress(DeviceError):  # the run has its error, and whoever else is on that device gets one
                while self._in_flight:
                    self.collect(self._in_flight[-1])
        finally:
            leave, self._leave = self._leave, None
            if leave is not None:
                leave()
