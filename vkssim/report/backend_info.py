"""The backend that computed the scores of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_BETWEEN = "; "


@dataclass(frozen=True)
class BackendInfo:
    """A backend, its device and its driver, by name."""

    backend: str
    device: str
    driver: str

    def __str__(self) -> str:
        return f"{self.backend}: {self.device} ({self.driver})"


def merged_info(infos: Sequence[BackendInfo]) -> BackendInfo:
    """Return one description for scores of several devices, which names each device and each driver once."""
    devices, drivers = _listed(info.device for info in infos), _listed(info.driver for info in infos)
    return replace(infos[0], device=devices, driver=drivers)


def _listed(names: Iterable[str]) -> str:
    return _BETWEEN.join(sorted({name for listed in names for name in listed.split(_BETWEEN)}))
