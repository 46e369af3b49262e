"""Hold finished ranges in a folder, a file for each, until the scores of their clips are written to the output.

A pair of clips has a key of lower-case letters and digits. ``KEY.parts`` holds the division of the clips, ``KEY.FIRST-STOP``
the scores of one range, and ``KEY.whole`` the scores of clips that were scored in one piece. Workers write their scores there.
"""

from __future__ import annotations

import os

from ..storage.location import PathOrUrl
from ..storage.own_folder import OwnFolder
from .options import ScoreOptions
from .range_file import packed, packed_division, unpacked, unpacked_division
from .ranges import DividedScores, FrameRange, RangeScores

_DIVISION, _WHOLE = "parts", "whole"


class RangeFolder:
    """Hold a folder by path or by URL, which need not exist. Methods raise OutputError where the folder is not vkssim's."""

    def __init__(self, place: PathOrUrl) -> None:
        self.place = os.fspath(place)
        self._folder = OwnFolder(place)

    def __str__(self) -> str:
        return str(self._folder)

    def check(self) -> None:
        """Raise OutputError where something else has the name of the folder."""
        self._folder.exists()

    def make(self) -> None:
        """Make the folder if it does not exist."""
        self._folder.make()

    def names(self) -> set[str]:
        """Return the names of the files in the folder."""
        return self._folder.names()

    def find(self, key: str, options: ScoreOptions, names: set[str] | None = None) -> DividedScores:
        """Return the stored scores of a pair of clips, which were scored with `options`.

        `names` are the names in the folder, where the caller has them: a bucket takes long to list its names.
        """
        there = self.names() if names is None else names
        name = name_of(key)
        whole = self._folder.read(name) if name in there else None
        if whole is not None:
            scores = unpacked(whole, name, options)
            return DividedScores() if scores is None else DividedScores([FrameRange()], None, {0: scores})
        name = _division_of(key)
        division = self._folder.read(name) if name in there else None
        found = None if division is None else unpacked_division(division, name)
        if found is None:
            return DividedScores()
        divided = DividedScores(*found)
        for index, frame_range in enumerate(divided.ranges):
            name = name_of(key, frame_range)
            data = self._folder.read(name) if name in there else None
            range_scores = None if data is None else unpacked(data, name, options)
            if range_scores is not None:
                divided.scores[index] = range_scores
        return divided

    def write_division(self, key: str, divided: DividedScores) -> None:
        """Write the division of a pair of clips."""
        name = _division_of(key)
        self._folder.write(name, packed_division(divided.ranges, divided.packets, name))

    def write(self, name: str, scores: RangeScores) -> None:
        """Write the scores of a range under its `name_of`. The folder must exist."""
        self._folder.write(name, packed(scores, name))

    def remove(self, key: str, ranges: list[FrameRange]) -> None:
        """Remove the files of a pair of clips that was divided into these ranges."""
        self._folder.remove([_division_of(key), *(name_of(key, frame_range) for frame_range in ranges), name_of(key)])

    def discard(self) -> None:
        """Remove all files of vkssim's, and also the folder if it has no other files."""
        self._folder.discard()


def name_of(key: str, frame_range: FrameRange = FrameRange()) -> str:  # noqa: B008 - frozen
    """Return the name of the file with the scores of a range.

    Clips that are scored in one piece have a name without a range.
    """
    return f"{key}.{_WHOLE}" if frame_range.is_whole else f"{key}.{frame_range.first:012d}-{frame_range.stop or ''}"


def _division_of(key: str) -> str:
    return f"{key}.{_DIVISION}"
