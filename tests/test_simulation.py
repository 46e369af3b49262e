"""The model of scripts/simulate_cluster, against what can be worked out by hand."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

from cluster import Cluster, Work, ranges, simulate  # noqa: E402 - scripts are no package

HARSH = Cluster(20, gpus=2, straggling=0.1, slowdown=3, mtbf=200, repair=60, driver=0.01, result=0.1, attempts=50)


def _work(tasks: int, seconds: float) -> Work:
    """Tasks of a frame each, all alike."""
    return Work(tasks, [1], 0.0, seconds)


@pytest.mark.parametrize(("tasks", "nodes"), [(1, 1), (7, 7), (8, 7), (140, 7), (143, 7), (3, 5)])
@pytest.mark.parametrize("copies", [True, False])
def test_alike_and_never_failing(tasks: int, nodes: int, copies: bool) -> None:
    """Rounds of tasks; the workers stay apart by what the driver takes for one of them."""
    seconds, driver = 10.0, 0.25
    rounds = -(-tasks // nodes)
    last = tasks - (rounds - 1) * nodes
    outcome = simulate(_work(tasks, seconds), Cluster(nodes, driver=driver, copies=copies))
    assert outcome.makespan == pytest.approx(rounds * seconds + (last + rounds - 1) * driver)
    assert outcome.efficiency == pytest.approx(tasks * seconds / nodes / outcome.makespan)
    assert (outcome.lost, outcome.failed) == (0, 0)


@pytest.mark.parametrize("nodes", [41, 100, 1000])
def test_more_workers_than_the_driver_can_serve(nodes: int) -> None:
    seconds, driver, tasks = 10.0, 0.25, 3000
    outcome = simulate(_work(tasks, seconds), Cluster(nodes, driver=driver))
    assert outcome.makespan == pytest.approx(tasks * driver + seconds)


@pytest.mark.parametrize(("cluster", "seconds"), [(Cluster(4, 2, node_rate=100), 20), (Cluster(4, 2, total_rate=200), 40)])
def test_storage_that_is_too_slow(cluster: Cluster, seconds: float) -> None:
    """1000 bytes a task; reading goes on beside computing, so the longer one of them counts."""
    work = Work(80, [1], 0.0, 10.0, frame_bytes=1000)
    assert simulate(work, cluster).makespan == pytest.approx(10 * seconds)
    assert simulate(work, Cluster(4, 2, node_rate=1000)).makespan == pytest.approx(100)


def test_failures_cost_what_theory_says() -> None:
    """A task of t seconds, begun anew after failures: (exp(t/m) - 1) (m + r), m between failures, r until the return."""
    tasks, seconds, mtbf, repair = 20_000, 10.0, 20.0, 5.0
    outcome = simulate(_work(tasks, seconds), Cluster(1, mtbf=mtbf, repair=repair, attempts=1000))
    assert outcome.makespan / tasks == pytest.approx(math.expm1(seconds / mtbf) * (mtbf + repair), rel=0.03)
    assert outcome.lost / tasks == pytest.approx(math.expm1(seconds / mtbf), rel=0.03)


def test_a_copy_saves_the_end_from_a_straggler() -> None:
    """Of two ranges the slow node holds one: without a copy it takes its 100 s, with one the other node is done first."""
    cluster = Cluster(2, straggling=0.5, slowdown=10, copies=False)
    assert simulate(_work(2, 10.0), cluster).makespan == 100
    outcome = simulate(_work(2, 10.0), Cluster(2, straggling=0.5, slowdown=10))
    assert (outcome.makespan, outcome.copied) == (20, 20)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("attempts", [1, 3, 50])
def test_every_task_is_finished_once_whatever_fails(seed: int, attempts: int) -> None:
    work = Work(10, ranges(999, 100), 0.5, 0.1, spread=(0.5, 1.0, 2.0))
    outcome = simulate(work, Cluster(**{**vars(HARSH), "attempts": attempts}), seed)
    given_up = set(outcome.given_up)
    assert outcome.lost > 0
    assert len(given_up) == len(outcome.given_up)
    assert list(outcome.results) == [0 if task in given_up else 1 for task in range(work.tasks)]
    assert bool(given_up) == (attempts == 1)
    assert simulate(work, Cluster(**{**vars(HARSH), "attempts": attempts}), seed) == outcome


def test_ranges_are_even_and_complete() -> None:
    assert ranges(10, 4) == [3, 3, 4]
    assert ranges(10, 10) == [10]
    assert sum(ranges(129_600, 777)) == 129_600
    assert set(ranges(129_600, 777)) == {776, 777}
