"""The machine that a bench runs on, and the load that other programs put on it."""

from __future__ import annotations

import os
import platform
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spreads import Row

_STAT = Path("/proc/stat")
_CPU_INFO = Path("/proc/cpuinfo")
_IDLE = 3, 4  # idle and iowait, by their place in the first line of /proc/stat
_COUNTED = 8  # the times after these, of guests, are part of the first ones


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def host() -> str:
    """Return the system, the CPU and the number of cores, for the head of a table."""
    return f"{platform.system()} {platform.machine()}, {cores()} cores of {cpu_name()}"


def cpu_name() -> str:
    """Return the name of the CPU; Python's name of it if there is no /proc/cpuinfo."""
    with suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", _CPU_INFO.read_text(), re.MULTILINE)
        if found:
            return found[1]
    return platform.processor() or "a CPU that does not say its name"


def folder_in_memory() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder, in memory if the system has such a place."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)


def own_cpu_seconds() -> float:
    """Return the CPU time of this process so far: of all threads, and of the child processes that have ended."""
    import resource  # here, since Windows has no such module

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@dataclass(frozen=True)
class _CpuTime:
    """CPU seconds since the machine started: of all cores, of all cores while they were not idle, and of this process."""

    total: float
    busy: float
    own: float


def _cpu_time() -> _CpuTime | None:
    """Return the CPU time so far; None if the system does not report it."""
    try:
        line = _STAT.read_text().split("\n", 1)[0]
        ticks = [int(number) for number in line.split()[1 : 1 + _COUNTED]]
    except (OSError, ValueError):
        return None
    second = os.sysconf("SC_CLK_TCK")
    total = sum(ticks) / second
    idle = sum(ticks[place] for place in _IDLE if place < len(ticks)) / second
    return _CpuTime(total, total - idle, own_cpu_seconds()) if total else None


def _load_average() -> float | None:
    """Return the load average of the last minute; None if the system has none."""
    with suppress(AttributeError, OSError):
        return os.getloadavg()[0]
    return None


@dataclass
class _Lap:
    """The load averages before and after a section, and CPU seconds in total and of other programs; None if not known."""

    before: float | None
    after: float | None = None
    total: float | None = 0.0
    others: float | None = 0.0


class Watch:
    """A measurement of the machine's load, section by section, from its creation on."""

    def __init__(self) -> None:
        self._load, self._time = _load_average(), _cpu_time()
        self._laps: dict[tuple[str, str], _Lap] = {}

    def lap(self, section: str, where: str = "") -> None:
        """Count the time since the last call, or since the start, for a section; `where` names its subject."""
        load, now = _load_average(), _cpu_time()
        lap = self._laps.setdefault((section, where), _Lap(self._load))
        lap.after = load
        if now is None or self._time is None or lap.total is None or lap.others is None:
            lap.total = lap.others = None
        else:
            lap.total += now.total - self._time.total
            lap.others += (now.busy - self._time.busy) - (now.own - self._time.own)
        self._load, self._time = load, now

    def rows(self) -> list[Row]:
        """Return a row for each section, with `section` and `where`.

        `load` has the load averages before and after it. `others` is the CPU share of other programs in percent of all cores
        that the system counts, including the time that a hypervisor gave to other machines. They are None if the system does
        not report them.
        """
        return [
            {
                "section": section,
                "where": where,
                "load": [lap.before, lap.after],
                "others": 100 * max(0.0, lap.others) / lap.total if lap.total and lap.others is not None else None,
            }
            for (section, where), lap in self._laps.items()
        ]
