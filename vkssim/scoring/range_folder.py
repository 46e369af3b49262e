"""The folder of finished ranges: a file for each, which stays until the scores of its clips are where they belong.

A pair of clips has a key of small letters and digits. ``KEY.parts`` says how the clips were divided, ``KEY.FIRST-STOP`` has the
scores of one range, and ``KEY.whole`` those of clips that were scored in one go. Workers write there what they have scored.
"""

from __future__ import annotations

import os

from ..storage.location import PathOrUrl
from ..storage.own_folder import OwnFolder
from .options import ScoreOptions
from .range_file import packed, packed_parts, unpacked, unpacked_parts
from .ranges import DividedScores, Part, PartScores

_DIVISION, _WHOLE = "parts", "whole"


class RangeFolder:
    """A folder by path or by URL, which need not be there. Every method raises OutputError where it is not vkssim's."""

    def __init__(self, place: PathOrUrl) -> None:
        self.place = os.fspath(place)
        self._folder = OwnFolder(place)

    def __str__(self) -> str:
        return str(self._folder)

    def check(self) -> None:
        """Raise OutputError where something that is not vkssim's has the name of the folder."""
        self._folder.exists()

    def make(self) -> None:
        """Make the folder where it is not there."""
        self._folder.make()

    def names(self) -> set[str]:
        """Return the names of the files that are there."""
        return self._folder.names()

    def find(self, key: str, options: ScoreOptions, names: set[str] | None = None) -> DividedScores:
        """Return what is there of a pair of clips, which was scored as `options` say.

        `names` are those of the folder, where they are known: to ask for the names of a bucket takes long.
        """
        there = self.names() if names is None else names
        name = name_of(key)
        whole = self._folder.read(name) if name in there else None
        if whole is not None:
            scores = unpacked(whole, name, options)
            return DividedScores() if scores is None else DividedScores([Part()], None, {0: scores})
        name = _division_of(key)
        division = self._folder.read(name) if name in there else None
        found = None if division is None else unpacked_parts(division, name)
        if found is None:
            return DividedScores()
        divided = DividedScores(*found)
        for place, part in enumerate(divided.parts):
            name = name_of(key, part)
            data = self._folder.read(name) if name in there else None
            range_scores = None if data is None else unpacked(data, name, options)
            if range_scores is not None:
                divided.scores[place] = range_scores
        return divided

    def write_division(self, key: str, divided: DividedScores) -> None:
        """Write how a pair of clips was divided."""
        name = _division_of(key)
        self._folder.write(name, packed_parts(divided.parts, divided.packets, name))

    def write(self, name: str, scores: PartScores) -> None:
        """Write the scores of a range under its `name_of`. The folder has to be there."""
        self._folder.write(name, packed(scores, name))

    def remove(self, key: str, parts: list[Part]) -> None:
        """Remove what is there of a pair of clips that was divided into these ranges."""
        self._folder.remove([_division_of(key), *(name_of(key, part) for part in parts), name_of(key)])

    def discard(self) -> None:
        """Remove all files of vkssim's, and the folder, unless somebody put something else into it."""
        self._folder.discard()


def name_of(key: str, part: Part = Part()) -> str:  # noqa: B008 - frozen
    """Return the name of the file with the scores of a range; of clips that are scored in one go without one."""
    return f"{key}.{_WHOLE}" if part.is_whole else f"{key}.{part.first:012d}-{part.stop or ''}"


def _division_of(key: str) -> str:
    return f"{key}.{_DIVISION}"
