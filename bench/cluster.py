"""The model of bench/simulate_cluster: one driver, nodes with a worker a GPU, ranges of frames, by SimPy.

A worker that asks gets the next range, and waits for the driver, which hands out one at a time. A node fails at random, takes
the ranges of its workers with it, and comes back later; lost ranges are handed out again, a bounded number of times.

Two things are simpler than in truth. Every worker has an even share of the storage's bandwidth the whole time, as though all of
them read at once, and a node that is slow is slow from beginning to end.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import simpy

_DRAWN_AT_ONCE = 1 << 16

Steps = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class Work:
    """A catalogue of pairs of clips that are all alike, each split into the same ranges.

    `ranges` has the frames of each range of a pair. A range of F frames takes `fixed` + F · `per_frame` seconds, times a number
    drawn from `spread`, and reads F · `frame_bytes` bytes meanwhile.
    """

    pairs: int
    ranges: Sequence[int]
    fixed: float
    per_frame: float
    frame_bytes: float = 0.0
    spread: Sequence[float] = (1.0,)

    @property
    def tasks(self) -> int:
        """Return the number of ranges of all pairs."""
        return self.pairs * len(self.ranges)

    @property
    def seconds(self) -> float:
        """Return the seconds that the frames alone would take one worker."""
        return self.pairs * sum(self.ranges) * self.per_frame


@dataclass(frozen=True)
class Cluster:
    """The nodes and the driver of a cluster. Times are in seconds, rates in bytes a second.

    `mtbf` is the mean time between the failures of a node.

    The share `straggling` of the nodes takes `slowdown` times as long. A range is handed out `attempts` times at most. The
    driver takes `driver` for each range, the worker `result` to put the scores of one away.
    """

    nodes: int
    gpus: int = 1
    straggling: float = 0.0
    slowdown: float = 1.0
    mtbf: float = math.inf
    repair: float = 0.0
    node_rate: float = math.inf
    total_rate: float = math.inf
    driver: float = 0.0
    result: float = 0.0
    attempts: int = 4

    @property
    def workers(self) -> int:
        """Return the number of workers: one a GPU."""
        return self.nodes * self.gpus


@dataclass
class Outcome:
    """The result of a simulation, in seconds.

    `failed` are the worker-seconds of attempts that a failure ended, and `lost` is their number. `results` has how many results
    of each task counted.
    """

    makespan: float = 0.0
    efficiency: float = 0.0
    failed: float = 0.0
    lost: int = 0
    results: bytearray = field(default_factory=bytearray)
    given_up: list[int] = field(default_factory=list)


@dataclass
class _Node:
    slowdown: float
    fails: float


def ranges(frames: int, most: int) -> list[int]:
    """Return the frames of each range of a clip: as few ranges as may be of `most` frames at most, of even size."""
    count = -(-frames // most)
    return [frames * (i + 1) // count - frames * i // count for i in range(count)]


def simulate(work: Work, cluster: Cluster, seed: int = 0) -> Outcome:
    """Score it all; the same seed gives the same outcome."""
    return _Simulation(work, cluster, seed).run()


def _draws(random: np.random.Generator, values: npt.NDArray[np.float64]) -> Iterator[float]:
    while True:
        yield from random.choice(values, _DRAWN_AT_ONCE).tolist()


class _Simulation:
    def __init__(self, work: Work, cluster: Cluster, seed: int) -> None:
        self._work, self._cluster = work, cluster
        self._random = np.random.default_rng(seed)
        self._spread = _draws(self._random, np.asarray(work.spread, np.float64))
        share = min(cluster.node_rate / cluster.gpus, cluster.total_rate / cluster.workers)
        self._computing = [work.fixed + frames * work.per_frame for frames in work.ranges]
        self._reading = [frames * work.frame_bytes / share for frames in work.ranges]
        self._environment = simpy.Environment()
        self._over = self._environment.event()
        self._idle: list[simpy.Event] = []
        self._fresh = iter(range(work.tasks))
        self._again: deque[int] = deque()
        self._open = work.tasks
        self._losses: Counter[int] = Counter()
        self._driver_free = 0.0
        self._outcome = Outcome(results=bytearray(work.tasks))

    def run(self) -> Outcome:
        cluster, outcome = self._cluster, self._outcome
        slow = round(cluster.straggling * cluster.nodes)
        for number in range(cluster.nodes):
            node = _Node(cluster.slowdown if number < slow else 1.0, self._up_for())
            for _ in range(cluster.gpus):
                self._environment.process(self._worker(node))
        self._environment.run(self._over)
        outcome.makespan = self._environment.now
        outcome.efficiency = self._work.seconds / cluster.workers / outcome.makespan
        return outcome

    def _up_for(self) -> float:
        return math.inf if math.isinf(self._cluster.mtbf) else float(self._random.exponential(self._cluster.mtbf))

    def _worker(self, node: _Node) -> Steps:
        environment, cluster, outcome = self._environment, self._cluster, self._outcome
        kinds = len(self._work.ranges)
        while True:
            task = self._next()
            if task is None:
                wake = environment.event()
                self._idle.append(wake)
                yield wake
                yield from self._failed_while_idle(node)
                continue
            began = self._driver_free = max(self._driver_free, environment.now) + cluster.driver
            kind = task % kinds
            seconds = max(self._computing[kind] * next(self._spread), self._reading[kind]) * node.slowdown + cluster.result
            if began + seconds <= node.fails:
                yield environment.timeout(began + seconds - environment.now)
                outcome.results[task] += 1
                self._close_one()
                continue
            failure = node.fails
            yield environment.timeout(max(0.0, failure - environment.now))
            self._lose(task, began)
            yield environment.timeout(cluster.repair)
            self._repaired(node, failure)

    def _failed_while_idle(self, node: _Node) -> Steps:
        while node.fails <= self._environment.now:
            failure = node.fails
            yield self._environment.timeout(max(0.0, failure + self._cluster.repair - self._environment.now))
            self._repaired(node, failure)

    def _repaired(self, node: _Node, failure: float) -> None:
        if node.fails == failure:  # the first worker of the node to come back
            node.fails = failure + self._cluster.repair + self._up_for()

    def _next(self) -> int | None:
        if self._again:
            return self._again.popleft()
        return next(self._fresh, None)

    def _lose(self, task: int, began: float) -> None:
        self._outcome.lost += 1
        self._outcome.failed += max(0.0, self._environment.now - began)
        self._losses[task] += 1
        if self._losses[task] >= self._cluster.attempts:
            self._outcome.given_up.append(task)
            self._close_one()
            return
        self._again.append(task)
        self._wake()

    def _close_one(self) -> None:
        self._open -= 1
        if not self._open:
            self._over.succeed()

    def _wake(self) -> None:
        idle, self._idle = self._idle, []
        for event in idle:
            event.succeed()
