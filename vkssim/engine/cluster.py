"""Run the workers of each GPU of a cluster in an actor of Ray, and start a new actor if its process ends."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..errors import NoDeviceError, OptionError, UnsuitableDeviceError, VkssimError
from ..storage.location import redact_url
from ..utils.interruption import interruptible
from ..utils.sanitize import visible
from ..utils.spawning import current_folder
from ..utils.version import __version__, require_extra
from ..utils.wording import counted
from .ranges import Event
from .task import MAX_WORKERS, OnEvent, Task, TaskResult, WorkerDiedError, WorkerHandle, WorkerPool, WorkerSpec

WORKER_TIMEOUT_S = 60.0
"""The longest time for which a cluster may have no worker."""

SILENCE_TIMEOUT_S = 60.0
"""The longest time for which an actor with a task may not answer. Then it is killed."""

_ALL_WORKERS_TIMEOUT_S = 10.0
"""The longest wait of the first actors for all others, so that clips are divided among all workers."""

_END_TIMEOUT_S = 10.0
_UPDATE_INTERVAL_S = 1.0
_POLL_INTERVAL_S = 0.2
_MORE_NODES = "`software` lets nodes without a GPU run Mesa's lavapipe on their CPUs"


@dataclass(frozen=True)
class _Node:
    """A node of the cluster, with the numbers of CPUs and GPUs that Ray counts there."""

    id: str
    address: str
    cpus: int
    gpus: int


@dataclass(frozen=True)
class _Place:
    """A place for an actor: a GPU of a node, or `cpus` of its CPUs."""

    node: _Node
    number: int
    cpus: int = 0


class Actor:
    """An actor of Ray with the workers of a place. If it dies, a new actor replaces it."""

    def __init__(self, place: _Place, spec: WorkerSpec) -> None:
        self.host = place.node.id
        self._place = place
        self._spec = replace(
            spec, kind=_kind(spec.backend, place), label=f"node {place.node.address}", threads=place.cpus or None
        )
        self._workers: list[ClusterHandle] = []
        self._retired = 0
        self._begin()

    def _begin(self) -> None:
        self._actor = _start(self._place)
        self.begun: Future[WorkerSpec] = _outcome(self._actor.begin.remote(__version__, self._spec, current_folder()))
        """The device, with the number of its workers. No task may be submitted before this future is done."""
        self.tasks: dict[int, Future[TaskResult]] = {}
        """The last task of each worker."""
        self._sign: Future[None] | None = None
        """The last answer to the question whether the actor is alive."""
        self._asked = 0.0
        """The time of that question, or of the beginning of the last task."""

    def workers(self) -> list[ClusterHandle]:
        """Return the workers of an actor that has begun. One that could not begin has a worker, which says why at its task."""
        if self.begun.exception() is None:
            self._spec = self.begun.result()
        self._workers += [ClusterHandle(self, number) for number in range(len(self._workers), self._spec.workers)]
        return self._workers

    @property
    def label(self) -> str:
        """Return the name of the device, or that of the node before it is known."""
        return self._spec.label

    def restart_if_dead(self) -> None:
        """Start a new actor if a task ended because this one died, and kill one that does not answer."""
        if any(map(_died, self.tasks.values())):
            self.close()
            self._begin()
        elif not all(task.done() for task in self.tasks.values()):
            self._check_alive()

    def _check_alive(self) -> None:
        silent = time.monotonic() - self._asked
        if self._sign is None or self._sign.done():
            if silent > SILENCE_TIMEOUT_S / 4:  # seldom, because Ray then shows the question in place of the task
                self._sign, self._asked = _outcome(self._actor.is_alive.remote()), time.monotonic()
        elif silent > SILENCE_TIMEOUT_S:
            for task in self.tasks.values():
                with suppress(InvalidStateError):  # it has ended
                    # Before the actor is killed: Ray reports its death too, without this reason.
                    task.set_exception(WorkerDiedError(f"it gave no sign of life for {SILENCE_TIMEOUT_S:g} s"))
            if any(map(_died, self.tasks.values())):
                self.close()

    def submit(self, worker: int, task: Task, on_event: OnEvent) -> Future[TaskResult]:
        """Have one of the workers do a task. The future raises DeviceError if the actor could not begin."""
        self._sign, self._asked = None, time.monotonic()
        error = self.begun.exception()
        if error is None:
            call = self._actor.do.options(name=_name(task)).remote(worker, task)
            self.tasks[worker] = _outcome(call, partial(_result_of, on_event))
        else:
            is_explained = isinstance(error, VkssimError | WorkerDiedError)
            self.tasks[worker] = Future()
            self.tasks[worker].set_exception(
                error if is_explained else UnsuitableDeviceError(f"no worker can begin on {self.label}: {error}")
            )
        return self.tasks[worker]

    def retire_worker(self) -> None:
        """Kill the actor if none of its workers gets another task."""
        self._retired += 1
        if self._retired == len(self._workers):
            self.close()

    def close(self) -> None:
        """Kill the actor."""
        import ray

        ray.kill(self._actor)


class ClusterHandle(WorkerHandle):
    """One of the workers in an actor of Ray."""

    def __init__(self, actor: Actor, number: int) -> None:
        self.label, self.host = actor.label, actor.host
        self.number = number
        self._actor = actor

    def submit(self, task: Task, on_event: OnEvent) -> Future[TaskResult]:
        """Have the worker do a task. The future raises DeviceError if its actor could not begin."""
        self.label = self._actor.label  # a new actor may have another GPU
        return self._actor.submit(self.number, task, on_event)

    def retire(self) -> None:
        """Leave the actor to its other workers."""
        self._actor.retire_worker()

    def close(self) -> None:
        """Kill the actor, with its other workers."""
        self._actor.close()


class Cluster(WorkerPool):
    """The workers of each GPU of a Ray cluster: one or, if `decode` names a decoder, as many as keep its video engines busy.

    With `software`, each node without a GPU has one worker, on all of its CPUs. With the backend ``"cpu"`` there is one worker
    for each CPU instead. Nodes may come and go. See `connect` for `address` and errors.
    """

    def __init__(
        self,
        *,
        backend: str = "vulkan",
        profile: bool = False,
        address: str | None = None,
        software: bool = False,
        decode: str | None = None,
    ) -> None:
        self._spec = WorkerSpec(backend, None, "", "", profile, decode=decode)
        self._software = software
        self._actors: dict[_Place, Actor] = {}
        self._dead: set[Actor] = set()
        self._updated = -_UPDATE_INTERVAL_S
        self._first = True
        self._ours = connect(address)

    def workers(self) -> Sequence[WorkerHandle]:
        """Return the workers that are ready. Wait while there is none, and raise NoDeviceError after WORKER_TIMEOUT_S."""
        called = time.monotonic()
        first, self._first = self._first, False
        while True:
            now = time.monotonic()
            for actor in self._actors.values():
                actor.restart_if_dead()
            dead = {actor for actor in self._actors.values() if _died(actor.begun)}
            self._update_places(now, soon=bool(dead - self._dead))  # their nodes may be gone
            self._dead = dead
            if first and not self._actors:  # waiting would change nothing
                raise NoDeviceError(f"{_resources()}; {_MORE_NODES}")
            begun = [actor for actor in self._actors.values() if actor.begun.done()]
            ready = any(actor.begun.exception() is None for actor in begun)
            wait_for_all = first and now < called + _ALL_WORKERS_TIMEOUT_S
            if begun and (len(begun) == len(self._actors) or (ready and not wait_for_all)):
                workers = [worker for actor in begun for worker in actor.workers()]
                return sorted(workers, key=lambda worker: worker.number)  # each device gets a task before any gets two
            if now > called + WORKER_TIMEOUT_S:
                hint = "something else may hold them, `ray status` says what" if self._actors else _MORE_NODES
                raise NoDeviceError(f"no worker began within {WORKER_TIMEOUT_S:g} s: {_resources()}; {hint}")
            with interruptible():
                time.sleep(_POLL_INTERVAL_S)

    def _update_places(self, now: float, *, soon: bool) -> None:
        """Start actors at new places, and end those whose places are gone. Do so once a second, or at once if `soon`."""
        if now < self._updated + _UPDATE_INTERVAL_S and not soon:
            return
        self._updated = now
        places = list(_places(self._spec.backend, self._software))
        for place in self._actors.keys() - places:
            self._actors.pop(place).close()
        for place in places:
            if place not in self._actors:
                self._actors[place] = Actor(place, self._spec)

    def close(self) -> None:
        """End all workers, and a cluster that was started here."""
        import ray

        actors = list(self._actors.values())
        self._actors.clear()
        for actor in actors:
            actor.close()
        wait([task for actor in actors for task in actor.tasks.values()], _END_TIMEOUT_S)  # after that they write nothing
        if self._ours:
            self._ours = False
            ray.shutdown()


def kinds(backend: str, address: str | None, software: bool) -> tuple[list[str], int]:
    """Return the kind of each device that `Cluster` would use, see `WorkerSpec`, and the number of CPUs of the cluster.

    Raises OptionError as `connect`, and NoDeviceError if there would be no worker.
    """
    ours = connect(address)
    import ray  # not before `connect`: Ray reads the environment once, when it is imported

    try:
        places = list(_places(backend, software))
        if not places:
            raise NoDeviceError(f"{_resources()}; {_MORE_NODES}")
        return [_kind(backend, place) for place in places], sum(node.cpus for node in _nodes())
    finally:
        if ours:
            ray.shutdown()


def _kind(backend: str, place: _Place) -> str:
    """Return the kind of the device of a place, see `WorkerSpec`."""
    return "gpu" if not place.cpus else "cpu" if backend == "cpu" else "software"


def _resources() -> str:
    nodes = _nodes()
    cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
    return f"the Ray cluster has {counted(len(nodes), 'node')}, {counted(gpus, 'GPU')}, {counted(cpus, 'CPU')}"


def _nodes() -> list[_Node]:
    """Return the nodes that are alive."""
    import ray

    resources = [(node, node["Resources"]) for node in ray.nodes() if node["Alive"]]
    return [
        _Node(node["NodeID"], node["NodeManagerAddress"], int(amounts.get("CPU", 0)), int(amounts.get("GPU", 0)))
        for node, amounts in resources
    ]


def _places(backend: str, software: bool) -> Iterator[_Place]:
    """Yield the places that the cluster has now."""
    for node in _nodes():
        if backend == "cpu":
            yield from (_Place(node, number, cpus=1) for number in range(node.cpus))
        elif node.gpus:
            yield from (_Place(node, number) for number in range(node.gpus))
        elif software and node.cpus:
            yield _Place(node, 0, node.cpus)


def _start(place: _Place) -> Any:
    """Have Ray start an actor at a place."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from .ray_worker import RemoteWorkers

    actor: Any = ray.remote(RemoteWorkers).options(
        num_gpus=0 if place.cpus else 1,
        num_cpus=place.cpus,
        max_concurrency=MAX_WORKERS + 1,  # `is_alive` is answered during tasks
        max_restarts=0,  # an actor that Ray restarts fails at tasks until the driver has its new address
        scheduling_strategy=NodeAffinitySchedulingStrategy(place.node.id, soft=False),
    )
    return actor.remote()


