"""The store of a run: everything that was scored so far, so that a run that was cut off goes on where it was.

It lies beside the output until the output is written. ``OUTPUT.journal`` says which run it is, and has a line for every frame
that one device scored, in order. ``OUTPUT.parts`` is a folder with a file for every range of frames that one of several devices
scored; see `range_folder`. A run that was begun on one device goes on with several, and the other way round.

Numbers are JSON with the shortest text that reads back to the same double. Every line of the journal has a checksum of all
lines up to it, and every file of the folder has its own: whatever is torn, altered, doubled or out of place is scored again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from ..errors import DeviceError, InterruptedRunError, OptionError, OutputError, ReadError, VkssimError, WorkerLostError
from ..frames.fingerprint import input_states
from ..frames.open import readable_again
from ..report.backend_info import BackendInfo
from ..report.frame_scores import FrameScores
from ..storage.checked_journal import CheckedJournal
from ..storage.checked_lines import RUN
from ..storage.journal_file import journal_path
from ..storage.own_folder import parts_folder
from ..storage.remote import is_url, named
from ..utils.version import __version__
from ..utils.wording import counted
from .options import Clips, ScoreOptions
from .range_folder import RangeFolder
from .ranges import EarlierScores, consecutive

Identity = Mapping[str, Any]
"""What a run's scores depend on, as JSON has it, by the names that a user knows."""

CUT_OFF = (InterruptedRunError, DeviceError, OutputError, ReadError, WorkerLostError)
"""The errors after which a run may go on."""


def run_identity(clips: Clips, options: ScoreOptions) -> Identity:
    """Return what the scores of two files depend on, but for the device; files by their paths, sizes and times of change."""
    return {
        "version of vkssim": __version__,
        "reference": _digest(clips.reference),
        "distorted clip": _digest(clips.distorted),
        "description of raw files": asdict(clips.raw),
        "features": list(options.features),
        "planes": options.planes,
        "selection of frames": asdict(options.selection),
        "sync": options.sync,
        "crop or scaling": asdict(options.pictures),
        "backend": options.backend,
    }


def _digest(path: str) -> str:
    return hashlib.sha256(json.dumps(input_states(path)).encode()).hexdigest()


def open_store(
    output: str | os.PathLike[str],
    clips: Clips,
    options: ScoreOptions,
    *,
    resume: bool,
    tell: Callable[[str], None],
) -> RunStore:
    """Open the store of a run beside its output, which need not be there; use with `with`.

    Raises OptionError where the output is a URL, or an input is a pipe, and whatever `RunStore` raises.
    """
    for name in clips.paths:
        if not readable_again([name]):
            raise OptionError(f"{named(name)} cannot be read a second time, so that a run cut off cannot go on; give a file")
    if is_url(output):
        raise OptionError(f"{named(output)} is a URL; what a run goes on from lies beside a local path")
    journal = journal_path(Path(output))
    return RunStore(journal, parts_folder(output), run_identity(clips, options), resume=resume, tell=tell)


@dataclass(frozen=True)
class _Devices:
    """An entry of the journal: which devices go on from here.

    Of one device the frames follow, from pair number `first` on, and `names` are those of their scores. Several devices leave
    ranges in the folder.
    """

    backends: tuple[BackendInfo, ...]
    first: int = 0
    names: tuple[str, ...] = ()


_Frame = tuple[int, float | None, list[float]]
"""An entry of the journal: the number of a frame, its time and its scores."""


