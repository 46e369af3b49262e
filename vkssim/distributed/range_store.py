"""What `vkssim score` on several devices keeps until it is done, so that a run cut off goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from ..errors import OptionError, OutputError, VkssimError
from ..scoring.frame_journal import CUT_OFF, Identity
from ..storage.checked_journal import CheckedJournal
from ..storage.checked_lines import FRAMES, PARTS
from ..storage.journal_file import journal_path
from ..storage.own_folder import OwnFolder, parts_folder


class RangeStore:
    """The folder of a run's parts beside its output; use with `with`.

    A journal file beside it says of which run they are, and keeps other processes out. `resume` goes on from what is there;
    without it that goes. `tell` is called with what the user should know of that. `key` is what the run is known by in the
    folder. Raises as `FrameJournal`, OptionError where the parts are of another run, and OutputError where the folder is not
    vkssim's.
    """

    def __init__(self, output: Path, identity: Identity, *, resume: bool, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.folder = parts_folder(output)
        self.key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self._folder = OwnFolder(self.folder)
        self._folder.exists()  # an error here leaves no journal behind
        self._journal = CheckedJournal(journal_path(output), PARTS, lambda entry: entry, also=[FRAMES])
        try:
            self._begin(json.loads(json.dumps(identity)), resume)
        except BaseException:
            self._journal.close()
            raise

    def _begin(self, identity: Any, resume: bool) -> None:
        journal, tell, there = self._journal, self._tell, self._folder.names()
        if journal.there == FRAMES:
            if resume:
                raise OptionError(f"{journal.path} is of a run on one device; `resume` it on that device")
            tell(f"{journal.path} had frames of a run on one device; `resume` on that device would have kept them")
        if resume and journal.head is not None:
            differing = [key for key in identity if identity[key] != journal.head.get(key)]
            if differing:
                raise OptionError(
                    f"{journal.path} is of another run: {', '.join(differing)} differ. Without `resume` it is begun anew"
                )
            journal.go_on()
            if there:
                tell(f"goes on with the parts in {self.folder}")
            return
        if journal.older and journal.there == PARTS:
            tell(f"{journal.path} is of an older version, without checksums: it is not believed, and the run is begun anew")
        elif resume and journal.damaged:
            tell(f"{journal.path} is damaged; the run is begun anew")
        elif there:
            tell(f"{self.folder} had parts of a run that was cut off; `resume` would have kept them")
        self._folder.discard()
        journal.begin(identity)

    def leave(self, error: VkssimError) -> None:
        """Say in an error that cuts the run off that it can go on."""
        if isinstance(error, CUT_OFF) and self._folder.names():
            error.args = (f"{error}; `resume` goes on from there",)

    def settle(self, failures: Sequence[VkssimError]) -> None:
        """Remove the parts where the run is done and its scores are where they belong."""
        for failure in failures:
            self.leave(failure)
        if not any(isinstance(failure, CUT_OFF) for failure in failures):
            try:
                self._folder.discard()
            except OutputError as error:  # the scores are where they belong all the same
                self._tell(str(error))

    def close(self) -> None:
        """Close the file; without parts it goes."""
        with suppress(OutputError):
            if not self._folder.names():
                self._folder.discard()
                self._journal.remove()
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
