"""Detect forks of a process that uses Vulkan: the driver's state and threads are the parent's, and the child lacks them.

One flag says that the process is such a fork. `api.vk` checks the flag: a call then raises ForkError, and a call that destroys
an object of the parent does nothing.
"""

from __future__ import annotations

import atexit
import ctypes
import os

from .errors import ForkError

_opener: int | None = None
_forked = False


def vulkan_is_opened() -> None:
    """Record that this process loads a driver. Its later forks cannot use Vulkan, even if everything was closed before."""
    global _opener
    _opener = os.getpid()


def is_forked() -> bool:
    """Return True in a fork of a process that had opened Vulkan, and in forks of such a fork."""
    return _forked


def check() -> None:
    """Raise ForkError in such a fork. Call this before you write to mapped memory, which belongs to the parent."""
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
        # The exit handlers that drivers registered with the C library are skipped: Mesa's would wait for threads that do not
        # exist. The handler that was registered last is called first, with the exit code. Only glibc has `on_exit`.
        library = ctypes.CDLL(None)
        if hasattr(library, "on_exit"):
            atexit.register(library.fflush, None)
            library.on_exit(library._exit, None)


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_in_child)
