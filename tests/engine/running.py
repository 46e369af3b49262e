"""Runs on two workers, as processes that are sent signals."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..support.commands import start_vkssim
from ..support.journals import ranges
from ..support.waiting import PATIENCE

FEATURE = ("--feature", "float_ssim=scale=1")  # whose shaders are compiled the quickest


def started(*words: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    """`vkssim WORDS`, under way."""
    return start_vkssim(*words, stderr=subprocess.PIPE, cwd=cwd)


def ended(process: subprocess.Popen[bytes]) -> str:
    """Return its messages once it has ended. Fails where they have a traceback."""
    messages = process.communicate(timeout=PATIENCE)[1].decode()
    assert "Traceback" not in messages, messages
    return messages


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
