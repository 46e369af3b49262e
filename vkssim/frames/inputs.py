"""The files that a path names, and the state by which a file is identified (docs/adr/0013).

Sequences are `frame_%04d.png`, counted from the lowest existing number, and `frame_*.png`.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from ..errors import InputError
from ..storage import remote
from ..storage.location import as_path, is_url

_PATTERN = re.compile(r"%0?\d{0,2}d")  # two digits at most: a name with millions of zeros would fill the memory
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class PictureSequence:
    """A sequence of pictures, with the `name` and the `options` by which FFmpeg's demuxer image2 reads it."""

    files: tuple[str, ...]
    name: str
    options: dict[str, str] = field(default_factory=dict)


def sequence(path: str) -> PictureSequence | None:
    """Return the sequence that a path names; None for a file and any other path. Raises InputError if a picture is missing."""
    if is_url(path) or os.path.exists(path):  # os.path.exists never raises; opening the path says what is wrong with it
        return None
    if len(_PATTERN.findall(path)) == 1 and _PATTERN.search(Path(path).name):
        return _numbered(path)
    if _GLOB.search(path):
        if _GLOB.search(os.path.dirname(path)) or "{" in path:
            raise InputError(f"{path}: only names of pictures may have wildcards, not folders, and {{ is not a wildcard")
        found = sorted(glob.glob(path))
        if not found:
            raise InputError(f"{path}: no such files")
        return PictureSequence(tuple(found), path, {"pattern_type": "glob"})
    return None


def _numbered(path: str) -> PictureSequence:
    folder = Path(path).parent
    pattern = _PATTERN.search(Path(path).name)
    assert pattern is not None
    before, after = pattern.string[: pattern.start()], pattern.string[pattern.end() :]

    def name(number: int) -> str:
        return before + pattern[0] % number + after

    numbers = []
    if folder.is_dir():
        named = re.compile(re.escape(before) + r"(\d+)" + re.escape(after))
        found = (named.fullmatch(entry.name) for entry in folder.iterdir())
        numbers = sorted(int(match[1]) for match in found if match and name(int(match[1])) == match[0])
    if not numbers:
        raise InputError(f"{path}: no such files")
    missing = next((first + 1 for first, second in pairwise(numbers) if second != first + 1), None)
    if missing is not None:
        raise InputError(
            f"{path}: {name(missing)} is missing between {name(numbers[0])} and {name(numbers[-1])}; number the pictures"
            f" without gaps, or name them by a wildcard such as {before}*{after}"
        )
    around = (text.replace("%", "%%") for text in (str(folder / before) if before else f"{folder}{os.sep}", after))
    return PictureSequence(
        tuple(str(folder / name(number)) for number in numbers),
        pattern[0].join(around),
        {"pattern_type": "sequence", "start_number": str(numbers[0])},
    )


FileState = tuple[str, int | None, str | None]
"""Absolute path or URL, size, and version. The version of a file is a text of its times, inode and sample. The version of a URL
is the one that its server names, otherwise a sample. Size and version are None if they are not known.
"""

Content = tuple[int | None, str | None]
"""Size and version of the content of a file: equal for a copy of the file elsewhere, unless a server names versions."""

_SAMPLES = 4
_SAMPLE_BYTES = 4096


def input_states(path: str) -> list[FileState]:
    """Return the state of a file, or of each picture of a sequence."""
    states: list[FileState] = []
    for file in _files(path):
        (size, version), found = _look(file)
        if found is not None:
            times = f"{found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"
            size, version = found.st_size, times if version is None else f"{times} {version}"
        states.append((file if is_url(file) else os.path.abspath(file), size, version))
    return states


@dataclass(frozen=True)
class Opened:
    """The state of a file, or of the pictures of a sequence, when it was opened. Only regular files have one.

    `changed` ignores the time of an inode's last change, because a new name or other permissions change it too.
    """

    path: str
    files: tuple[tuple[Content, tuple[int, int] | None], ...]

    @classmethod
    def now(cls, path: str) -> Opened:
        """Return the current state."""
        looks = map(_look, _files(path))
        return cls(
            path,
            tuple((content, (found.st_mtime_ns, found.st_ino) if found and content[1] else None) for content, found in looks),
        )

    @property
    def changed(self) -> bool:
        """Return whether the files have changed since they were opened: written to, replaced or removed."""
        return Opened.now(self.path) != self

    @property
    def version(self) -> str:
        """Return a digest of the content that is the same on all machines."""
        return hashlib.sha256(json.dumps([content for content, _ in self.files]).encode()).hexdigest()[:32]


def _files(path: str) -> Sequence[str]:
    try:
        pictures = sequence(path)
    except (InputError, OSError, ValueError):
        pictures = None
    return [path] if pictures is None else pictures.files


def _look(path: str) -> tuple[Content, os.stat_result | None]:
    """Return the content of a file, None and None if it is not known, and the status of a local file."""
    try:
        name = as_path(path)
        if is_url(name):
            size, version = remote.state(path)
            return (size, version or _sample(size, partial(remote.read, path))), None
        found = os.stat(name)
        if not stat.S_ISREG(found.st_mode):  # opening a pipe would wait for its writer
            return (None, None), found
        with open(name, "rb", buffering=0) as file:
            return (found.st_size, _sample(found.st_size, partial(_read, file))), found
    except (OSError, ValueError):
        return (None, None), None


def _sample(size: int, read: Callable[[int, int], bytes]) -> str:
    """Return the digest of a few blocks from the start to the end."""
    last = max(0, size - _SAMPLE_BYTES)
    digest = hashlib.sha256()
    for start in sorted({last * block // (_SAMPLES - 1) for block in range(_SAMPLES)}):
        digest.update(read(start, min(size, start + _SAMPLE_BYTES)))
    return digest.hexdigest()[:32]


def _read(file: io.FileIO, start: int, stop: int) -> bytes:
    file.seek(start)
    return file.read(stop - start)
