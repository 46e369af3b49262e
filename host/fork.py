"""Vulkan does not survive a fork: the driver's state is the parent's, and its threads are not in the child.

What a forked child does is known here by one flag. `api.vk` asks it: there a call raises ForkError, and what lets go of the
parent's objects does nothing.
"""

from __future__ import annotations

import atexit
import ctypes
import os

from .errors import ForkError

_opener: int | None = None
_forked = False


def vulkan_is_opened() -> None:
    """Remember that this process loads a driver. From now on its forks are without Vulkan, whatever is closed before."""
    global _opener
    _opener = os.getpid()


def is_forked() -> bool:
    """Return True in a fork of a process that had opened Vulkan, and in forks of that."""
    return _forked


def check() -> None:
    """Raise ForkError in such a fork; whoever writes to mapped memory asks first, for that memory is the parent's."""
    if _forked:
        raise ForkError(
            f"process {os.getpid()} was forked from process {_opener}, which had opened Vulkan before: drivers do not survive"
            ' that. Start it by spawn (`multiprocessing.get_context("spawn")`; a PyTorch DataLoader takes'
            ' `multiprocessing_context="spawn"`), or fork before anything opens a device'
        )


def _in_child() -> None:
    global _forked
    if _opener is not None and not _forked:
        _forked = True
        _end_without_the_drivers()


def _end_without_the_drivers() -> None:
    """Leave out what drivers have asked the C library to do at the end of the process: Mesa's would wait for its threads.

    The handler registered last is called first, with the exit code. Only glibc has `on_exit`.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "on_exit"):
        atexit.register(library.fflush, None)
        library.on_exit(library._exit, None)


if hasattr(os, "register_at_fork"):  # where there is no fork, there is nothing to know
    os.register_at_fork(after_in_child=_in_child)
