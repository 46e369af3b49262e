"""Folders for results, local or by URL: small files that are there as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import OutputError, VkssimError
from .atomic import UNFINISHED, check_writable, replace_file, write_file
from .location import PathOrUrl, join
from .remote import filesystem_of, is_url, named, os_error

_FILE = "file://"
_WRITABLE = (_FILE, "gs://", "s3://")


class Folder:
    """A folder by path or by URL; cheap to make, and may be sent to other processes. Made when it is first written to.

    Names are relative, with ``/`` between a subfolder and what is in it. What is read is believed: whoever may write there may
    make up results. Every method raises OutputError where the folder cannot be used.
    """

    def __init__(self, place: PathOrUrl) -> None:
        text = os.fspath(place)
        self._place = text.removeprefix(_FILE)
        self._remote = is_url(self._place)

    def __str__(self) -> str:
        return named(self._place)

    def path(self, name: str) -> str:
        """Return where a file of that name is, as reports say it."""
        return named(join(self._place, name))

    def check(self) -> None:
        """Make a local folder, and see whether one by URL is of a kind that can be written."""
        with self._errors():
            if self._remote:
                check_url(self._place)
                filesystem_of(self._place)
            else:
                Path(self._place).mkdir(parents=True, exist_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Write a file, or put it in the place of another: whoever reads meanwhile has the old one or the new one."""
        with self._errors(name):
            if self._remote:
                filesystem, root = self._opened()
                filesystem.pipe_file(f"{root}/{name}", data)
                return
            path = Path(self._place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(data, path)

    def read(self, name: str) -> bytes | None:
        """Return what is in a file; None where there is none."""
        with self._errors(name), suppress(FileNotFoundError, NotADirectoryError):
            if self._remote:
                filesystem, root = self._opened()
                return bytes(filesystem.cat_file(f"{root}/{name}"))
            return (Path(self._place) / name).read_bytes()
        return None

    def names(self) -> set[str]:
        """Return all files in it and in its subfolders, but links; none where there is no such folder."""
        with self._errors():
            return self._remote_names() if self._remote else self._local_names()

    def _remote_names(self) -> set[str]:
        filesystem, root = self._opened()
        try:
            found = filesystem.find(root)
        except FileNotFoundError:
            return set()
        return {path.removeprefix(f"{root}/") for path in found} - {root}

    def _local_names(self) -> set[str]:
        root = Path(self._place)
        return {
            path.relative_to(root).as_posix()
            for path in root.rglob("*")
            if path.is_file() and not path.is_symlink() and not path.name.startswith(UNFINISHED)
        }

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects of a folder by URL; those that are not there are none to remove. Local files: see `OwnFolder`."""
        with self._errors():
            there = self._remote_names().intersection(names)
            filesystem, root = self._opened()
            if there:
                filesystem.rm([f"{root}/{name}" for name in sorted(there)])

    def _opened(self) -> tuple[Any, str]:
        filesystem, root = filesystem_of(self._place)
        return filesystem, root.rstrip("/")

    @contextmanager
    def _errors(self, name: str | None = None) -> Iterator[None]:
        try:
            yield
        except VkssimError:
            raise
        except Exception as error:  # of whatever library the file system is made
            where = self if name is None else self.path(name)
            raise OutputError(f"{where} cannot be used for results: {os_error(error).strerror}") from None


def check_url(url: str) -> None:
    """Raise OutputError where nothing can be written by a URL of that kind."""
    if not url.startswith(_WRITABLE):
        raise OutputError(f"{named(url)} can only be read; results go to a path, {' or '.join(_WRITABLE[1:])}")


def check_output(place: PathOrUrl) -> None:
    """Raise OutputError where a file of that name cannot be written, as far as can be told; asked before anything is scored."""
    text = os.fspath(place).removeprefix(_FILE)
    if is_url(text):
        check_url(text)
        filesystem_of(text)
    else:
        check_writable(Path(text))


def write_output(content: str | bytes, place: PathOrUrl) -> None:
    """Write a file by URL in one step, or by path as `write_file` does. Raises OutputError."""
    text = os.fspath(place).removeprefix(_FILE)
    if is_url(text):
        folder, _, name = text.rpartition("/")
        check_url(text)
        Folder(folder).write(name, content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
    else:
        write_file(content, Path(text))
