"""The command line, called within the process if that is enough, else as a process of its own.

Every program of a test is started here. It has the default signals, whatever the tests were started with (`usual_signals`), and
ends with its test at the latest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from vkssim.cli import main

from .clips import raw_bytes, raw_flags, write
from .pictures import Picture
from .waiting import PATIENCE

TINY = ("--backend", "cpu", "--feature", "float_ssim=scale=1")
"""Scores clips of any size down to 11x11 in no time."""


def vkssim(*words: str) -> Result:
    """Run `vkssim WORDS` within this process."""
    return CliRunner().invoke(main, words)


def pair_words(folder: Path, reference: Picture, distorted: Picture) -> tuple[str, ...]:
    """The words that score a pair of raw clips, written to ref.yuv and dis.yuv."""
    clips = write(folder / "ref.yuv", raw_bytes(reference)), write(folder / "dis.yuv", raw_bytes(distorted))
    return ("score", "-r", clips[0], "-d", clips[1], *raw_flags(reference), *TINY)


def succeed(*words: str) -> Result:
    """Run `vkssim WORDS`, which exits with 0."""
    result = vkssim(*words)
    assert result.exit_code == 0, result.output
    return result


def fail(code: int, message: str, *words: str) -> Result:
    """Run `vkssim WORDS`, which exits with this code and says this on standard error."""
    result = vkssim(*words)
    assert (result.exit_code, message in result.stderr) == (code, True), result.output
    return result


def refuse(message: str, *words: str) -> Result:
    """Run `vkssim WORDS`, which prints no result, exits with 2, and says this on standard error."""
    result = fail(2, message, *words)
    assert result.stdout == ""
    return result


def harmful(text: str, keeps: str = "\n\t") -> list[str]:
    """Characters that a terminal obeys or cannot show."""
    obeyed = [character for character in text if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")]
    turned = [character for character in text if unicodedata.bidirectional(character) in ("LRE", "RLO", "LRO", "RLI", "PDI")]
    return [character for character in (*obeyed, *turned) if character not in keeps]


def vkssim_process(*words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m vkssim WORDS`, see `run_program`."""
    return python_process("-m", "vkssim", *words, **options)


def python_process(*words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run `python WORDS`, see `run_program`."""
    return run_program(sys.executable, *words, **options)


def run_program(
    *words: str,
    stdin: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    time_limit_s: float = PATIENCE,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, with additions to the environment; it is killed at the limit, or if the test ends before."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "check": False, **options}
    return subprocess.run(words, input=stdin, env={**os.environ, **(environment or {})}, timeout=time_limit_s, **streams)


def start_vkssim(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start `python -m vkssim WORDS`, see `start_program`."""
    return start_program(sys.executable, "-m", "vkssim", *words, **options)


def start_program(*words: str, **options: Any) -> subprocess.Popen[Any]:
    """Start a program that is sent signals, or talked to; `end_processes` kills it if the test does not wait for its end."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *words], **options)
    _running.append(process)
    return process


_TIED = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the thread that started it, even if that is killed
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""

_running: list[subprocess.Popen[Any]] = []


def end_processes() -> None:
    """Kill the processes that a test has left."""
    while _running:
        with suppress(BrokenPipeError), _running.pop() as process:  # what was to be written to it
            process.kill()


def usual_signals() -> None:
    """Let programs start with the default signals, whichever this process ignores, as `nohup` and shells arrange.

    A signal that is caught is not ignored in a program that is started. This process does nothing at it, as before; only at
    Ctrl-C it does the usual, because tests raise that.
    """
    for number in _INHERITED:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else lambda *_: None)


_INHERITED = [getattr(signal, name) for name in ("SIGINT", "SIGHUP", "SIGQUIT", "SIGTERM") if hasattr(signal, name)]
