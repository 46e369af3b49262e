"""The journal of a run: every scored frame of its pairs until they are finished, so that a run that was cut off continues.

``OUTPUT.journal`` has checked lines. Each entry names its pair by a key: a digest of all that the pair's scores depend on,
except the device. Frames are written as soon as they are scored, whoever scored them. When a range of frames is complete, an
entry has the facts that only reading it could show. When a pair of a batch is finished, its record replaces all of that.
Beside results that go to a URL, ``OUTPUT.journal`` is a folder of objects with the same entries.

Numbers are JSON with the shortest text that reads back to the same double. Frames are scored again from the first
line on that is torn, altered, doubled or out of place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import (
    DeviceError,
    InputError,
    InterruptedRunError,
    OptionError,
    OutputError,
    ReadError,
    VkssimError,
    WorkerLostError,
)
from ..frames.inputs import input_states
from ..frames.open import can_reopen
from ..storage.checked_journal import BATCH, RUN, CheckedJournal, CheckedLines, journal_path
from ..storage.folder import Folder
from ..storage.location import PathOrUrl, as_path, is_url, redact_url
from ..types import BackendInfo
from ..utils.thread_pool import Closable
from ..utils.version import __version__
from ..utils.wording import counted
from .options import Clips, ScoreOptions
from .unfinished import Unfinished

Identity = Mapping[str, Any]
"""Everything that a run's scores depend on, as JSON values, under names that a user understands."""

Record = Mapping[str, Any]
"""The facts about a pair that is finished, as values of JSON; `key` identifies the pair."""

CUT_OFF = (InterruptedRunError, DeviceError, OutputError, ReadError, WorkerLostError)
"""The errors after which a run can continue."""

_MIN_TO_REWRITE = 1 << 24  # bytes of entries that nobody needs any more
_OBJECT_INTERVAL_S = 10.0
_READ_AT_ONCE = 32


