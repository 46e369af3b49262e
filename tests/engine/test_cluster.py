"""Scores of a Ray cluster on this machine, while its workers, its nodes and the driver are killed.

Each node has two Python processes and each actor is one, which imports Ray for one to two seconds. So there is one node until a
second one joins, and most tests share the actors of `engine`. Tests that need other actors come before them: a CPU has one at a
time.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vkssim
from vkssim.engine import cluster as cluster_module
from vkssim.engine import scheduler
from vkssim.engine.cluster import Actor, Cluster
from vkssim.engine.engine import Engine, Job, RunSettings
from vkssim.engine.journal import open_journal
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.scheduler import TaskKey
from vkssim.engine.task import Part, Task, TaskResult, WorkerDiedError, WorkerSpec
from vkssim.errors import NoDeviceError, OptionError, UnsuitableDeviceError, WorkerLostError
from vkssim.frames.options import RawDescription
from vkssim.report import render
from vkssim.report.results import ScoreReport

from ..support.clips import raw_bytes, write
from ..support.commands import start_program
from ..support.journals import entries
from ..support.pictures import clip
from ..support.waiting import PATIENCE, until

WIDTH, HEIGHT, FRAMES = 96, 64, 192
RANGES = FRAMES // 32
"""The fewest pairs of a range are 32."""

RAW = RawDescription(WIDTH, HEIGHT, "420", 8)
FEATURES = ("float_psnr",)
TASK = Task((Part(0, Clips("a", "b")),), ScoreOptions(FEATURES))
GPU = WorkerSpec("vulkan", None, "gpu", "made up")
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_log_monitor": False}
JOINING = "127.0.0.2"
DISTORTED = "test_cluster-"
"""The beginning of the names of distorted clips, by which Ray shows what a process scores."""

_LONGEST = 30
SOON = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300, "health_check_failure_threshold": 3}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A node with one CPU, and another one once it has joined; each has an address of its own."""
    patch = pytest.MonkeyPatch()
    for name, value in cluster_module._ENVIRONMENT.items():
        patch.setenv(name, value)
    folder = _short_folder()
    # Whatever folder it is given, Ray's own cluster for tests notes its address in another one, which it expects to be there.
    patch.setenv("RAY_TMPDIR", folder)
    (Path(folder) / "ray").mkdir()
    # The agent of a node then does without what the dashboard and Prometheus ask it for.
    patch.setitem(sys.modules, "ray.dashboard.optional_deps", None)
    # Even without a dashboard, Ray starts the process of its server, which would report the use of the cluster.
    patch.setattr("ray._private.node.Node.start_api_server", lambda _node, **_options: None)
    started = _head(folder)
    try:
        yield started
    finally:
        started.shutdown()
        for process in _with_files_in(folder):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)  # an agent of a node that was killed lives on for a minute
        shutil.rmtree(folder)
        patch.undo()


@pytest.fixture(scope="module")
def engine(nodes: Any) -> Iterator[Cluster]:
    """A worker for each CPU, with the reference in NumPy: nothing to compile in an actor that is started again."""
    with Cluster(address=nodes.address, backend="cpu") as started:
        yield started


@pytest.fixture(scope="module")
def joining(nodes: Any, engine: Cluster) -> Any:
    """A node that joins meanwhile. Ray counts a GPU there, which does not exist."""
    assert not _is_at(JOINING, engine)
    return nodes.add_node(node_ip_address=JOINING, **NODE, num_gpus=1)


@pytest.fixture
def two(engine: Cluster, joining: Any) -> Cluster:
    """A worker on each of the nodes, whatever an earlier test has killed."""
    until(lambda: len(engine.workers()) == 2)
    assert _is_at(JOINING, engine)
    return engine


def _is_at(address: str, engine: Cluster) -> bool:
    """Whether a worker is on the node with that address."""
    return any(f"(node {address})" in worker.label for worker in engine.workers())


def _short_folder() -> str:
    """Make a folder whose name is short enough for those of sockets in it, of which systems allow a hundred letters."""
    usual = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="ray-", dir=usual if len(usual) < _LONGEST else "/tmp")


