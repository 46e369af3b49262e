"""One backend for several runs at a time, each on batches of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from ..features.base import Doubles
from ..formats import FrameFormat
from ..planes import PlaneMetrics
from .base import Backend, Batch


class SharedBackend:
    """Keeps a backend open from run to run, for as long as the frames are alike; use with `with`.

    `open_engine` opens it. Runs at the same time need frames of one format and the same metrics.
    """

    def __init__(self, open_engine: Callable[[Sequence[PlaneMetrics]], Backend]) -> None:
        self._open = open_engine
        self._lock = threading.Lock()
        self._engine: Backend | None = None
        self._formats: list[FrameFormat] = []

    def part(self, number: int, parts: int, planes: Sequence[PlaneMetrics]) -> Backend:
        """The backend with every `parts`-th batch from batch `number` on; closing it leaves the others be."""
        with self._lock:
            formats = [plane.format for plane in planes]
            if self._engine is None or self._formats != formats:
                self.close()
                self._engine, self._formats = self._open(planes), formats
            return _Part(self._engine, self._lock, self._engine.batches[number::parts])

    def close(self) -> None:
        """Let go of the device; a second call does nothing."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Part(Backend):
    """Some of the batches of a backend that others use as well. Only submissions have to take turns."""

    def __init__(self, engine: Backend, lock: threading.Lock, batches: tuple[Batch, ...]) -> None:
        self._engine = engine
        self._lock = lock
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
        while self._in_flight:
            self.collect(self._in_flight[-1])
