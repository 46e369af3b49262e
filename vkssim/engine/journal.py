"""The journal of a run: every scored frame of its pairs until they are finished, so that a run that was cut off continues.

``OUTPUT.journal`` has checked lines. Each entry names its pair by a key: a digest of all that the pair's scores depend on,
except the device. Frames are written as soon as they are scored, whoever scored them. When a range of frames is complete, an
entry has the facts that only reading it could show. When a pair of a batch is finished, its record replaces all of that.
A journal is a local file. If the results of a batch go to a URL, it is in the user's state folder.

Numbers are JSON with the shortest text that reads back to the same double. Frames are scored again from the first
line on that is torn, altered, doubled or out of place.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import platformdirs

from ..errors import (
    DeviceError,
    InterruptedRunError,
    OptionError,
    OutputError,
    ReadError,
    VkssimError,
    WorkerLostError,
)
from ..frames.open import can_reopen
from ..metrics import files_of
from ..storage.checked_journal import BATCH, RUN, CheckedJournal, journal_path
from ..storage.inputs import input_states
from ..storage.location import PathOrUrl, as_path, is_url, redact_url
from ..types import BackendInfo
from ..utils.thread_pool import Closable
from ..utils.version import __version__
from ..utils.wording import counted
from .options import Clips, ScoreOptions
from .ranges import Unfinished

Identity = Mapping[str, Any]
"""Everything that a run's scores depend on, as JSON values, under names that a user understands."""

Record = Mapping[str, Any]
"""The facts about a pair that is finished, as values of JSON; `key` identifies the pair."""

CUT_OFF = (InterruptedRunError, DeviceError, OutputError, ReadError, WorkerLostError)
"""The errors after which a run can continue."""

_MIN_BYTES_TO_REWRITE = 1 << 24
"""The size of outdated entries from which on the file is written anew without them."""


class Journal(Closable):
    """The journal of a run; use with `with`.

    `identity` is that of a run of one pair: entries of another run are an error with `resume`, and are dropped without it. A
    batch has none, because its keys say enough. Nothing is changed before the first entry is added or `begin` is called, so a
    run that fails at once leaves the journal of another run alone. `note` gets notes for the user.

    Raises InputError if the file is not such a journal, OutputError if it cannot be written or another process has locked it.
    """

    def __init__(
        self,
        path: Path,
        note: Callable[[str], None] = lambda _text: None,
        *,
        identity: Identity | None = None,
        resume: bool = True,
    ) -> None:
        self._note = note
        self._identity: dict[str, Any] | None = None if identity is None else json.loads(json.dumps(identity))
        self.key = _sha256(identity)
        self.records: dict[str, Record] = {}
        """The records of finished pairs, by key."""
        self.unfinished: dict[str, Unfinished] = {}
        """The scores of all other pairs, by key."""
        self.begun = False
        self._resume = resume
        self._common: dict[str, Any] = {}
        """The facts that entries of frames leave out."""

        self._file = CheckedJournal(path, BATCH if identity is None else RUN, self._read_entry)
        self._rewritten_size = self._file.size
        self._common = {}
        self._earlier_frames = self.frames
        self._says_continued = False
        if not self._continues:
            self.unfinished = {}

    # -- earlier entries ---------------------------------------------------------------------------------------------

    def _read_entry(self, entry: Any) -> None:
        if "frames" in entry:
            common, frames = _split(entry)
            self._common = common = common or self._common
            entry = common | frames
        key = entry["pair"]
        if not isinstance(key, str):
            raise TypeError("a pair has a text as its key")
        if "record" in entry:
            record: Record = entry["record"]
            if not (isinstance(record["key"], str) and isinstance(record["error"], dict | None)):
                raise TypeError("a record must have the key of its pair, and its error or null")
            self.records[key] = record
            self.unfinished.pop(key, None)
        else:
            self.unfinished.setdefault(key, Unfinished()).read_entry(entry)

    @property
    def _continues(self) -> bool:
        return self._resume and self._file.head is not None

    @property
    def frames(self) -> int:
        """Return how many frames of unfinished pairs there are."""
        return sum(len(frames) for pair in self.unfinished.values() for frames in pair.frames.values())

    def check(self, backends: Sequence[BackendInfo]) -> None:
        """Raise OptionError if the entries belong to another run.

        One of the earlier devices must take part again, because any other device may round differently.
        """
        if self._identity is None or not self._continues or not self._earlier_frames:
            return
        head = self._file.head
        differing = [key for key in self._identity if self._identity[key] != head.get(key)]
        scored_by = {
            frame[2] for pair in self.unfinished.values() for frames in pair.frames.values() for frame in frames.values()
        }
        if not scored_by & set(backends):
            facts = (fact.name for fact in fields(BackendInfo))
            alike = {
                fact: {getattr(info, fact) for info in scored_by} & {getattr(info, fact) for info in backends} for fact in facts
            }
            differing += [fact for fact, common in alike.items() if not common] or ["devices"]
        if differing:
            raise OptionError(
                f"{self._file.path} belongs to another run: {', '.join(differing)} differ. Without `resume` the run starts"
                f" again, and its {counted(self._earlier_frames, 'frame')} are lost"
            )

    # -- new entries -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Continue from the earlier entries, or drop them; a second call does nothing. Raises OutputError."""
        self._begin()
        self._say_continued()

    def _begin(self) -> None:
        if self.begun:
            return
        journal, path, frames = self._file, self._file.path, counted(self._earlier_frames, "frame")

        if self._resume and journal.damaged:
            sound = frames if self._identity is not None else f"{counted(len(self.records), 'record')} and {frames}"
            self._note(f"{path} is damaged after {sound}; what is missing is scored again")

        if self._continues:
            journal.go_on()
            self._says_continued = self._earlier_frames > 0
        else:
            if self._earlier_frames:
                self._note(
                    f"{path} had {frames} of a run that was cut off; with `resume` the run would have continued from them"
                )
            journal.begin(self._identity or {})
        self.begun = True

    def _write(self, key: str, entry: Mapping[str, Any]) -> None:
        """Add an entry. An entry of frames leaves out the facts that it has in common with the previous entry of frames."""
        self._begin()
        entry, common = {"pair": key, **entry}, self._common
        if "frames" in entry:
            common, frames = _split(entry)
            entry = frames if common == self._common else entry
        self._file.add(entry)
        self._say_continued()
        self._common = common
        if "record" in entry and self._file.size > 2 * self._rewritten_size + _MIN_BYTES_TO_REWRITE:
            self._file.rewrite(self._identity or {}, self._entries())
            self._common = {}
            self._rewritten_size = self._file.size

    def _say_continued(self) -> None:
        """Say that the run continues, once: not before an entry is written, because the disk may be full."""
        if self._says_continued:
            self._says_continued = False
            self._note(f"the run continues after {counted(self._earlier_frames, 'frame')} that an earlier run scored")

    def pair(self, key: str) -> Unfinished:
        """Return the scores of a pair so far, which write their changes here."""
        pair = self.unfinished.setdefault(key, Unfinished())
        pair.write = partial(self._write, key)
        return pair

    def finish(self, key: str, record: Record) -> None:
        """Put the record of a finished pair in place of its frames."""
        self.unfinished.pop(key, None)
        self.records[key] = record
        self._write(key, {"record": record})

    def _entries(self) -> Iterator[dict[str, Any]]:
        for key, record in self.records.items():
            yield {"pair": key, "record": record}
        for key, pair in self.unfinished.items():
            yield from ({"pair": key, **entry} for entry in pair.entries())

    # -- at the end --------------------------------------------------------------------------------------------------

    def leave(self, error: VkssimError | InterruptedRunError) -> None:
        """Add to the error of a run that was cut off that `resume` continues the run, if frames are stored."""
        if self.begun and isinstance(error, CUT_OFF) and self.frames:
            error.args = (f"{error}; `resume` continues from there",)

    def discard_frames(self, failures: Sequence[VkssimError | InterruptedRunError] = ()) -> None:
        """Discard the frames of a run that is done and whose scores are written, unless one of its failures cut it off.

        A run that never began leaves the frames of the journal, because they may belong to another run.
        """
        for failure in failures:
            self.leave(failure)
        if self.begun and not any(isinstance(failure, CUT_OFF) for failure in failures):
            self.unfinished = {}

    def close(self) -> None:
        """Close the journal, and remove that of a run of one pair if it has no frames."""
        with suppress(OutputError):  # the run is done, or has failed with another error
            if self._identity is not None and not self.frames and (self.begun or not self._earlier_frames):
                self._file.remove()
            elif self.begun:
                self._file.sync()
        self._file.close()