def _head(folder: str, attempts: int = 3) -> Any:
    """A cluster of one node. Ray gives it 30 s to begin, which a busy machine may take."""
    from ray.cluster_utils import Cluster as Nodes

    head = {**NODE, "include_dashboard": False, "no_monitor": True, "temp_dir": folder, "_system_config": SOON}
    for _ in range(attempts - 1):
        with suppress(Exception):
            return Nodes(initialize_head=True, head_node_args=head)
    return Nodes(initialize_head=True, head_node_args=head)


def _with_files_in(folder: str) -> set[int]:
    """Other processes that have files open in a folder."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(path).startswith(folder):
                found.add(int(path.parts[2]))
    return found - {os.getpid()}


def _titles() -> dict[int, str]:
    """Every process by what it calls itself."""
    titles = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            titles[int(path.parent.name)] = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:  # it has ended
            continue
    return titles


def _workers_at(address: str) -> list[int]:
    """The processes of a node that have no task just now, as Ray shows them."""
    titles = _titles()
    found = []
    for process in [process for process, title in titles.items() if title.startswith("ray::RemoteWorkers")]:
        with suppress(OSError):
            parent = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
            if f"--node_ip_address={address} " in f"{titles.get(parent, '')} ":
                found.append(process)
    return found


@contextmanager
def _stopped_worker() -> Iterator[int]:
    """Stop the worker of the node that joined, whose next task then never ends, and kill it afterwards."""
    until(lambda: len(_workers_at(JOINING)) == 1)
    (process,) = _workers_at(JOINING)
    os.kill(process, signal.SIGSTOP)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[Job]:
    """Three pairs, the last of them short."""
    folder = tmp_path_factory.mktemp("clips")
    luma = clip(FRAMES, HEIGHT, WIDTH)
    reference = write(folder / "reference.yuv", raw_bytes(luma))
    made = []
    for number in range(3):
        moved = np.roll(luma, number + 1, axis=2)[: 20 if number == 2 else FRAMES]
        made.append(Job(str(number), Clips(reference, write(folder / f"{DISTORTED}{number}.yuv", raw_bytes(moved)), RAW)))
    return made


@dataclass
class Run:
    """What came of scoring jobs: outcomes by key, ranges that were found and how often others were scored, the warnings."""

    outcomes: dict[str, Any] = field(default_factory=dict)
    found: set[tuple[str, int]] = field(default_factory=set)
    ranges: Counter[tuple[str, int]] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)


def _score(engine: Cluster, jobs: list[Job], folder: Path, after_first: Callable[[], None] = lambda: None) -> Run:
    """Score pairs, and call a function after the first range."""
    run = Run()

    class Noting(Engine):
        def _handle_outcome(self, key: TaskKey, done: TaskResult | Exception) -> None:
            if isinstance(done, TaskResult) and not done.ranges:
                (state,) = self._groups[key.group]
                run.ranges[state.job.key, state.range(key.index).first] += 1
                if run.ranges.total() == 1:
                    after_first()
            super()._handle_outcome(key, done)

    with open_journal(folder / "results.csv") as journal:
        run.found |= {(key, pair.ranges[index].first) for key, pair in journal.unfinished.items() for index in pair.scores}
        settings = RunSettings(journal=journal, seconds=0.001, warn=run.warnings.append)
        for job, outcome in Noting(engine, ScoreOptions(FEATURES), settings).score(jobs):
            assert job.key not in run.outcomes, "it has two outcomes"
            run.outcomes[job.key] = outcome
    run.devices |= {worker.label for worker in engine.workers()}
    return run


def _assert_right(run: Run, jobs: list[Job], backend: str) -> None:
    """The same bytes as without a cluster, and no range scored twice."""
    for job in jobs:
        outcome = run.outcomes[job.key]
        assert not isinstance(outcome, Exception), outcome
        assert render(outcome, "json", "max") == render(_alone(job.clips, backend), "json", "max")
    assert set(run.ranges.values()) == {1}


@cache
def _alone(clips: Clips, backend: str) -> ScoreReport:
    return vkssim.score_files(clips.reference, clips.distorted, raw=RAW, features=FEATURES, backend=backend)


def _full(jobs: list[Job]) -> set[tuple[str, int]]:
    """Return all ranges that there are."""
    return {(job.key, 32 * number) for job in jobs[:2] for number in range(RANGES)} | {(jobs[2].key, 0)}


def test_the_same_bytes_as_alone(nodes: Any, jobs: list[Job], tmp_path: Path) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    with Cluster(address=nodes.address, software=True) as engine:
        assert signal.getsignal(signal.SIGTERM) is handler
        run = _score(engine, jobs, tmp_path)
    _assert_right(run, jobs, "vulkan")
    assert set(run.ranges) == _full(jobs)
    (device,) = run.devices
    assert device.startswith("llvmpipe")
    assert device.endswith(f"(node {nodes.head_node.node_ip_address})")
    assert run.warnings == []


def test_an_actor_has_several_workers(nodes: Any) -> None:
    """They work side by side. If the actor dies, each of them has lost its task, and the next tasks have one new actor.

    The connection is the caller's, which stays.
    """
    import ray

    def meeting() -> None:
        from vkssim.engine import worker

        both = threading.Barrier(2)

        def meet(_worker: object, task: Task, on_event: object) -> TaskResult:
            both.wait(PATIENCE)
            if task.batch == 1:
                threading.Event().wait()
            return TaskResult(frames=os.getpid())

        worker.Worker.do = meet  # type: ignore[assignment, method-assign]
        worker.engines_of = lambda spec: 2 if spec.decode == "auto" else 0
        worker.workers_of = lambda engines: engines

    def do_two() -> list[int]:
        tasks = [worker.submit(TASK, lambda _job, _event: None) for worker in cluster.workers()]
        assert len(tasks) == 2
        return [task.result(PATIENCE).frames for task in tasks]

    ray.init(nodes.address, log_to_driver=False, runtime_env={"worker_process_setup_hook": meeting})
    try:
        with Cluster(backend="cpu", decode="auto") as cluster:
            first, second = do_two()
            assert first == second
            tasks = [worker.submit(replace(TASK, batch=1), lambda *_: None) for worker in cluster.workers()]
            os.kill(first, signal.SIGKILL)
            for task in tasks:
                with pytest.raises(WorkerDiedError):
                    task.result(PATIENCE)
            third, fourth = do_two()
            assert third == fourth != first
        assert ray.is_initialized()
    finally:
        ray.shutdown()


DRIVER = """
import signal
import sys
from pathlib import Path
from vkssim.engine.cluster import Cluster
from vkssim.engine.engine import Engine, Job, RunSettings
from vkssim.frames.options import RawDescription
from vkssim.engine.journal import open_journal
from vkssim.engine.options import Clips, ScoreOptions