class RunStore:
    """Opens the store of a run, or begins one; use with `with`.

    `resume` goes on with what is there; without it that is dropped as soon as the run begins. `tell` is called with what the
    user should know of that. `begun` is True once `begin` was called: a run that opens its device a second time goes on with
    the frames that it has. `ranges` is the folder of ranges, and `key` is the name of the run in it. What was kept stays when
    this is closed, unless `settle` found that nobody needs it.

    Raises InputError where the journal is some other file; OutputError where it cannot be written or another process has it,
    and where the folder is not vkssim's.
    """

    def __init__(self, journal: Path, folder: str, identity: Identity, *, resume: bool, tell: Callable[[str], None]) -> None:
        self._identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._resume = resume
        self._tell = tell
        self.begun = False
        self.key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self.ranges = RangeFolder(folder)
        self.ranges.check()  # an error here leaves no journal behind
        self._journal: CheckedJournal[_Devices | _Frame] = CheckedJournal(journal, RUN, _entry)
        self.in_order = _in_order(self._journal.entries)
        self._frames = sum(len(scores.frames) for scores in self.in_order)

    def begin(self, options: ScoreOptions, backend: BackendInfo, names: Sequence[str]) -> EarlierScores:
        """Begin or go on on one device, now that it is known what computes the scores, and which scores there are.

        Returns the frames that are there already, from the first pair on and without a gap. Raises OptionError where they are
        of another run.
        """
        self._begin([backend], names)
        earlier = consecutive([*self.in_order, *self.ranges.find(self.key, options).in_order()])
        self._journal.add([asdict(_Devices((backend,), len(earlier.frames), tuple(names)))])
        if earlier.frames:
            self._tell(f"goes on behind {counted(len(earlier.frames), 'frame')} that an earlier run scored")
        return earlier

    def begin_ranges(self, backends: Sequence[BackendInfo]) -> None:
        """Begin or go on on several devices, which keep ranges in the folder. Raises as `begin`."""
        self._begin(backends, ())
        self._journal.add([asdict(_Devices(tuple(backends)))])
        if self.ranges.names():
            self._tell(f"goes on with the ranges in {self.ranges}")
        if self._frames:
            self._tell(f"goes on with the {counted(self._frames, 'frame')} in {self._journal.path}")

    def _begin(self, backends: Sequence[BackendInfo], names: Sequence[str]) -> None:
        """Go on with what is there, or drop it. Raises OptionError where it is of another run."""
        journal = self._journal
        if journal.older:
            self._tell(f"{journal.path} is of an older version: it is not believed, and the run is begun anew")
        elif self._resume and journal.damaged:
            self._tell(f"{journal.path} is damaged behind {counted(self._frames, 'frame')}; what follows is scored again")
        if self._resume and journal.head is not None and journal.entries:  # the first says on which devices it was begun
            differing = self._differing(backends, names)
            if differing:
                raise self._of_another_run(differing)
            journal.go_on()
        else:
            lost = [f"{journal.path} had {counted(self._frames, 'frame')}"] * bool(self._frames)
            lost += [f"{self.ranges} had ranges"] * bool(self.ranges.names())
            if not (self._resume or journal.older):
                for what in lost:
                    self._tell(f"{what} of a run that was cut off; `resume` would have kept them")
            self.ranges.discard()
            journal.begin(self._identity)
            self.in_order, self._frames = [], 0
        self.begun = True

    def _differing(self, backends: Sequence[BackendInfo], names: Sequence[str]) -> list[str]:
        """Return what the journal has otherwise.

        Of the devices that scored before one has to be there again: any other may round otherwise.
        """
        head = self._journal.head
        differing = [key for key in self._identity if self._identity[key] != head.get(key)]
        before = [entry for entry in self._journal.entries if isinstance(entry, _Devices)]
        if names and any(devices.names not in ((), tuple(names)) for devices in before):
            differing.append("scores")
        known = {info for devices in before for info in devices.backends}
        if known and not known & set(backends):
            facts = (fact.name for fact in fields(BackendInfo))
            alike = {
                fact: {getattr(info, fact) for info in known} & {getattr(info, fact) for info in backends} for fact in facts
            }
            differing += [fact for fact, common in alike.items() if not common] or ["devices"]
        return differing

    def _of_another_run(self, differing: Sequence[str]) -> OptionError:
        lost = f", its {counted(self._frames, 'frame')} are lost then" if self._frames else ""
        return OptionError(
            f"{self._journal.path} is of another run: {', '.join(differing)} differ. Without `resume` it is begun anew{lost}"
        )

    def add(self, frames: Sequence[FrameScores]) -> None:
        """Write frames of one device at once: killing the process loses none of them. Raises OutputError."""
        self._journal.add([[frame.index, frame.time, list(frame.metrics.values())] for frame in frames])
        self._frames += len(frames)

    def leave(self, error: VkssimError) -> None:
        """Say in an error that cuts the run off that it can go on, where there is something to go on from."""
        if self.begun and isinstance(error, CUT_OFF) and (self._frames or self.ranges.names()):
            error.args = (f"{error}; `resume` goes on from there",)

    def settle(self, failures: Sequence[VkssimError]) -> None:
        """Drop what was kept where the run is done and its scores are where they belong, whatever they are.

        A run that never began leaves what it found, which may be another run's.
        """
        for failure in failures:
            self.leave(failure)
        if not self.begun or any(isinstance(failure, CUT_OFF) for failure in failures):
            return
        self._frames = 0
        try:
            self.ranges.discard()
        except OutputError as error:  # the scores are where they belong all the same
            self._tell(str(error))

    def close(self) -> None:
        """Close the journal; it is removed where neither frames nor ranges are kept."""
        with suppress(OutputError):  # what it is for is done, or lost to another error
            if self._frames or self.ranges.names():
                self._journal.sync()
            else:
                self.ranges.discard()
                self._journal.remove()
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _entry(entry: Any) -> _Devices | _Frame:
    """Return an entry of the journal. Raises ValueError, TypeError or KeyError where it is none."""
    if isinstance(entry, dict):
        backends = tuple(BackendInfo(**info) for info in entry["backends"])
        return _Devices(backends, int(entry["first"]), tuple(entry["names"]))
    index, time, values = entry
    return int(index), time, [float(value) for value in values]


def _in_order(entries: Sequence[_Devices | _Frame]) -> list[EarlierScores]:
    """Return the frames of a journal in blocks, each of consecutive pairs that one device scored."""
    blocks: list[tuple[_Devices, list[FrameScores]]] = []
    for entry in entries:
        if isinstance(entry, _Devices):
            blocks.append((entry, []))
        elif blocks:
            (devices, frames), (index, time, values) = blocks[-1], entry
            frames.append(FrameScores(index, dict(zip(devices.names, values, strict=True)), time))
    return [EarlierScores(devices.first, tuple(frames), devices.backends) for devices, frames in blocks if frames]
