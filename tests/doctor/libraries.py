"""Libraries that need others which are nowhere."""

from __future__ import annotations

from pathlib import Path

from vkssim.doctor.driver_files import driver_files
from vkssim.doctor.survey import list_libraries
from vkssim.doctor.system import Machine


def lavapipe_name() -> str:
    """Return the library of lavapipe as its file names it; every machine that runs the tests has one."""
    return next(str(file.library) for file in driver_files(Machine()) if "lvp" in file.path.name)


def lavapipe_library() -> Path:
    """Return the path of that library.

    Newer packages of Mesa name it without a folder, and the dynamic loader finds it where libraries are.
    """
    named = Path(lavapipe_name())
    if named.is_absolute():
        return named
    return next(path for folder in ("/usr/lib", "/usr/lib64") for path in Path(folder).rglob(named.name))


def broken_library(path: Path, count: int = 2) -> tuple[str, ...]:
    """Write lavapipe's library so that some of the libraries that it needs have names that do not exist, and return these."""
    source = lavapipe_library()
    data = source.read_bytes()
    renamed = []
    named = [name for name in list_libraries(str(source)) if f"\0{name}\0".encode() in data]
    for name in [name for name in named if not name.startswith(("libc.", "libm.", "ld-"))][:count]:
        other = name.replace("lib", "bil", 1)
        data = data.replace(f"\0{name}\0".encode(), f"\0{other}\0".encode())
        renamed.append(other)
    path.write_bytes(data)
    return tuple(renamed)
