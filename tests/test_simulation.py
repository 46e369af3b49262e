"""The model of bench/simulate_cluster, against what can be worked out by hand."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from runpy import run_path

import pytest
from cluster import Cluster, Work, ranges, simulate
from costs import costs, read

BENCH = Path(__file__).resolve().parent.parent / "bench"

HARSH = Cluster(20, gpus=2, straggling=0.1, slowdown=3, mtbf=200, repair=60, driver=0.01, result=0.1, attempts=50)


def _run(script: str, *words: str) -> None:
    """Run a script of the folder as a command, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script, *words])
        with pytest.raises(SystemExit) as ended:
            run_path(str(BENCH / script), run_name="__main__")
    assert ended.value.code == 0


def _work(tasks: int, seconds: float) -> Work:
    """Tasks of a frame each, all alike."""
    return Work(tasks, [1], 0.0, seconds)


@pytest.mark.parametrize(("tasks", "nodes"), [(1, 1), (7, 7), (8, 7), (140, 7), (143, 7), (3, 5)])
def test_alike_and_never_failing(tasks: int, nodes: int) -> None:
    """Rounds of tasks; the workers stay apart by the time of the driver for one task."""
    seconds, driver = 10.0, 0.25
    rounds = -(-tasks // nodes)
    last = tasks - (rounds - 1) * nodes
    outcome = simulate(_work(tasks, seconds), Cluster(nodes, driver=driver))
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


def test_the_end_waits_for_a_straggler() -> None:
    """Of two ranges the slow node holds one, which takes its 100 s."""
    assert simulate(_work(2, 10.0), Cluster(2, straggling=0.5, slowdown=10)).makespan == 100


@pytest.mark.parametrize("attempts", [1, 3, 50])
def test_every_task_is_finished_once_whatever_fails(attempts: int) -> None:
    work = Work(10, ranges(999, 100), 0.5, 0.1, spread=(0.5, 1.0, 2.0))
    cluster = replace(HARSH, attempts=attempts)
    for seed in range(20):
        outcome = simulate(work, cluster, seed)
        given_up = set(outcome.given_up)
        assert outcome.lost > 0
        assert len(given_up) == len(outcome.given_up)
        assert list(outcome.results) == [0 if task in given_up else 1 for task in range(work.tasks)]
        assert len(given_up) * attempts <= outcome.lost
        assert attempts == 3 or bool(given_up) == (attempts == 1)
        assert simulate(work, cluster, seed) == outcome


def test_tasks_are_timed(tmp_path: Path) -> None:
    """A round of tiny ones: all lengths of both kinds, then a profiled one of each."""
    output = tmp_path / "times.jsonl"
    words = ("--size", "192x180", "--feature", "float_ssim=scale=1:window=uniform8", "--frames", "16", "--seconds", "0")
    _run("task_times", *words, "--out", str(output))
    records = read([output])
    assert [(record["kind"], record["frames"]) for record in records[:8]] == [
        (kind, frames) for kind in ("raw", "h264") for frames in (16, 8, 4, 2)
    ]
    assert all(record["gpu_seconds"] is None and record["seconds"] > 0 for record in records[:8])
    assert all(record["kind"] == "h264" or record["bytes"] >= record["frames"] * 2 * 192 * 180 for record in records)
    assert [record["gpu_seconds"] > 0 for record in records[8:]] == [True, True]


def _recorded(frames: int, **changed: object) -> dict[str, object]:
    """A task of 0.5 s and 0.1 s a frame."""
    seconds = {"seconds": 0.5 + 0.1 * frames, "cpu_seconds": 0.2 * frames, "gpu_seconds": None, "upload_seconds": None}
    where = {"kind": "raw", "width": 1920, "height": 1080, "device": "voodoo", "device_kind": "DISCRETE", "cores": 8}
    return {"start": 0, "frames": frames, "first": False, "bytes": 10 + 4000 * frames, **seconds, **where, **changed}


def test_costs_and_a_cluster_from_records(tmp_path: Path) -> None:
    times, figures = tmp_path / "times.jsonl", tmp_path / "figures.json"
    first = _recorded(10, first=True, seconds=4.5)
    profiled = _recorded(10, gpu_seconds=0.02, upload_seconds=0.01, seconds=9.0)
    records = [first, *map(_recorded, (10, 20, 40, 80)), profiled]
    times.write_text("".join(json.dumps(record) + "\n" for record in records))
    (cost,) = costs(read([times]))
    assert cost.seconds == pytest.approx((0.5, 0.1))
    assert cost.cpu_seconds == pytest.approx((0, 0.2))
    assert cost.bytes == pytest.approx((10, 4000))
    assert (cost.gpu_seconds, cost.upload_seconds, cost.opening) == pytest.approx((0.002, 0.001, 3.0))
    assert cost.spread == pytest.approx([1.0] * 4)
    words = ("--times", str(times), "--nodes", "3", "--minutes", "1", "--range-seconds", "9", "--driver", "0", "--result", "0")
    _run("simulate_cluster", *words, "--json", str(figures))
    (row,) = json.loads(figures.read_text())["figures"]
    assert (row["tasks"], row["lost"], row["given_up"]) == (75 * 16, 0, 0)
    assert row["efficiency_percent"] == pytest.approx(100 * 9 / 9.5)
