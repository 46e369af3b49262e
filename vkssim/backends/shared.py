"""Share a backend between several runs, at a time and one after the other, each with its own batches."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

from ..errors import DeviceError
from ..metrics.plane_metrics import PlaneMetrics
from ..types import Doubles, FrameFormat
from ..utils.thread_pool import Closable
from .base import Backend, Batch
from .open import OpenDevice, open_backend

_SECONDS_TO_CLOSE = 5.0


_Key = tuple[tuple[FrameFormat, tuple[str, ...]], ...]  # the format of each plane, and its metrics


class SharedBackend(Closable):
    """Backends that stay open between runs, one for each format of frames with its metrics; use with `with`.

    The arguments are those of `open_backend`. A backend is closed when frames of another format arrive and no run uses it; its
    device stays open for the next one, with its compiled kernels. After `close`, which a user calls whose device failed,
    `closed` is True, and nobody should begin another run.
    """

    def __init__(
        self, name: str, *, device: str | int | None = None, batch: int | None = None, slots: int = 4, profile: bool = False
    ) -> None:
        self._name, self._selector = name, device
        self._open_backend = partial(open_backend, name, batch=batch, slots=slots, profile=profile)
        self._devices: dict[bool, OpenDevice] = {}  # by whether they share memory with another API
        self._lock = threading.Lock()
        self._engines: dict[_Key, Backend] = {}
        self._warnings: dict[_Key, tuple[Warning, ...]] = {}  # until a run reports them
        self.closed = False
        self._runs: Counter[_Key] = Counter()

    def part(self, number: int, parts: int, planes: Sequence[PlaneMetrics]) -> Backend:
        """Return a backend with every `parts`-th batch, starting at batch `number`. Closing it does not affect the others."""
        key = _key(planes)
        with self._lock:
            self._open_for(planes)
            self._runs[key] += 1
            engine, warnings = self._engines[key], self._warnings.pop(key, ())
        view = _BackendView(engine, self._lock, engine.batches[number::parts], lambda: self._leave(key))
        view.warnings = warnings
        return view

    def open_ahead(self, planes: Sequence[PlaneMetrics]) -> None:
        """Open the backend of the runs to come, which get its warnings."""
        with self._lock:
            if not self.closed:
                self._open_for(planes)
            if self.closed:  # `close` did not wait for a device that opens slowly
                self._close_idle()

    def _open_for(self, planes: Sequence[PlaneMetrics]) -> None:
        key = _key(planes)
        if key not in self._engines:
            self._close_idle()
            self._engines[key] = self._open(planes)
            self._warnings[key] = self._engines[key].warnings

    def _open(self, planes: Sequence[PlaneMetrics]) -> Backend:
        if self._name != "vulkan":
            return self._open_backend(planes, device=self._selector)
        sharing = any(plane.format.external for plane in planes)
        if sharing not in self._devices:
            self._devices[sharing] = OpenDevice(self._selector, sharing=sharing)
        return self._open_backend(planes, device=self._devices[sharing])

    def _close_idle(self) -> None:
        for idle in [key for key in self._engines if not self._runs[key]]:
            self._engines.pop(idle).close()
        if self.closed and not self._engines:
            self._close_devices()

    def _close_devices(self) -> None:
        while self._devices:
            self._devices.popitem()[1].close()

    def begin_again(self) -> bool:
        """Return whether a backend is open that no run uses. The next runs then get its warnings, as those of a new backend."""
        self._warnings = {key: engine.warnings for key, engine in self._engines.items()}
        return bool(self._engines) and not (self.closed or self._runs.total())

    def _leave(self, key: _Key) -> None:
        with self._lock:
            self._runs[key] -= 1
            if self.closed:
                self._close_idle()

    def close(self) -> None:
        """Close the backends that no run uses, and the others after their last run; a second call does nothing."""
        self.closed = True
        if self._lock.acquire(timeout=_SECONDS_TO_CLOSE):  # a run that does not end may hang while it opens a backend
            try:
                self._close_idle()
            finally:
                self._lock.release()


def _key(planes: Sequence[PlaneMetrics]) -> _Key:
    return tuple((plane.format, tuple(scorer.text for scorer in plane.scorers)) for plane in planes)


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
        self._stack = ExitStack()
        self._stack.callback(leave)
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
        with self._stack, suppress(DeviceError):  # the failed run has its error, and other runs on the device get their own
            while self._in_flight:
                self.collect(self._in_flight[-1])