address, folder, feature, width, height, reference, *distorted = sys.argv[1:]
raw = RawDescription(int(width), int(height), "420", 8)
jobs = [Job(str(number), Clips(reference, path, raw)) for number, path in enumerate(distorted)]
with Cluster(address=address, backend="cpu") as engine, open_journal(Path(folder) / "results.csv") as journal:
    for _ in Engine(engine, ScoreOptions((feature,)), RunSettings(journal=journal, seconds=0.001)).score(jobs):
        signal.pause()
"""
"""A driver that waits for its end once it has the first pair."""


def test_the_driver_killed_and_started_again(
    nodes: Any, jobs: list[Job], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path
    words = [nodes.address, folder, *FEATURES, WIDTH, HEIGHT, jobs[0].clips.reference, *(job.clips.distorted for job in jobs)]
    with start_program(sys.executable, "-c", DRIVER, *map(str, words)) as driver:
        until(lambda: driver.poll() is not None or _scored(folder))
        driver.kill()
    assert driver.returncode == -signal.SIGKILL
    until(lambda: not any(title.startswith(f"ray::score {DISTORTED}") for title in _titles().values()))
    kept = _scored(folder)
    run = _score(request.getfixturevalue("engine"), jobs, folder)  # on the CPUs that the driver had
    _assert_right(run, jobs, "cpu")
    assert kept
    assert run.found == kept
    assert set(run.ranges) == _full(jobs) - kept


def _scored(folder: Path) -> set[tuple[str, int]]:
    """Return the ranges that are complete in the journal."""
    return {(entry["pair"], entry["range"][0]) for entry in entries(folder / "results.csv.journal") if "end" in entry}


def test_idle_workers_that_are_killed_are_started_again(engine: Cluster, jobs: list[Job], tmp_path: Path) -> None:
    count = len(engine.workers())
    idle = [process for process, title in _titles().items() if title.startswith("ray::RemoteWorkers")]
    assert len(idle) >= count
    for process in idle:
        os.kill(process, signal.SIGKILL)
    run = _score(engine, jobs, tmp_path)
    _assert_right(run, jobs, "cpu")
    assert set(run.ranges) == _full(jobs)


def test_no_gpu_and_one_that_vulkan_does_not_know(
    engine: Cluster, jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Ray counts one that is not there; nothing else takes its place."""
    monkeypatch.setattr(cluster_module, "WORKER_TIMEOUT_S", 0.1)
    with Cluster() as gpus:
        with pytest.raises(NoDeviceError, match=r"the Ray cluster has 1 node, 0 GPUs, 1 CPU;.*`software`"):
            gpus.workers()
        request.getfixturevalue("joining")
        until(lambda: _ready(gpus))
        with pytest.raises(NoDeviceError, match="Ray assigned GPU 0, which fits 0 of Vulkan's devices"):
            _score(gpus, jobs, tmp_path)


