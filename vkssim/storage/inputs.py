"""The files that a path names, and the state by which a file is identified (docs/adr/0013).

Sequences are `frame_%04d.png`, counted from the lowest existing number, and `frame_*.png`, numbers in the names by value.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import platform
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path

from ..errors import InputError
from . import urls
from .location import as_path, is_url

_PATTERN = re.compile(r"%0?\d{0,2}d")  # two digits at most: a name with millions of zeros would fill the memory
_GLOB = re.compile(r"[*?\[]")
_NUMBER = re.compile(r"([0-9]+)")
_SPECIAL = re.compile(r"([*?\[\]{},\\])")  # characters of patterns
_LONGEST_PATTERN = 1023  # bytes; FFmpeg's image2 cuts off a longer pattern without a message


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
        files = sorted(glob.glob(path), key=_by_numbers)
        if not files:
            raise InputError(f"{path}: no such files")
        return PictureSequence(tuple(files), _ordered_pattern(path, files), {"pattern_type": "glob"})
    return None


def _by_numbers(path: str) -> tuple[list[str | int], str]:
    """Return the key that sorts names by their numbers: f_2 before f_10."""
    parts = _NUMBER.split(os.path.basename(path))
    return [int(part) if index % 2 else part for index, part in enumerate(parts)], path


def _ordered_pattern(path: str, files: Sequence[str]) -> str:
    """Return a pattern for which FFmpeg reads these files of the pattern `path` in this order.

    FFmpeg sorts names by their characters, but keeps the order of the alternatives in `{f_[0-9],f_[0-9][0-9]}.png`.
    """
    if list(files) == sorted(files):
        return path
    folder, names = os.path.dirname(path), [os.path.basename(file) for file in files]
    endings = {os.path.splitext(name)[1] for name in names}
    ending = endings.pop() if len(endings) == 1 else ""  # outside, because FFmpeg chooses the decoder by the end of the pattern
    stems = [name.removesuffix(ending) for name in names]
    present = Counter(_form(name.removesuffix(ending)) for name in os.listdir(folder or os.curdir) if name.endswith(ending))
    alternatives: list[str] = []
    for form, group in groupby(stems, _form):
        run = list(group)
        alternatives += [form] if len(run) == present[form] else [_literal(stem) for stem in run]
    pattern = os.path.join(folder, f"{{{','.join(alternatives)}}}{_literal(ending)}")
    if len(os.fsencode(pattern)) > _LONGEST_PATTERN - len(os.path.join(os.curdir, "")):
        raise InputError(
            f"{path}: the numbers in the names of its pictures have too many different forms; write all of them with the same"
            " number of digits"
        )
    return pattern


def _form(stem: str) -> str:
    """Return the pattern of all names that differ from this one only in digits."""
    return "".join("[0-9]" * len(part) if index % 2 else _literal(part) for index, part in enumerate(_NUMBER.split(stem)))


def _literal(text: str) -> str:
    """Return the pattern that matches this text alone."""
    return _SPECIAL.sub(r"\\\1", text)


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
        matches = (named.fullmatch(entry.name) for entry in folder.iterdir())
        numbers = sorted(int(match[1]) for match in matches if match and name(int(match[1])) == match[0])
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
        (size, version), status = _look(file)
        if status is not None:
            times = f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
            size, version = status.st_size, times if version is None else f"{times} {version}"
        states.append((file if is_url(file) else os.path.abspath(file), size, version))
    return states


@dataclass(frozen=True)
class Opened:
    """The state of a file, or of the pictures of a sequence, when it was opened. Only regular files have one."""

    path: str
    files: tuple[tuple[Content, tuple[int, int] | None], ...]
    status: str = field(default="", compare=False)
    """Inodes, the times of their last change, and the machine: if it is equal, the file was certainly not written to.

    `changed` ignores these times, because a new name or other permissions change them too.
    """

    @classmethod
    def now(cls, path: str) -> Opened:
        """Return the current state."""
        looks = [_look(file) for file in _files(path)]
        files = tuple(
            (content, (status.st_mtime_ns, status.st_ino) if status and content[1] else None) for content, status in looks
        )
        return cls(path, files, _status([status for _, status in looks]))

    @property
    def changed(self) -> bool:
        """Return whether the files have changed since they were opened: written to, replaced or removed."""
        return Opened.now(self.path) != self

    @property
    def touched(self) -> bool:
        """Return whether the status of the files has changed, so that blocks between the samples may have been written to."""
        return _status([_stat(file) for file in _files(self.path)]) != self.status

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


def _stat(path: str) -> os.stat_result | None:
    """Return the status of a local file; None for a URL, and if there is no such file."""
    try:
        return None if is_url(as_path(path)) else os.stat(as_path(path))
    except (OSError, ValueError):
        return None


def _status(stats: Iterable[os.stat_result | None]) -> str:
    """Return a digest of inodes and of the times of their last change, then a blank and the name of this machine."""
    times = [(status.st_ino, status.st_ctime_ns) for status in stats if status is not None]
    return f"{hashlib.sha256(json.dumps(times).encode()).hexdigest()[:32]} {platform.node()}"


def _look(path: str) -> tuple[Content, os.stat_result | None]:
    """Return the content of a file, None and None if it is not known, and the status of a local file."""
    try:
        name = as_path(path)
        if is_url(name):
            size, version = urls.state(path)
            return (size, version or _sample(size, partial(urls.read, path))), None
        status = os.stat(name)
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for its writer
            return (None, None), status
        with open(name, "rb", buffering=0) as file:
            return (status.st_size, _sample(status.st_size, partial(_read, file))), status
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
