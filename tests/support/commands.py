"""The command line, called within the process where that will do and as a process of its own where it must."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from click.testing import CliRunner, Result

from vkssim.cli import main

from .waiting import PATIENCE

TINY = ("--backend", "cpu", "--feature", "float_ssim=scale=1")
"""Scores clips of any size down to 11x11 in no time."""


def vkssim(*words: str) -> Result:
    """Run `vkssim WORDS` within this process."""
    return CliRunner().invoke(main, words)


def vkssim_process(
    *words: str, stdin: bytes | None = None, environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m vkssim WORDS` with additions to the environment."""
    return python_process("-m", "vkssim", *words, stdin=stdin, environment=environment, **options)


def python_process(
    *words: str, stdin: bytes | None = None, environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run `python WORDS` with additions to the environment."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(
        [sys.executable, *words],
        input=stdin,
        env={**os.environ, **(environment or {})},
        timeout=PATIENCE,
        check=False,
        **streams,
    )
