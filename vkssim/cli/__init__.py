"""The command line: one file a command, imported when that command is used."""

from __future__ import annotations

from .main import main

__all__ = ["main"]
