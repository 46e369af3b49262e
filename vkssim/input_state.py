"""What input files are known by, so that scores of others are not taken for theirs.

Size and time of change are not enough: `cp -p`, rsync and tar keep the time, and raw clips of one description have one size. So
the inode and the time of its last change count as well, and a sample of the content, which also tells files apart on systems
whose inodes come and go.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Sequence

from .errors import InputError
from .frames import remote
from .frames.sequence import sequence

FileState = tuple[str, int | None, str | None]
"""Absolute path or URL, size, and the version: of a file a text of its times, inode and sample, of a URL what its server says
or else a sample; None where nothing is known.
"""

_SAMPLES = 4
_SAMPLE_BYTES = 4096


def input_states(path: str) -> list[FileState]:
    """Return the state of a file, or of each picture of a sequence."""
    return [_state(file) for file in _files(path)]


def _files(path: str) -> Sequence[str]:
    try:
        pictures = sequence(path)
    except (InputError, OSError, ValueError):
        pictures = None
    return [path] if pictures is None else pictures.files


def _state(path: str) -> FileState:
    try:
        if remote.is_url(path):
            return path, *_url_state(path)
        return os.path.abspath(path), *_file_state(path)
    except (OSError, ValueError):
        return path if remote.is_url(path) else os.path.abspath(path), None, None


def _url_state(url: str) -> tuple[int, str]:
    local = remote.local_path(url)
    if local is not None:
        return _file_state(local)
    size, version = remote.state(url)
    return size, version or _sample(size, lambda start, stop: remote.read(url, start, stop))


def _file_state(path: str) -> tuple[int, str]:
    found = os.stat(path)
    version = f"{found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"
    if stat.S_ISREG(found.st_mode):  # to open a pipe would wait for its writer
        with open(path, "rb", buffering=0) as file:
            version += f" {_sample(found.st_size, lambda start, stop: _read(file.fileno(), start, stop))}"
    return found.st_size, version


def _sample(size: int, read: Callable[[int, int], bytes]) -> str:
    """Return the digest of a few blocks from the start to the end."""
    last = max(0, size - _SAMPLE_BYTES)
    digest = hashlib.sha256()
    for start in sorted({last * part // (_SAMPLES - 1) for part in range(_SAMPLES)}):
        digest.update(read(start, min(size, start + _SAMPLE_BYTES)))
    return digest.hexdigest()[:32]


def _read(descriptor: int, start: int, stop: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    return os.read(descriptor, stop - start)