def _died(call: Future[Any]) -> bool:
    return call.done() and isinstance(call.exception(), WorkerDiedError)


def _outcome(call: Any, finish: Callable[[Any], Any] = lambda answer: answer) -> Future[Any]:
    """Return a future for an actor's answer after `finish`, which raises the errors that `WorkerHandle.submit` promises."""
    outcome: Future[Any] = Future()

    def pass_on(answer: Future[Any]) -> None:
        with suppress(InvalidStateError):  # the worker gave no sign of life, and its outcome comes too late
            try:
                outcome.set_result(finish(answer.result()))
            except InvalidStateError:
                raise
            except BaseException as error:
                outcome.set_exception(_translated(error))

    call.future().add_done_callback(pass_on)
    return outcome


def _result_of(on_event: OnEvent, answer: tuple[list[tuple[int, Event]], TaskResult | Exception]) -> TaskResult:
    """Pass on the events of a task, and return its result or raise its error."""
    events, outcome = answer
    for job, event in events:
        on_event(job, event)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _translated(error: BaseException) -> BaseException:
    """Return vkssim's error for an error of Ray's, and any other error unchanged."""
    from ray.exceptions import ActorUnavailableError, RayActorError, RayError, RayTaskError

    if isinstance(error, RayTaskError):
        cause: BaseException = error.cause
        return cause
    if isinstance(error, RayActorError) and error.actor_init_failed:
        return UnsuitableDeviceError(f"no worker can begin there; is vkssim installed? {_lines(error)[-1]}")
    if isinstance(error, ActorUnavailableError):
        return WorkerDiedError("it cannot be reached")
    return WorkerDiedError(_lines(error)[0]) if isinstance(error, RayError) else error


