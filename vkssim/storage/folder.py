"""Small files, local or by URL: read as a whole, and written complete or not at all, one by one or into a folder of results."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import InputError, OutputError, VkssimError
from ..utils.limits import abbreviated
from . import urls
from .atomic import UNFINISHED, check_writable, replace_file, write_file
from .location import PathOrUrl, as_path, is_url, join, redact, redact_url, unsupported_url

_WRITABLE = ("gs://", "s3://")

_HEAD_BYTES = 512  # by which a video is known
_VIDEO_STARTS = (
    b"\x1a\x45\xdf\xa3",  # Matroska, WebM
    b"YUV4MPEG2",
    *(b"RIFF", b"FLV\x01", b"OggS", b"DKIF"),  # AVI, FLV, Ogg, IVF
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",  # ASF, WMV
    b"\x06\x0e\x2b\x34",  # MXF
    *(b"\x00\x00\x01\xba", b"\x00\x00\x00\x01"),  # MPEG program stream; H.264 or H.265 without a container
)
_BOXES = (b"ftyp", b"moov", b"mdat", b"wide")  # of MP4 and MOV
_PACKET = 188  # bytes of a packet of MPEG-TS; each packet begins with the byte G


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
                urls.filesystem_of(self._location)
            else:
                Path(self._location).mkdir(parents=True, exist_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file. A reader sees either the old or the new content."""
        with self._errors(name):
            if self._remote:
                filesystem, root = urls.filesystem_of(self._location)
                filesystem.pipe_file(f"{root}/{name}", data)
                return
            path = Path(self._location) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(data, path)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""
        with self._errors(name), suppress(FileNotFoundError, NotADirectoryError):
            if self._remote:
                filesystem, root = urls.filesystem_of(self._location)
                return bytes(filesystem.cat_file(f"{root}/{name}"))
            return (Path(self._location) / name).read_bytes()
        return None

    def names(self) -> set[str]:
        """Return the names of all files in the folder and its subfolders, except links; no names if it does not exist."""
        with self._errors(), suppress(FileNotFoundError):
            if self._remote:
                filesystem, root = urls.filesystem_of(self._location)
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
            raise OutputError(f"{target} cannot be used for results: {urls.os_error(error).strerror}") from None


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
        urls.filesystem_of(text)
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


def read_whole(path: PathOrUrl, most: int) -> bytes:
    """Return the content of a file of scores or of clips' names, from a path, a URL or a pipe.

    Raises InputError if it cannot be read, has more than `most` bytes, or is a video.
    """
    name = redact_url(path)
    try:
        if is_url(name):
            size = urls.size(name)
            data = urls.read(name, 0, min(size, _HEAD_BYTES) if size > most else size)
        else:
            with open(path, "rb") as file:
                state = os.fstat(file.fileno())
                size = state.st_size if stat.S_ISREG(state.st_mode) else 0
                data = file.read(_HEAD_BYTES if size > most else most + 1)
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{abbreviated(os.fspath(path))} is not a possible file name: {error}") from None
    if _is_video(data):
        raise InputError(
            f"{name} is a video; score it first: `vkssim score -r REFERENCE -d {name} -o SCORES.json` writes a"
            " report, `vkssim batch MANIFEST.csv -o RESULTS.csv` a table of all pairs of clips that MANIFEST.csv lists in its"
            " columns reference and distorted"
        )
    if max(size, len(data)) > most:
        raise InputError(f"{name} has {max(size, len(data))} bytes or more; the limit for such a file is {most}")
    return data


def _is_video(head: bytes) -> bool:
    is_stream = len(head) > 2 * _PACKET and {head[start] for start in (0, _PACKET, 2 * _PACKET)} == {ord("G")} and b"\0" in head
    return is_stream or head[4:8] in _BOXES or head.startswith(_VIDEO_STARTS)
