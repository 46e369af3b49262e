"""The machine that a diagnosis looks at: its file system, its environment and its kind."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
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

    @property
    def is_container(self) -> bool:
        """Return whether the machine is a container of Docker, Podman, systemd-nspawn or Kubernetes."""
        variables = any(self.variable(name) for name in ("container", "KUBERNETES_SERVICE_HOST"))
        return variables or any(self.path(name).exists() for name in ("/.dockerenv", "/run/.containerenv"))

    @property
    def is_wsl(self) -> bool:
        """Return whether the machine is Windows' subsystem for Linux."""
        return "microsoft" in (self.kernel or "").lower()

    @property
    def kernel(self) -> str | None:
        """Return the release of the Linux kernel; None if there is none."""
        with suppress(OSError):
            return self.path("/proc/sys/kernel/osrelease").read_text(encoding="utf-8", errors="replace").strip()
        return None

    @property
    def os_release(self) -> dict[str, str]:
        """Return the fields by which a distribution of Linux names itself; none if it does not."""
        with suppress(OSError):
            text = self.path("/etc/os-release").read_text(encoding="utf-8", errors="replace")
            return {name: value.strip(" \"'") for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE)}
        return {}
