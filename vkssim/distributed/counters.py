"""Count the work of a worker for Prometheus. Ray collects the counters and offers them on the metrics port of each node."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray.util.metrics import Counter

from .task import Done


class Counters:
    """Hold the counters of one worker, labelled with its device and node."""

    def __init__(self, device: str) -> None:
        self._tags = {"device": device, "node": ray.get_runtime_context().get_node_id()}
        self._frames = self._counter("vkssim_frames", "Frames scored.")
        self._bytes = self._counter("vkssim_bytes_read", "Bytes read of clips.")
        self._seconds = self._counter("vkssim_busy_seconds", "Seconds spent on tasks.")
        self._failures = self._counter("vkssim_failures", "Tasks that ended in an error.")

    def _counter(self, name: str, description: str) -> Counter:
        counter = Counter(name, description, tuple(self._tags))
        counter.set_default_tags(self._tags)
        return counter

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Count the seconds of a task, and its error."""
        started = time.perf_counter()
        try:
            yield
        except Exception:
            self._failures.inc()
            raise
        finally:
            self._seconds.inc(time.perf_counter() - started)

    def add(self, done: Done) -> None:
        """Count the result of a task."""
        for counter, amount in ((self._frames, done.frames), (self._bytes, done.bytes)):
            if amount:  # Ray's counters take no zero
                counter.inc(amount)