def _lines(error: Exception) -> list[str]:
    """Return the lines of an error's message, without the colours that Ray adds."""
    return [visible(line) for line in str(error).splitlines() if line.strip()] or [type(error).__name__]


def _name(task: Task) -> str:
    """Return the name of a task on Ray's dashboard."""
    clip = visible(redact_url(task.clips.distorted).rpartition("/")[2])
    scored = task.parts[0].frame_range
    return f"divide {clip}" if task.division is not None else f"score {clip} {scored.first}-{scored.stop or ''}"


_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # otherwise a local Ray asks whether it may report its use
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # otherwise it prints a summary of repeated messages on standard output
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # otherwise it warns of a change in a later version
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # otherwise it copies the current folder, clips included, to every node
}
"""Settings that Ray reads only from the environment, and only when it is imported."""

_ONE_TRY = {"RAY_NUM_REDIS_GET_RETRIES": "1"}  # one try to connect takes 40 s, and Ray's default is 20 tries


def connect(address: str | None) -> bool:
    """Connect this process to the cluster at `address`, as `ray.init` understands it. Return False if it is already connected.

    None means the cluster that the process is connected to, or else the one that RAY_ADDRESS names or that runs on this
    machine, or else a new one with this machine only. Settings that Ray reads from the environment are written there, and stay.
    Raises OptionError if Ray is missing or does not answer.
    """
    given = address not in (None, "local")
    for name, value in (_ENVIRONMENT | (_ONE_TRY if given else {})).items():
        os.environ.setdefault(name, value)
    ray = require_extra("ray", "ray", "a cluster")
    if address in (None, "auto") and ray.is_initialized():
        return False
    try:
        with _same_handler():
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        at = "" if address is None else f" at {address}"
        raise OptionError(f"no connection to a Ray cluster{at}: {' '.join(str(error).split())}") from None
    return True


@contextmanager
def _same_handler() -> Iterator[None]:
    """Restore the handler of SIGTERM, which `ray.init` replaces, unless it was not installed from Python."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
