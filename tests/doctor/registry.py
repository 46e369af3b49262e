"""A stand-in for the module `winreg`, which Python has on Windows alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class Registry:
    """Keys by their paths, each with its values; None for a key that may not be opened."""

    HKEY_LOCAL_MACHINE = ""
    REG_SZ, REG_MULTI_SZ, REG_DWORD = 1, 7, 4

    def __init__(self, keys: Mapping[str, Mapping[str, tuple[Any, int]] | None]) -> None:
        self._keys = keys

    @contextmanager
    def OpenKey(self, key: str, name: str) -> Iterator[str]:  # noqa: N802
        """Open a key below another."""
        path = f"{key}\\{name}".lstrip("\\")
        if not any(known == path or known.startswith(f"{path}\\") for known in self._keys):
            raise FileNotFoundError(2, "The system cannot find the file specified", path)
        if self._keys.get(path, {}) is None:
            raise PermissionError(13, "Access is denied", path)
        yield path

    def QueryInfoKey(self, key: str) -> tuple[int, int, int]:  # noqa: N802
        """Return the numbers of the keys below a key and of its values, and a time."""
        return len(self._below(key)), len(self._values(key)), 0

    def EnumKey(self, key: str, index: int) -> str:  # noqa: N802
        """Return the name of a key below a key."""
        return self._below(key)[index]

    def EnumValue(self, key: str, index: int) -> tuple[str, Any, int]:  # noqa: N802
        """Return a value of a key: its name, its data and their type."""
        name, (data, kind) = list(self._values(key).items())[index]
        return name, data, kind

    def QueryValueEx(self, key: str, name: str) -> tuple[Any, int]:  # noqa: N802
        """Return the data of a value and their type."""
        if name not in self._values(key):
            raise FileNotFoundError(2, "The system cannot find the file specified", name)
        return self._values(key)[name]

    def _values(self, key: str) -> Mapping[str, tuple[Any, int]]:
        return self._keys.get(key) or {}

    def _below(self, key: str) -> list[str]:
        below = [path.removeprefix(f"{key}\\") for path in self._keys if path.startswith(f"{key}\\")]
        return list(dict.fromkeys(path.partition("\\")[0] for path in below))
