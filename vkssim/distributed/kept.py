"""What `vkssim score` on several devices keeps until it is done, so that a run cut off goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from ..errors import InputError, OptionError, OutputError, VkssimError
from ..folder import Folder
from ..frame_journal import CUT_OFF, FRAMES_MAGIC, PARTS_MAGIC, Identity
from ..journal_file import JournalFile, journal_path
from .parts_file import KEPT


def parts_folder(results: str) -> str:
    """Where the scores of parts are kept until a file of results is written."""
    return f"{results}.parts"


def remove_parts(output: Path) -> None:
    """Remove what a run on several devices left beside its output. Raises OutputError."""
    Folder(parts_folder(str(output))).remove_all(KEPT)


class KeptParts:
    """The folder of a run's parts beside its output; use with `with`.

    A journal file beside it says of which run they are, and keeps other processes out. `resume` goes on from what is there;
    without it that goes. `tell` is called with what the user should know of that. Raises as `FrameJournal`, and OptionError
    where the parts are of another run.
    """

    key = "parts"

    def __init__(self, output: Path, identity: Identity, *, resume: bool, tell: Callable[[str], None]) -> None:
        self.folder = parts_folder(str(output))
        self._folder = Folder(self.folder)
        self._file = JournalFile(journal_path(output))
        try:
            self._begin(json.loads(json.dumps(identity)), resume, tell)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, identity: Any, resume: bool, tell: Callable[[str], None]) -> None:
        line = next(self._file.lines(), b"")
        if line.startswith(FRAMES_MAGIC):
            if resume:
                raise OptionError(f"{self._file.path} is of a run on one device; --resume it on that device")
            tell(f"{self._file.path} had frames of a run on one device; --resume on that device would have kept them")
        elif line and not line.startswith(PARTS_MAGIC[: len(line)]):
            raise InputError(f"{self._file.path} is no journal of vkssim; move it away, or give another --output")
        try:
            found = json.loads(line.removeprefix(PARTS_MAGIC))
        except ValueError:
            found = None
        there = len(self._folder.names())
        if resume and isinstance(found, dict):
            differing = [key for key in identity if identity[key] != found.get(key)]
            if differing:
                raise OptionError(
                    f"{self._file.path} is of another run: {', '.join(differing)} differ. Without --resume it is begun anew"
                )
            if there:
                tell(f"goes on with the parts in {self.folder}")
            return
        if there:
            tell(f"{self.folder} had parts of a run that was cut off; --resume would have kept them")
        self._folder.remove_all(KEPT)
        self._file.cut(0)
        self._file.add(PARTS_MAGIC + json.dumps(identity).encode() + b"\n")
        self._file.sync()

    def leave(self, error: VkssimError) -> None:
        """Say in an error that cuts the run off that it can go on."""
        if isinstance(error, CUT_OFF) and self._folder.names():
            error.args = (f"{error}; --resume goes on from there",)

    def settle(self, failures: Sequence[VkssimError]) -> None:
        """Remove the parts where the run is done and its scores are where they belong."""
        for failure in failures:
            self.leave(failure)
        if not any(isinstance(failure, CUT_OFF) for failure in failures):
            self._folder.remove_all(KEPT)

    def close(self) -> None:
        """Close the file; without parts it goes."""
        with suppress(OutputError):
            if not self._folder.names():
                self._folder.remove_all(KEPT)
                self._file.remove()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