class Journal(Closable):
    """The journal beside a local output; use with `with`.

    `records` are the records of finished pairs by key, `unfinished` the scores of all other pairs. `identity` is that of a
    run of one pair: entries of another run are an error with `resume`, and are dropped without it. A batch has none, because
    its keys say enough. Nothing is changed before the first entry is added or `begin` is called, so a run that fails at once
    leaves the journal of another run alone. `tell` gets notes for the user.

    Raises InputError if the file is not such a journal, OutputError if it cannot be written or another process has locked it.
    """

    def __init__(
        self,
        path: Path,
        tell: Callable[[str], None] = lambda _text: None,
        *,
        identity: Identity | None = None,
        resume: bool = True,
    ) -> None:
        self._tell = tell
        self._identity: dict[str, Any] | None = None if identity is None else json.loads(json.dumps(identity))
        self.key = _sha256(identity)
        self.records: dict[str, Record] = {}
        self.unfinished: dict[str, Unfinished] = {}
        self.begun = False
        self._resume = resume
        self._common: dict[str, Any] = {}  # the facts that entries of frames leave out
        self._load(path)
        self._common = {}
        self._found = self.frames
        self._says_continued = False
        if not self._continues:
            self.unfinished = {}

    # -- what is there -----------------------------------------------------------------------------------------------

    def _load(self, path: Path) -> None:
        self._file = CheckedJournal(path, BATCH if self._identity is None else RUN, self._take)
        self._rewritten = self._file.size

    def _take(self, entry: Any) -> None:
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
            self.unfinished.setdefault(key, Unfinished()).take(entry)

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
        if self._identity is None or not self._continues or not self._found:
            return
        head = self._file.head
        differing = [key for key in self._identity if self._identity[key] != head.get(key)]
        known = {frame[2] for pair in self.unfinished.values() for frames in pair.frames.values() for frame in frames.values()}
        if not known & set(backends):
            facts = (fact.name for fact in fields(BackendInfo))
            alike = {
                fact: {getattr(info, fact) for info in known} & {getattr(info, fact) for info in backends} for fact in facts
            }
            differing += [fact for fact, common in alike.items() if not common] or ["devices"]
        if differing:
            raise OptionError(
                f"{self._file.path} belongs to another run: {', '.join(differing)} differ. Without `resume` the run starts"
                f" again, and its {counted(self._found, 'frame')} are lost"
            )

    # -- what is added -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Continue from the entries that were found, or drop them; a second call does nothing. Raises OutputError."""
        self._begin()
        self._say_continued()

    def _begin(self) -> None:
        if self.begun:
            return
        journal, path, frames = self._file, self._file.path, counted(self._found, "frame")
        if self._resume and journal.damaged:
            sound = frames if self._identity is not None else f"{counted(len(self.records), 'record')} and {frames}"
            self._tell(f"{path} is damaged after {sound}; what is missing is scored again")
        if self._continues:
            journal.go_on()
            self._says_continued = self._found > 0
        else:
            if self._found:
                self._tell(
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
        if "record" in entry and self._file.size > 2 * self._rewritten + _MIN_TO_REWRITE:
            self._file.rewrite(self._identity or {}, self._entries())
            self._common = {}
            self._rewritten = self._file.size

    def _say_continued(self) -> None:
        """Say that the run continues, once: not before an entry is written, because the disk may be full."""
        if self._says_continued:
            self._says_continued = False
            self._tell(f"the run continues after {counted(self._found, 'frame')} that an earlier run scored")

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

    def settle(self, failures: Sequence[VkssimError | InterruptedRunError] = ()) -> None:
        """Drop the frames of a run that is done and whose scores are written, whatever the scores are.

        A run that never began leaves the frames that it found, because they may belong to another run.
        """
        for failure in failures:
            self.leave(failure)
        if self.begun and not any(isinstance(failure, CUT_OFF) for failure in failures):
            self.unfinished = {}

    def close(self) -> None:
        """Close the journal, and remove that of a run of one pair if it has no frames."""
        with suppress(OutputError):  # the run is done, or has failed with another error
            if self._identity is not None and not self.frames and (self.begun or not self._found):
                self._file.remove()
            elif self.begun:
                self._file.sync()
        self._file.close()


class RemoteJournal(Journal):
    """The journal beside results that go to a URL: a folder of objects.

    ``KEY.json`` is the record of a pair. ``KEY.NAME.json`` has some entries of an unfinished pair, and is removed with the
    record; entries are written every few seconds, and at the end of each range. No lock keeps two processes from using one
    folder. In that case both score the pairs, and their records are the same.

    Raises InputError if something else has the name of an object, OutputError if an object cannot be read.
    """

    def __init__(self, folder: Folder, tell: Callable[[str], None] = lambda _text: None) -> None:
        self._folder = folder
        self._names: dict[str, list[str]] = {}
        self._waiting: dict[str, list[Mapping[str, Any]]] = {}
        self._written = time.monotonic()
        super().__init__(Path(), tell)

    def _load(self, _path: Path) -> None:
        names = sorted(name for name in self._folder.names() if name.endswith(".json"))
        for name in names:
            if _OBJECT.fullmatch(name) is None:
                raise InputError(
                    f"{self._folder.path(name)} is not a record of a batch; move it away, or give another `output`"
                )
        with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
            found = list(zip(names, pool.map(self._read, names), strict=True))
        for name, entries in sorted(found, key=lambda one: one[0].count(".")):  # a record, which ends a pair, comes first
            key = name.partition(".")[0]
            if key not in self.records:
                self._names.setdefault(key, []).append(name)
                for entry in entries or ():
                    with suppress(ValueError, TypeError, KeyError):
                        self._take(entry)
        damaged = sum(entries is None for _, entries in found)
        if damaged:
            self._tell(f"{damaged} of {len(names)} records in {self._folder} are damaged; their pairs are scored again")

    def _read(self, name: str) -> list[Any] | None:
        """Return the entries of an object; None if `_put` did not write it."""
        try:
            entries = CheckedLines(BATCH, name).unpack(self._folder.read(name) or b"")
            return entries if all(entry["pair"] == name.partition(".")[0] for entry in entries) else None
        except (ValueError, RecursionError, KeyError, TypeError):
            return None

    def _put(self, key: str, name: str, entries: Sequence[Mapping[str, Any]]) -> None:
        self._folder.write(name, CheckedLines(BATCH, name).pack(entries))
        self._names.setdefault(key, []).append(name)

    @property
    def _continues(self) -> bool:
        return True

    def begin(self) -> None:
        """Do nothing: there is no head."""

    def _write(self, key: str, entry: Mapping[str, Any]) -> None:
        if "record" in entry:
            self._put(key, f"{key}.json", [{"pair": key, **entry}])
            self._waiting.pop(key, None)
            self._folder.remove([name for name in self._names.pop(key) if name != f"{key}.json"])
            return
        self._waiting.setdefault(key, []).append({"pair": key, **entry})
        if "frames" not in entry or time.monotonic() - self._written >= _OBJECT_INTERVAL_S:
            self._flush()

    def _flush(self) -> None:
        self._written = time.monotonic()
        while self._waiting:
            key, entries = self._waiting.popitem()
            self._put(key, f"{key}.{time.time_ns():020d}-{secrets.token_hex(4)}.json", entries)

    def close(self) -> None:
        """Write what waits."""
        with suppress(OutputError):
            self._flush()


_OBJECT = re.compile(r"[0-9a-f]{64}(\.\d{20}-[0-9a-f]{8})?\.json")


def _split(entry: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts that all frames of an entry share, and the frames."""
    frames = {name: entry[name] for name in ("first", "frames")}
    return {name: value for name, value in entry.items() if name not in frames}, frames


def open_journal(results: PathOrUrl, tell: Callable[[str], None] = lambda _text: None) -> Journal:
    """Return the journal of a batch beside a file of results, local or by URL. Raises InputError or OutputError."""
    place = as_path(results)
    return RemoteJournal(Folder(f"{place}.journal"), tell) if is_url(place) else Journal(journal_path(Path(place)), tell)


def run_identity(clips: Clips, options: ScoreOptions) -> Identity:
    """Return everything that the scores of two files depend on, except the device.

    Path, size and change time stand for a file.
    """
    return {
        "version of vkssim": __version__,
        "reference": _sha256(input_states(clips.reference)),
        "distorted clip": _sha256(input_states(clips.distorted)),
        "description of raw files": asdict(clips.raw),
        "features": list(options.features),
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
    tell: Callable[[str], None],
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
    return Journal(journal_path(Path(output)), tell, identity=run_identity(clips, options), resume=resume)
