"""Make and remove a folder beside an output, which holds scores until they are written to the output.

A marker in the folder records that vkssim made it, and has a token. The names of all files that vkssim writes there begin with
the token, and vkssim never reads, writes or removes anything else in the folder. A local folder must belong to this user alone.
It is opened once for each use, and no link is followed. All operations go through this opened descriptor, so a folder that is
put in its place meanwhile is not touched. A folder by URL is only a common prefix of names: there the token identifies the
objects that are vkssim's.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from ..errors import OutputError
from ..host.private import check_private
from .checked_lines import pack_record, unpack_record
from .folder import Folder
from .location import PathOrUrl
from .remote import is_url, named

MARKER = ".vkssim-folder"
"""The name of the marker."""

_KIND = b"vkssim folder 1 "
_UNFINISHED = ".tmp"
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd  # Windows works with names only


def parts_folder(results: PathOrUrl) -> str:
    """Return the folder that holds the scores of ranges until a file of results is written."""
    return f"{os.fspath(results)}.parts"


class OwnFolder:
    """Hold a folder of vkssim's own, by path or by URL. It is cheap to make, and several processes can use it.

    Its methods raise OutputError if the folder cannot be used, or if something that is not vkssim's has its name.
    """

    def __init__(self, place: PathOrUrl) -> None:
        self._place = os.fspath(place).removeprefix("file://")
        self._remote = is_url(self._place)

    def __str__(self) -> str:
        return named(self._place)

    def make(self) -> None:
        """Make the folder if it does not exist."""
        with self._errors(), ExitStack() as undo:
            if not self._remote:
                with suppress(FileExistsError):
                    os.mkdir(self._place, 0o700)
                    undo.callback(self._remove_empty)  # for example if the disk is full
            with self._opened() as files:
                if files is not None and self._token(files) is None:
                    files.write(MARKER, self._new_marker())
            undo.pop_all()

    def exists(self) -> bool:
        """Return whether the folder exists. An empty folder that vkssim did not make does not count."""
        with self._marked() as marked:
            return marked is not None

    def names(self) -> set[str]:
        """Return the names of the files that vkssim wrote here; an empty set if the folder does not exist."""
        with self._marked() as marked:
            return set() if marked is None else {name for name in marked.names() if not name.endswith(_UNFINISHED)}

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None where it does not exist."""
        with self._marked() as marked:
            return None if marked is None else marked.files.read(marked.token + name)

    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file in one step. The folder must exist."""
        with self._marked() as marked:
            if marked is None:
                raise FileNotFoundError(errno.ENOENT, "the folder does not exist")
            marked.files.write(marked.token + name, data)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, and ignore missing ones."""
        with self._marked() as marked:
            if marked is not None:
                marked.remove(names)

    def discard(self) -> None:
        """Remove all files that vkssim wrote here, and also the folder if it has no other files."""
        with self._marked() as marked:
            if marked is None:
                return
            marked.remove(marked.names())
            left = marked.files.names()
            if not all(map(_is_marker, left)):
                return
            marked.files.remove(left)
        if not self._remote:
            self._remove_empty()

    def _remove_empty(self) -> None:
        with suppress(OSError):  # it is already removed, or has just got another file
            os.rmdir(self._place)

    @contextmanager
    def _marked(self) -> Iterator[_Marked | None]:
        """Open the folder; None if it does not exist or is empty."""
        with self._errors(), self._opened() as files:
            token = None if files is None else self._token(files)
            yield None if files is None or token is None else _Marked(files, token)

    def _token(self, files: _Files) -> str | None:
        """Return the token of a folder; None if it is empty. Raises OutputError if the folder is not vkssim's."""
        marker = files.read(MARKER)
        if marker is not None:
            with suppress(ValueError, TypeError, KeyError):
                return str(unpack_record(_KIND, marker, MARKER)["token"])
        if all(map(_is_marker, files.names())):  # a process was killed while it made or removed the folder; no scores are in it
            return None
        raise self._not_ours("it lacks vkssim's marker" if marker is None else f"its marker {MARKER} is damaged")

    def _new_marker(self) -> bytes:
        # A bucket has no locks, so two processes that begin at the same time must agree on the token.
        digest = hashlib.sha256(self._place.encode("utf-8", "surrogateescape")).hexdigest()
        return pack_record(_KIND, {"token": f"{digest[:16]}."}, MARKER)

    def _not_ours(self, why: str) -> OutputError:
        return OutputError(
            f"{self} is in the way: vkssim stores unfinished scores in a folder of that name, but did not make this one: {why}."
            " It was not touched; move it away, or give another `output`"
        )

    @contextmanager
    def _opened(self) -> Iterator[_Files | None]:
        """Open the folder, whatever its content; None if it does not exist. Raises OutputError if it is not this user's."""
        if self._remote:
            yield Folder(self._place)
            return
        try:
            found = os.lstat(self._place)
        except FileNotFoundError:
            yield None
            return
        if not stat.S_ISDIR(found.st_mode):
            raise self._not_ours("it is a link" if stat.S_ISLNK(found.st_mode) else "it is not a folder")
        if not _BY_DESCRIPTOR:
            yield _LocalFiles(self._place, None)
            return
        descriptor = os.open(self._place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            try:
                check_private(Path(self._place), os.fstat(descriptor), folder=True)
            except PermissionError as error:
                raise self._not_ours(str(error)) from None
            yield _LocalFiles(self._place, descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(f"{self} cannot be used for unfinished scores: {error.strerror}") from None


def _is_marker(name: str) -> bool:
    """Return True for the marker, and for the remains of a marker whose writing was interrupted."""
    return name.startswith(MARKER)


class _Files(Protocol):
    """Declare the operations on the files of an opened folder, by their names."""

    def names(self) -> set[str]:
        """Return all names, no matter who made the files."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None where it does not exist."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file in one step."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, and ignore missing ones."""


class _Marked:
    """Hold vkssim's files in an opened folder, by their names without the token."""

    def __init__(self, files: _Files, token: str) -> None:
        self.files = files
        self.token = token

    def names(self) -> set[str]:
        """Return the names, including the names of unfinished files."""
        return {name.removeprefix(self.token) for name in self.files.names() if name.startswith(self.token)}

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        self.files.remove([self.token + name for name in names])


class _LocalFiles:
    """Hold the files of a local folder, by the folder's descriptor. Windows has no such descriptors and uses the path."""

    def __init__(self, path: str, descriptor: int | None) -> None:
        self._path = path
        self._folder = descriptor

    def _at(self, name: str) -> str:
        return os.path.join(self._path, name) if self._folder is None else name

    def names(self) -> set[str]:
        return set(os.listdir(self._path if self._folder is None else self._folder))

    def read(self, name: str) -> bytes | None:
        try:
            descriptor = os.open(self._at(name), os.O_RDONLY | _NO_LINKS, dir_fd=self._folder)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):
                return None
            raise
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)

    def write(self, name: str, data: bytes) -> None:
        beside = f"{name}.{secrets.token_hex(4)}{_UNFINISHED}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS
        try:
            with open(os.open(self._at(beside), flags, 0o600, dir_fd=self._folder), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._at(beside), self._at(name), src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except BaseException:
            self.remove([beside])
            raise

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(self._at(name), dir_fd=self._folder)
