"""Find out whether the dynamic loader of the system can load a library, and why it cannot."""

from __future__ import annotations

import ctypes
import os

_OTHER_WORD_SIZE = ("wrong ELF class", "incompatible architecture", "not a valid Win32 application")


def load_problem(library: str) -> str | None:
    """Return the message of the dynamic loader for a library that it cannot load; None if it can.

    The library is an absolute path or a name that is searched for. Functions that the library lacks do not count, as for the
    Vulkan loader: they are looked up when they are first called.
    """
    try:
        ctypes.CDLL(library, mode=getattr(os, "RTLD_LAZY", ctypes.DEFAULT_MODE))
    except OSError as error:
        return str(error) or f"{library} cannot be loaded"
    return None


def is_for_other_programs(problem: str) -> bool:
    """Return whether a message of `load_problem` says that the library is for programs of another word size or processor."""
    return any(words in problem for words in _OTHER_WORD_SIZE)
