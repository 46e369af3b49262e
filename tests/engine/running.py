"""Runs on two workers, as processes that are sent signals."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ..support.commands import start_vkssim
from ..support.journals import ranges
from ..support.waiting import PATIENCE, until

FEATURE = ("--feature", "float_psnr")  # whose shaders compile soonest


def started(*words: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    """`vkssim WORDS`, under way."""
    return start_vkssim(*words, stderr=subprocess.PIPE, cwd=cwd)


def ended(process: subprocess.Popen[bytes]) -> str:
    """Return its messages once it has ended. Fails where they have a traceback."""
    messages = process.communicate(timeout=PATIENCE)[1].decode()
    assert "Traceback" not in messages, messages
    return messages


def pause_when(process: subprocess.Popen[bytes], condition: Callable[[], object]) -> list[int]:
    """Let a run go on in short steps until the condition holds, and leave it stopped: it cannot end before a signal comes.

    Return its processes, itself first; `resume` lets them go on. It has a low priority: if the machine is busy, the run
    waits, and not the process that has to stop it.
    """
    os.setpriority(os.PRIO_PROCESS, process.pid, 10)  # before it has further threads, which get the same

    def holds_after_a_step() -> object:
        resume([process.pid, *family(process)])
        time.sleep(0.01)
        _send(signal.SIGSTOP, [process.pid, *family(process)])
        assert process.poll() is None, "it ended before it could be stopped"
        return condition()

    until(holds_after_a_step)
    return [process.pid, *family(process)]


def resume(processes: Sequence[int]) -> None:
    """Let stopped processes go on."""
    _send(signal.SIGCONT, processes)


def _send(number: signal.Signals, processes: Sequence[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def family(process: subprocess.Popen[bytes]) -> list[int]:
    """The numbers of all processes that its threads started."""
    found: list[int] = []
    for path in Path(f"/proc/{process.pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended has none
            found += map(int, path.read_text().split())
    return found


def workers(process: subprocess.Popen[bytes]) -> list[int]:
    """The numbers of its workers' processes."""
    return [number for number in family(process) if b"spawn_main" in _command(number)]


def are_gone(processes: Sequence[int]) -> bool:
    """Whether none of them runs any more."""
    return not any(_command(number) for number in processes)


def _command(number: int) -> bytes:
    """Empty for a process that has ended."""
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def complete_ranges(output: Path) -> list[int]:
    """Return the first pair of each range of a run that is complete."""
    return ranges(Path(f"{output}.journal"))
