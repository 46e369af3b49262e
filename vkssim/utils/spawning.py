"""Start processes that begin as a new interpreter, as `multiprocessing` calls spawning."""

from __future__ import annotations

import multiprocessing
import os

from ..errors import InputError

SPAWN = multiprocessing.get_context("spawn")
"""The context in which processes are started: a forked process cannot use Vulkan."""


def current_folder() -> str:
    """Return the current folder, which a new process gets as well. Raises InputError if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InputError("the current folder was removed, and no process can be started in it: change to another one") from None
