"""Time contenders in turns, by the clock and by the CPU time of all threads, so that a busy machine slows all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from machine import own_cpu_seconds
from spreads import Row, measured

KINDS = ("by the clock", "CPU time")

Contender = tuple[int, Callable[[], object]]
"""How many frames a call computes, and the call."""


def in_turns(contenders: Mapping[str, Contender], rounds: int) -> dict[str, dict[str, Row]]:
    """Return the milliseconds a frame of each contender, as rows with `value`, `range` and `unit`, by kind and name.

    Each contender has its turn in each round. Call them once before, so that everything is opened and compiled.
    """
    times: dict[str, dict[str, list[float]]] = {kind: {name: [] for name in contenders} for kind in KINDS}
    for _ in range(rounds):
        for name, (frames, run) in contenders.items():
            began = time.perf_counter(), own_cpu_seconds()
            run()
            ended = time.perf_counter(), own_cpu_seconds()
            for index, kind in enumerate(KINDS):
                times[kind][name].append(1e3 * (ended[index] - began[index]) / frames)
    return {
        kind: {name: {**measured(values), "unit": "ms a frame"} for name, values in of_kind.items()}
        for kind, of_kind in times.items()
    }
