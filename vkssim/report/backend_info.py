"""Which backend computed the scores of a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BackendInfo:
    """Which backend, on which device, with which driver."""

    backend: str
    device: str
    driver: str

    def __str__(self) -> str:
        return f"{self.backend}: {self.device} ({self.driver})"
