"""Connect the process to a Ray cluster, and list its nodes."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import OptionError
from ..utils.extras import require_extra

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # otherwise a local Ray asks whether it may report its use
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # otherwise it prints a summary of repeated messages on standard output
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # otherwise it warns of a change in a later version
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # otherwise it copies the current folder, clips included, to every node
}
"""Settings that Ray reads only from the environment, and only when it is imported."""

_ONE_TRY = {"RAY_NUM_REDIS_GET_RETRIES": "1"}  # one try to connect takes 40 s, and Ray's default is 20 tries


@dataclass(frozen=True)
class Node:
    """Describe a node of the cluster, with the numbers of CPUs and GPUs that Ray counts there."""

    id: str
    address: str
    cpus: int
    gpus: int


def nodes() -> list[Node]:
    """Return the nodes that are alive."""
    import ray

    return [
        Node(
            node["NodeID"],
            node["NodeManagerAddress"],
            int(node["Resources"].get("CPU", 0)),
            int(node["Resources"].get("GPU", 0)),
        )
        for node in ray.nodes()
        if node["Alive"]
    ]


def connect(address: str | None) -> bool:
    """Connect this process to the cluster at `address`, as `ray.init` understands it. Return False if it is already connected.

    None means the cluster that the process is connected to, or else the one that RAY_ADDRESS names or that runs on this
    machine, or else a new one with this machine only. Settings that Ray reads from the environment are written there, and stay.
    Raises OptionError where Ray is missing or does not answer.
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
        where = "" if address is None else f" at {address}"
        raise OptionError(f"no connection to a Ray cluster{where}: {' '.join(str(error).split())}") from None
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
