"""The machine that a diagnosis looks at: its file system and its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """A file system below `root`, with the environment of a process and the name of the platform as `sys.platform` has it.

    The default is the machine on which this process runs. Tests describe others.
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    platform: str = sys.platform

    def path(self, name: str) -> Path:
        """Return the path of a file that has the absolute path `name` on the machine."""
        return self.root / name.lstrip("/")

    def variable(self, name: str) -> str:
        """Return the value of an environment variable; empty if it is not set."""
        return self.environment.get(name, "")