def _ready(engine: Cluster) -> bool:
    with suppress(NoDeviceError):
        return bool(engine.workers())
    return False


def test_a_worker_killed_on_the_way(two: Cluster, jobs: list[Job], tmp_path: Path) -> None:
    with _stopped_worker() as worker:
        run = _score(two, jobs, tmp_path, partial(os.kill, worker, signal.SIGKILL))
    _assert_right(run, jobs, "cpu")
    assert set(run.ranges) == _full(jobs)
    assert run.warnings
    assert all("ended unexpectedly" in warning for warning in run.warnings)


def test_a_worker_that_is_stopped(two: Cluster, jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives no sign of life during its task, so it is killed, and another worker scores its range.

    The reason is told even if Ray reports the actor's death at once.
    """
    monkeypatch.setattr(cluster_module, "SILENCE_TIMEOUT_S", 2.0)
    kill = Actor.close

    def close(actor: Actor) -> None:
        kill(actor)
        wait(actor.tasks.values(), 5)  # until Ray has reported it

    monkeypatch.setattr(Actor, "close", close)
    with _stopped_worker():
        run = _score(two, jobs, tmp_path)
    _assert_right(run, jobs, "cpu")
    assert set(run.ranges) == _full(jobs)
    assert any("it gave no sign of life for 2 s" in warning for warning in run.warnings)


def test_a_pair_that_ends_every_worker(two: Cluster, jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poison = jobs[2].clips.distorted
    submit = Actor.submit

    def submit_and_die(actor: Actor, worker: int, task: Task, on_event: Any) -> Future[TaskResult]:
        outcome = submit(actor, worker, task, on_event)
        if task.clips.distorted == poison:
            actor.close()
        return outcome

    monkeypatch.setattr(scheduler, "MAX_ATTEMPTS", 2)  # each of which costs an actor
    monkeypatch.setattr(Actor, "submit", submit_and_die)
    run = _score(two, jobs, tmp_path)
    lost = run.outcomes.pop("2")
    assert isinstance(lost, WorkerLostError)
    assert f"{Path(poison).name} was tried 2 times and given up" in str(lost)
    _assert_right(run, jobs[:2], "cpu")
    assert set(run.ranges) == _full(jobs) - {("2", 0)}


def test_a_node_removed_on_the_way(nodes: Any, two: Cluster, joining: Any, jobs: list[Job], tmp_path: Path) -> None:
    with _stopped_worker():
        run = _score(two, jobs, tmp_path, partial(nodes.remove_node, joining, allow_graceful=False))
    assert not _is_at(JOINING, two)
    _assert_right(run, jobs, "cpu")
    assert set(run.ranges) == _full(jobs)
    assert run.warnings
    assert all(f"(node {JOINING}) ended unexpectedly" in warning for warning in run.warnings)


def test_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OptionError, match=re.escape("pip install 'vkssim[ray]'")):
        Cluster()


def test_a_handler_that_python_did_not_install_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that embeds Python has its own for SIGTERM, which Python cannot install again after Ray has connected."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(signal, "getsignal", lambda _number: None)
    with cluster_module._same_handler():
        pass
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGTERM) == before


class _Method:
    """A method of a made-up actor. Its calls have the answers that a test gives them."""

    def __init__(self) -> None:
        self.calls: list[Future[Any]] = []

    def options(self, **_options: Any) -> _Method:
        return self

    def remote(self, *words: Any) -> Any:
        self.words = words
        self.calls.append(Future())
        return SimpleNamespace(future=partial(self.calls.__getitem__, len(self.calls) - 1))


class _MadeUp:
    """An actor that Ray knows nothing of."""

    def __init__(self) -> None:
        self.begin, self.do, self.is_alive = _Method(), _Method(), _Method()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[_MadeUp]:
    """The made-up actors that were started."""
    actors: list[_MadeUp] = []

    def start(_place: object) -> _MadeUp:
        actors.append(_MadeUp())
        return actors[-1]

    monkeypatch.setattr(cluster_module, "_start", start)
    return actors


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[_MadeUp]:
    """The made-up actors that were killed."""
    actors: list[_MadeUp] = []
    monkeypatch.setattr("ray.kill", actors.append)
    return actors


def _begun(started: list[_MadeUp]) -> Actor:
    """An actor with two workers, both with a task."""
    actor = Actor(cluster_module._Place(cluster_module._Node("a", "a", 0, 1), 0), GPU)
    started[0].begin.calls[0].set_result(replace(GPU, workers=2))
    for worker in actor.workers():
        worker.submit(TASK, lambda _job, _event: None)
    return actor


def test_another_version_is_refused(started: list[_MadeUp]) -> None:
    """An actor is told the version of the driver, and refuses the run before it looks for a device."""
    from vkssim.engine.ray_worker import RemoteWorkers

    _begun(started)
    version, spec, folder = started[0].begin.words
    assert version == vkssim.__version__
    with pytest.raises(UnsuitableDeviceError, match=f"has vkssim {version}, and this is 9.9"):
        RemoteWorkers().begin("9.9", spec, folder)


@pytest.mark.usefixtures("killed")
def test_each_device_gets_a_task_before_any_gets_two(monkeypatch: pytest.MonkeyPatch) -> None:
    class Begins(_Method):
        def remote(self, *words: Any) -> Any:
            answer = super().remote(*words)
            self.calls[-1].set_result(replace(GPU, workers=2))
            return answer

    def start(_place: object) -> _MadeUp:
        actor = _MadeUp()
        actor.begin = Begins()
        return actor

    places = [cluster_module._Place(cluster_module._Node(name, name, 0, 1), 0) for name in "ab"]
    monkeypatch.setattr(cluster_module, "connect", lambda _address: False)
    monkeypatch.setattr(cluster_module, "_places", lambda *_: places)
    monkeypatch.setattr(cluster_module, "_start", start)
    with Cluster() as cluster:
        assert [worker.host for worker in cluster.workers()] == ["a", "b", "a", "b"]


def test_a_late_report_of_a_death_ends_no_other_actor(started: list[_MadeUp], killed: list[_MadeUp]) -> None:
    actor = _begun(started)
    for call in started[0].do.calls:
        call.set_exception(WorkerDiedError("the actor died"))
        actor.restart_if_dead()
    assert len(started) == 2
    assert killed == started[:1]


def test_an_actor_ends_with_the_last_of_its_workers(started: list[_MadeUp], killed: list[_MadeUp]) -> None:
    first, second = _begun(started).workers()
    first.retire()
    assert not killed
    second.retire()
    assert killed == started


def test_all_workers_of_a_silent_actor_lose_their_tasks(
    started: list[_MadeUp], killed: list[_MadeUp], monkeypatch: pytest.MonkeyPatch
) -> None:
    actor = _begun(started)
    monkeypatch.setattr(cluster_module, "SILENCE_TIMEOUT_S", 0.0)
    tasks = list(actor.tasks.values())
    until(lambda: actor.restart_if_dead() or killed)
    for task in tasks:
        assert "it gave no sign of life" in str(task.exception(0))
    assert len(started[0].is_alive.calls) == 1
