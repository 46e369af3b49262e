"""Opens what keeps the scores of a run beside its output, so that a run that was cut off goes on where it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..errors import OptionError
from ..frames.open import readable_again
from ..scoring.frame_journal import FrameJournal, run_identity
from ..scoring.options import Clips, ScoreOptions
from ..storage.journal_file import journal_path
from ..storage.own_folder import OwnFolder, parts_folder
from ..storage.remote import is_url, named
from .range_store import RangeStore

RunStore = FrameJournal | RangeStore
"""Frames in their order, as one device scores them; or ranges of frames, as several do."""


def open_store(
    output: str | os.PathLike[str],
    clips: Clips,
    options: ScoreOptions,
    *,
    several: bool,
    resume: bool,
    tell: Callable[[str], None],
) -> RunStore:
    """Open the store of a run beside its output, which need not be there; use with `with`.

    The journal is ``OUTPUT.journal``, and for `several` devices their ranges are in the folder ``OUTPUT.parts``. `resume` goes
    on with what an earlier run of the same left there; without it that is removed. `tell` is called with what the user should
    know of that.

    Raises OptionError where there is something of another run to resume, or an input is a pipe; InputError where the journal is
    some other file; and OutputError where the store cannot be written, is not vkssim's, or another process has it.
    """
    for name in clips.paths:
        if not readable_again([name]):
            raise OptionError(f"{named(name)} cannot be read a second time, so that a run cut off cannot go on; give a file")
    if is_url(output):
        raise OptionError(f"{named(output)} is a URL; what a run goes on from lies beside a local path")
    identity = run_identity(clips, options)
    if several:
        return RangeStore(Path(output), identity, resume=resume, tell=tell)
    ranges = OwnFolder(parts_folder(output))
    ranges.exists()  # an error here leaves no journal behind
    journal = FrameJournal(journal_path(Path(output)), identity, resume=resume, tell=tell)
    if not resume:
        try:
            ranges.discard()
        except BaseException:
            journal.close()
            raise
    return journal
