"""Start Python processes that import the same modules as this one."""

from __future__ import annotations

import os
import subprocess
import sys


class ChildError(Exception):
    """A process failed; the message has the last line that it wrote to standard error."""


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new Python process, and return its output as text. Raises ChildError if the process fails.

    Modules are found in the same places as by this process, whether the package is installed, on PYTHONPATH or was put on
    `sys.path`. `-P` leaves out the current folder: a checkout has a folder `vkssim` that is not the whole package.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    command = [sys.executable, "-P", "-c", code, *arguments]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        last = (process.stderr.strip() or "it wrote no message").splitlines()[-1]
        raise ChildError(f"a process ended with exit code {process.returncode}: {last}")
    return process
