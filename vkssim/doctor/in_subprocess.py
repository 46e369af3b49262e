"""Run work that a driver may crash or hang in a process of its own, within a time limit."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

from ..errors import VkssimError
from ..utils.interruption import ignore
from ..utils.spawning import SPAWN, current_folder

Send = Callable[[str, Any], None]
"""A function that sends a name and its value, which pickle takes, from the process that works to the one that waits."""

Work = Callable[..., None]
"""A function of a module, which gets a `Send` and further arguments."""

_END_TIMEOUT_S = 5.0

OUT_OF_TIME = "it did not finish within"
"""The clause of `run_in_process` for work that reached its limit begins so."""


def run_in_process(
    work: Work, arguments: tuple[Any, ...], seconds: float, on_value: Send, environment: Mapping[str, str | None] | None = None
) -> str | None:
    """Run `work(send, *arguments)` in a process of its own, and call `on_value` with each name and value that it sends.

    Return None if the work ended within the seconds, or else a clause that says why it did not: an error, a crash, or the
    limit, at which the process is killed. `environment` is added to the process's environment; None removes a variable. Raises
    InputError if the current folder was removed.
    """
    current_folder()
    receiving, sending = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_work, args=(sending, work, arguments, environment or {}), daemon=True)
    end = time.monotonic() + seconds
    try:
        process.start()
        sending.close()
        while True:
            if not receiving.poll(max(0.0, end - time.monotonic())):
                return f"{OUT_OF_TIME} {seconds:g} s"
            name, value = receiving.recv()
            if name is None:
                return None if value is None else str(value)
            on_value(name, value)
    except EOFError:  # the process ended without its last message
        process.join(_END_TIMEOUT_S)
        return _death(process.exitcode)
    finally:
        if process.pid is not None:
            process.kill()
            process.join(_END_TIMEOUT_S)
        receiving.close()


def _death(code: int | None) -> str:
    """Return the clause for a process that ended without an error of its own."""
    if code is not None and -code in set(signal.Signals):
        return f"it ended its process by {signal.Signals(-code).name}"
    return f"it ended its process with exit code {code}"


def _work(sending: Connection, work: Work, arguments: tuple[Any, ...], environment: Mapping[str, str | None]) -> None:
    """Do the work, send its end, and end the process at once: a driver may also crash while it is unloaded."""
    ignore()  # a terminal sends signals to all processes, and the parent decides what to do
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    try:
        work(lambda name, value: sending.send((name, value)), *arguments)
        last = None
    except VkssimError as error:
        last = str(error)
    except Exception as error:
        last = f"{type(error).__name__}: {error}"
    sending.send((None, last))
    os._exit(0)
