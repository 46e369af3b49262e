"""What a worker of a cluster has done, for Prometheus: Ray collects it and shows it on each node's metrics port."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray.util.metrics import Counter

from .task import Done


class Counters:
    """Those of one worker, with its device and node."""

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
        """While a task is tried."""
        started = time.perf_counter()
        try:
            yield
        except Exception:
            self._failures.inc()
            raise
        finally:
            self._seconds.inc(time.perf_counter() - started)

    def add(self, done: Done) -> None:
        """Count what came of a task."""
        for counter, amount in ((self._frames, done.frames), (self._bytes, done.bytes)):
            if amount:  # they take no zero
                counter.inc(amount)
