"""The command line: one file a command, which is imported when that command is used.

It knows the doors of the Python API and everything below them, and computes nothing itself. Read `main` first, then `score`.
"""

from __future__ import annotations

from .main import main

__all__ = ["main"]
