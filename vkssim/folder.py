"""placeholder until merged"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .replacing import replace_file


class Folder:
    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, name: str, data: bytes) -> None:
        target = Path(self.path, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(data, target)

    def read(self, name: str) -> bytes | None:
        try:
            return Path(self.path, name).read_bytes()
        except FileNotFoundError:
            return None

    def names(self) -> set[str]:
        root = Path(self.path)
        return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            Path(self.path, name).unlink(missing_ok=True)

    def remove_all(self) -> None:
        import shutil

        shutil.rmtree(self.path, ignore_errors=True)