def _split(entry: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts that all frames of an entry share, and the frames."""
    frames = {name: entry[name] for name in ("first", "frames")}
    return {name: value for name, value in entry.items() if name not in frames}, frames


def open_journal(results: PathOrUrl, note: Callable[[str], None] = lambda _text: None) -> Journal:
    """Return the journal of a batch: beside a local file of results, or in the user's state folder for results at a URL.

    Raises InputError as `Journal`, and OutputError if the folder cannot be made.
    """
    place = as_path(results)
    if not is_url(place):
        return Journal(journal_path(Path(place)), note)

    folder = platformdirs.user_state_path("vkssim")
    path = folder / f"{hashlib.sha256(place.encode()).hexdigest()}.journal"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"the journal {path} cannot be written: {error.strerror}") from None
    note(f"the journal of {redact_url(place)} is {path}; the same command on this machine continues from it")
    return Journal(path, note)


def run_identity(clips: Clips, options: ScoreOptions) -> Identity:
    """Return everything that the scores of two files depend on, except the device.

    Path, size and change time stand for a file, also for that of a model.
    """
    return {
        "version of vkssim": __version__,
        "reference": _sha256(input_states(clips.reference)),
        "distorted clip": _sha256(input_states(clips.distorted)),
        "description of raw files": asdict(clips.raw),
        "features": list(options.features),
        "models": _sha256([input_states(file) for file in files_of(options.features)]),
        "planes": options.planes,
        "selection of frames": asdict(options.selection),
        "sync": options.sync,
        "changes of pictures": asdict(options.pictures),
        "backend": options.backend,
    }


def _sha256(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def open_run_journal(
    output: str | os.PathLike[str],
    clips: Clips,
    options: ScoreOptions,
    *,
    resume: bool,
    note: Callable[[str], None],
) -> Journal:
    """Open the journal of a pair beside its output. It need not exist. Use with `with`.

    Raises OptionError if the output is a URL or an input is a pipe, and the errors of `Journal`.
    """
    for name in clips.paths:
        if not can_reopen(name):
            shown = "standard input" if name == "-" else redact_url(name)
            raise OptionError(f"{shown} cannot be read a second time, so an interrupted run could not continue; give a file")
    if is_url(output):
        raise OptionError(
            f"{redact_url(output)} is a URL; the journal from which a run continues is beside a local path. Give one"
        )
    return Journal(journal_path(Path(output)), note, identity=run_identity(clips, options), resume=resume)
