"""Find sequences of pictures: `frame_%04d.png`, counted from the lowest existing number, and `frame_*.png`."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ..errors import InputError
from ..storage.location import is_url

_PATTERN = re.compile(r"%0?\d{0,2}d")  # two digits at most: a name with millions of zeros would fill the memory
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Sequence:
    """A sequence of pictures, with the `name` and the `options` by which FFmpeg's demuxer image2 reads it."""

    files: tuple[str, ...]
    name: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def frames(self) -> int:
        """Return the number of pictures."""
        return len(self.files)


def sequence(path: str) -> Sequence | None:
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
        return Sequence(tuple(found), path, {"pattern_type": "glob"})
    return None


def _numbered(path: str) -> Sequence:
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
    return Sequence(
        tuple(str(folder / name(number)) for number in numbers),
        pattern[0].join(around),
        {"pattern_type": "sequence", "start_number": str(numbers[0])},
    )
