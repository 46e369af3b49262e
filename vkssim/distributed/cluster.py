"""The engine of a cluster: Ray starts workers on its nodes, and tells when one of them ends or a node does."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

from ..errors import NoDeviceError, UnsuitableDeviceError, VkssimError
from ..storage.remote import named
from ..utils.interruption import at_once
from ..utils.sanitize import visible
from ..utils.version import __version__
from ..utils.wording import counted
from .connection import connect, nodes
from .task import Done, Task
from .worker_pool import WorkerDiedError, WorkerHandle, WorkerPool

PATIENCE = 60.0
"""Seconds that a cluster may have no worker."""

_SECONDS_TOGETHER = 10.0  # that the first workers wait for the others, so that clips are divided among all
_SECONDS_TO_END = 10.0
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_BETWEEN_TRIES = 0.2
_MORE_NODES = "`software` lets nodes without a GPU run Mesa's lavapipe on their CPUs"


@dataclass(frozen=True)
class _Place:
    """Where a worker may run: a GPU of a node, or `cpus` of it."""

    node: str
    address: str
    number: int
    cpus: int | None = None


class ClusterHandle(WorkerHandle):
    """A worker in an actor of Ray. `begun` is how people know its device, once it is there; no task may come before."""

    def __init__(self, place: _Place, backend: str, profile: bool) -> None:
        self.label = f"node {place.address}"
        self._place = place
        self.host = place.node
        self._backend = backend
        self._profile = profile
        self.doing: Future[Done] | None = None
        self._open()

    def _open(self) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from .remote import RemoteWorker

        place = self._place
        actor: Any = ray.remote(RemoteWorker).options(
            num_gpus=1 if place.cpus is None else 0,
            num_cpus=place.cpus or 0,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(place.node, soft=False),
        )
        self._actor = actor.remote()
        self._version: Future[str] = _outcome(self._actor.version.remote())
        begun = self._actor.begin.remote(self._backend, self._profile, os.getcwd(), place.cpus)
        self.begun: Future[str] = _outcome(begun)

    def submit(self, task: Task) -> Future[Done]:
        """See WorkerHandle. The future raises DeviceError where the worker could not begin."""
        try:
            self.label = self._begun()
        except (VkssimError, WorkerDiedError) as error:
            outcome: Future[Done] = Future()
            outcome.set_exception(error)
            return outcome
        self.doing = _outcome(self._actor.do.options(name=_name(task)).remote(task))
        return self.doing

    def _begun(self) -> str:
        try:
            version = self._version.result(_SECONDS_TO_END)  # both are done by now: a task comes later
            if version != __version__:
                raise UnsuitableDeviceError(
                    f"{self.label} has vkssim {version}, and this is {__version__}; every node needs the same"
                )
            return self.begun.result(_SECONDS_TO_END)
        except (VkssimError, WorkerDiedError):
            raise
        except Exception as error:
            raise UnsuitableDeviceError(f"no worker can begin on {self.label}: {error}") from error

    def renew(self) -> None:
        """See WorkerHandle."""
        self.close()
        self._open()

    def close(self) -> None:
        """See WorkerHandle."""
        import ray

        ray.kill(self._actor)


class Cluster(WorkerPool):
    """A worker for each GPU of a Ray cluster, and on `software` one for all CPUs of each node that has no GPU.

    Of the backend ``"cpu"`` there is one for each CPU. Nodes may come and go; `patience`, in seconds, is how long there may be
    no worker. See `connection.connect` for `address` and errors.
    """

    def __init__(
        self,
        *,
        backend: str = "vulkan",
        profile: bool = False,
        address: str | None = None,
        software: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        self._backend = backend
        self._profile = profile
        self._software = software
        self._patience = patience
        self._workers: dict[_Place, ClusterHandle] = {}
        self._looked: float | None = None
        self._ours = connect(address)

    def workers(self) -> Sequence[WorkerHandle]:
        """See WorkerPool. Waits while there is none; raises NoDeviceError after `patience` seconds."""
        if self._looked is None:
            self._look()
            if not self._workers:  # nobody waits a minute for what is not there
                raise NoDeviceError(f"{_what_there_is()}; {_MORE_NODES}")
            together = time.monotonic() + _SECONDS_TOGETHER
            while time.monotonic() < together and not all(worker.begun.done() for worker in self._workers.values()):
                with at_once():
                    time.sleep(_SECONDS_BETWEEN_TRIES)
        until = time.monotonic() + self._patience
        while True:
            self._look()
            begun = [worker for worker in self._workers.values() if worker.begun.done()]
            if begun and (len(begun) == len(self._workers) or any(worker.begun.exception() is None for worker in begun)):
                return begun  # those that cannot begin say so when they get a task
            if time.monotonic() > until:
                hint = "something else may hold them, `ray status` says what" if self._workers else _MORE_NODES
                raise NoDeviceError(f"no worker began within {self._patience:g} s: {_what_there_is()}; {hint}")
            with at_once():
                time.sleep(_SECONDS_BETWEEN_TRIES)

    def _look(self) -> None:
        """Have a worker at every place there is, and none elsewhere."""
        if self._looked is not None and time.monotonic() < self._looked + _SECONDS_BETWEEN_LOOKS:
            return
        self._looked = time.monotonic()
        places = list(_places(self._backend, self._software))
        for place in self._workers.keys() - places:
            self._workers.pop(place).close()
        for place in places:
            if place not in self._workers:
                self._workers[place] = ClusterHandle(place, self._backend, self._profile)

    def close(self) -> None:
        """See WorkerPool."""
        import ray

        workers = list(self._workers.values())
        self._workers.clear()
        for worker in workers:
            worker.close()
        wait(
            [worker.doing for worker in workers if worker.doing is not None], _SECONDS_TO_END
        )  # nothing is written behind the end
        if self._ours:
            self._ours = False
            ray.shutdown()


def kinds(backend: str, address: str | None, software: bool) -> tuple[list[str], int]:
    """Return the kind of each worker that `Cluster` would have, see `WorkerSpec`, and the CPUs of the cluster.

    Raises OptionError.
    """
    ours = connect(address)
    import ray  # only now: it looks at its environment once

    try:
        places = list(_places(backend, software))
        if not places:
            raise NoDeviceError(f"{_what_there_is()}; {_MORE_NODES}")
        found = ["gpu" if place.cpus is None else "cpu" if backend == "cpu" else "software" for place in places]
        return found, sum(node.cpus for node in nodes())
    finally:
        if ours:
            ray.shutdown()


def _what_there_is() -> str:
    there = nodes()
    cpus, gpus = sum(node.cpus for node in there), sum(node.gpus for node in there)
    return f"the Ray cluster has {counted(len(there), 'node')}, {counted(gpus, 'GPU')}, {counted(cpus, 'CPU')}"


def _places(backend: str, software: bool) -> Iterator[_Place]:
    """Yield where workers may run now."""
    for node in nodes():
        if backend == "cpu":
            yield from (_Place(node.id, node.address, number, 1) for number in range(node.cpus))
        elif node.gpus:
            yield from (_Place(node.id, node.address, number) for number in range(node.gpus))
        elif software and node.cpus:
            yield _Place(node.id, node.address, 0, node.cpus)


def _outcome(reference: Any) -> Future[Any]:
    """Return what a call of an actor comes to, with the errors that `WorkerHandle.submit` promises."""
    outcome: Future[Any] = Future()
    reference.future().add_done_callback(lambda inner: _pass_on(inner, outcome))
    return outcome


def _pass_on(inner: Future[Any], outer: Future[Any]) -> None:
    error = inner.exception()
    if error is None:
        outer.set_result(inner.result())
    else:
        outer.set_exception(_meant(error))


def _meant(error: BaseException) -> BaseException:
    """Return what an error of Ray means here; others mean what they say."""
    from ray.exceptions import ActorUnavailableError, RayActorError, RayError, RayTaskError

    if isinstance(error, RayTaskError):
        cause: BaseException = error.cause
        return cause
    if isinstance(error, RayActorError) and error.actor_init_failed:
        return UnsuitableDeviceError(f"no worker can begin there; is vkssim installed? {_lines(error)[-1]}")
    if isinstance(error, ActorUnavailableError):
        return WorkerDiedError("it cannot be reached")
    if isinstance(error, RayError):
        return WorkerDiedError(_lines(error)[0])
    return error


def _lines(error: Exception) -> list[str]:
    """Return what an error says; Ray adds pages, and colours."""
    return [visible(line) for line in str(error).splitlines() if line.strip()] or [type(error).__name__]


def _name(task: Task) -> str:
    """Return what Ray's dashboard calls it."""
    clip = visible(named(task.clips.distorted).rpartition("/")[2])
    if task.part is None:
        return f"divide {clip}"
    return f"score {clip} {task.part.first}-{task.part.stop or ''}"
