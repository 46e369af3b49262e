"""Folders of results, local or by URL: small files that exist complete or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import OutputError, VkssimError
from .atomic import UNFINISHED, check_writable, replace_file, write_file
from .location import PathOrUrl, as_path, is_url, join, redact, redact_url, unsupported_url
from .urls import filesystem_of, os_error

_WRITABLE = ("gs://", "s3://")


class Folder:
    """A folder by path or URL, which is created at the first write.

    Names are relative, with ``/`` after a subfolder. The content of the files is trusted: a user who may write there can forge
    results. Every method raises OutputError if the folder cannot be used.
    """

    def __init__(self, location: PathOrUrl) -> None:
        path = as_path(location)
        self._remote = is_url(path)
        self._location = path.rstrip("/") if self._remote else path

    def __str__(self) -> str:
        return redact_url(self._location)

    def path(self, name: str) -> str:
        """Return the path of a file of that name, in the form that reports show."""
        return redact_url(join(self._location, name))

    def check(self) -> None:
        """Make a local folder; for a URL, check that its kind can be written."""
        with self._errors():
            if self._remote:
                check_url(self._location)
                filesystem_of(self._location)
            else:
                Path(self._location).mkdir(parents=True, exist_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file. A reader sees either the old or the new content."""
        with self._errors(name):
            if self._remote:
                filesystem, root = filesystem_of(self._location)
                filesystem.pipe_file(f"{root}/{name}", data)
                return
            path = Path(self._location) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(data, path)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""
        with self._errors(name), suppress(FileNotFoundError, NotADirectoryError):
            if self._remote:
                filesystem, root = filesystem_of(self._location)
                return bytes(filesystem.cat_file(f"{root}/{name}"))
            return (Path(self._location) / name).read_bytes()
        return None

    def names(self) -> set[str]:
        """Return the names of all files in the folder and its subfolders, except links; no names if it does not exist."""
        with self._errors(), suppress(FileNotFoundError):
            if self._remote:
                filesystem, root = filesystem_of(self._location)
                return {path.removeprefix(f"{root}/") for path in filesystem.find(root)} - {root}
            folder = Path(self._location)
            return {
                path.relative_to(folder).as_posix()
                for path in folder.rglob("*")
                if path.is_file() and not path.is_symlink() and not path.name.startswith(UNFINISHED)
            }
        return set()

    @contextmanager
    def _errors(self, name: str | None = None) -> Iterator[None]:
        try:
            yield
        except VkssimError:
            raise
        except Exception as error:  # each library of a file system has its own errors
            target = self if name is None else self.path(name)
            raise OutputError(f"{target} cannot be used for results: {os_error(error).strerror}") from None


def check_url(url: str) -> None:
    """Raise OutputError if URLs of that kind cannot be written."""
    if not url.startswith(_WRITABLE):
        can = "can only be read" if is_url(url) else "is a URL that is not supported"
        raise OutputError(f"{redact(url)} {can}; results go to a path, {' or '.join(_WRITABLE)}")


def check_output(location: PathOrUrl) -> None:
    """Raise OutputError if a file of that name cannot be written, as far as this can be checked before anything is scored."""
    text = as_path(location)
    if is_url(text):
        check_url(text)
        filesystem_of(text)
    elif unsupported_url(text) is not None and not Path(text).parent.is_dir():
        check_url(text)
    else:
        check_writable(Path(text))


def write_output(content: str | bytes, location: PathOrUrl) -> None:
    """Write a file: by URL in one step, by path as `write_file` does. Raises OutputError."""
    text = as_path(location)
    if is_url(text):
        folder, _, name = text.rpartition("/")
        check_url(text)
        Folder(folder).write(name, content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
    else:
        write_file(content, Path(text))
