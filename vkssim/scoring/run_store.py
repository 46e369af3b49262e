"""Store every score of a run, so that an interrupted run can continue.

The store lies beside the output until the output is written. ``OUTPUT.journal`` identifies the run, and has a line for every
frame that one device scored, in order. ``OUTPUT.parts`` is a folder with a file for every range of frames that one of several
devices scored; see `range_folder`. A run that began on one device can continue on several, and the other way round.

Numbers are JSON with the shortest text that reads back to the same double. Every line of the journal has a checksum of all
lines up to it, and every file of the folder has its own. Frames whose lines are torn, altered, doubled or out of place are
scored again.
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
"""Everything that a run's scores depend on, as JSON values, under names that a user understands."""

CUT_OFF = (InterruptedRunError, DeviceError, OutputError, ReadError, WorkerLostError)
"""The errors after which a run can continue."""


def run_identity(clips: Clips, options: ScoreOptions) -> Identity:
    """Return everything that the scores of two files depend on, except the device.

    Path, size and change time stand for a file.
    """
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
    """Open the store of a run beside its output. The store need not exist. Use with `with`.

    Raises OptionError if the output is a URL or an input is a pipe, and the errors of `RunStore`.
    """
    for name in clips.paths:
        if not readable_again([name]):
            raise OptionError(
                f"{named(name)} cannot be read a second time, so an interrupted run could not continue; give a file"
            )
    if is_url(output):
        raise OptionError(f"{named(output)} is a URL; the files from which a run continues lie beside a local path. Give one")
    journal = journal_path(Path(output))
    return RunStore(journal, parts_folder(output), run_identity(clips, options), resume=resume, tell=tell)


@dataclass(frozen=True)
class _Devices:
    """Hold an entry of the journal that names the devices of the following entries.

    A single device has its frames behind this entry, from pair number `first` on, and `names` are the names of their scores.
    Several devices leave ranges in the folder.
    """

    backends: tuple[BackendInfo, ...]
    first: int = 0
    names: tuple[str, ...] = ()


_Frame = tuple[int, float | None, list[float]]
"""An entry of the journal: the number of a frame, its presentation time and its scores."""


class RunStore:
    """Open the store of a run, or make a new one; use with `with`.

    With `resume`, the run continues from the stored scores; without it, they are dropped as soon as the run begins. `tell` gets
    notes for the user about this. `begun` is True after `begin`: a run that opens its device a second time continues with the
    frames in its memory. `range_folder` holds the finished ranges, and `key` is the name of the run in it. Closing the store
    leaves the files where they are, unless `settle` found that nobody needs them.

    Raises InputError if the journal is another kind of file. Raises OutputError if the journal cannot be written, if another
    process uses it, or if the folder is not vkssim's.
    """

    def __init__(self, journal: Path, folder: str, identity: Identity, *, resume: bool, tell: Callable[[str], None]) -> None:
        self._identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._resume = resume
        self._tell = tell
        self.begun = False
        self.key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self.range_folder = RangeFolder(folder)
        self.range_folder.check()  # checked before the journal, so that an error leaves no journal behind
        self._journal: CheckedJournal[_Devices | _Frame] = CheckedJournal(journal, RUN, _entry)
        self.in_order = _in_order(self._journal.entries)
        self._frames = sum(len(scores.frames) for scores in self.in_order)

    def begin(self, options: ScoreOptions, backend: BackendInfo, names: Sequence[str]) -> EarlierScores:
        """Begin or continue on one device, as soon as the device and the names of the scores are known.

        Returns the frames that are stored from the first pair on without a gap. Raises OptionError if they belong to another
        run.
        """
        self._begin([backend], names)
        earlier = consecutive([*self.in_order, *self.range_folder.find(self.key, options).in_order()])
        self._journal.add([asdict(_Devices((backend,), len(earlier.frames), tuple(names)))])
        if earlier.frames:
            self._tell(f"the run continues behind {counted(len(earlier.frames), 'frame')} that an earlier run scored")
        return earlier

    def begin_ranges(self, backends: Sequence[BackendInfo]) -> None:
        """Begin or continue on several devices, which store ranges in the folder. Raises the errors of `begin`."""
        self._begin(backends, ())
        self._journal.add([asdict(_Devices(tuple(backends)))])
        if self.range_folder.names():
            self._tell(f"the run continues with the ranges in {self.range_folder}")
        if self._frames:
            self._tell(f"the run continues with the {counted(self._frames, 'frame')} in {self._journal.path}")

    def _begin(self, backends: Sequence[BackendInfo], names: Sequence[str]) -> None:
        """Continue from the stored scores, or drop them. Raises OptionError if they belong to another run."""
        journal = self._journal
        if self._resume and journal.damaged:
            self._tell(
                f"{journal.path} is damaged behind {counted(self._frames, 'frame')}; the frames behind them are scored again"
            )
        # The first entry names the devices on which the run began.
        if self._resume and journal.head is not None and journal.entries:
            differing = self._differing(backends, names)
            if differing:
                raise self._of_another_run(differing)
            journal.go_on()
        else:
            lost = [f"{journal.path} had {counted(self._frames, 'frame')}"] * bool(self._frames)
            lost += [f"{self.range_folder} had ranges"] * bool(self.range_folder.names())
            if not self._resume:
                for what in lost:
                    self._tell(f"{what} of a run that was cut off; with `resume` the run would have continued from them")
            self.range_folder.discard()
            journal.begin(self._identity)
            self.in_order, self._frames = [], 0
        self.begun = True

    def _differing(self, backends: Sequence[BackendInfo], names: Sequence[str]) -> list[str]:
        """Return the names of the values in which the journal differs from this run.

        One of the earlier devices must take part again, because any other device may round differently.
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
        lost = f", and its {counted(self._frames, 'frame')} are lost" if self._frames else ""
        return OptionError(
            f"{self._journal.path} belongs to another run: {', '.join(differing)} differ."
            f" Without `resume` the run starts again{lost}"
        )

    def add(self, frames: Sequence[FrameScores]) -> None:
        """Write frames of one device at once, so that a killed process loses none of them. Raises OutputError."""
        self._journal.add([[frame.index, frame.time, list(frame.metrics.values())] for frame in frames])
        self._frames += len(frames)

    def leave(self, error: VkssimError) -> None:
        """Add to an error that interrupts the run that `resume` continues it, if anything is stored."""
        if not (self.begun and isinstance(error, CUT_OFF)):
            return
        with suppress(OutputError):  # if the folder cannot be listed, the error of the run is the one to report
            if self._has_scores():
                error.args = (f"{error}; `resume` continues from there",)

    def _has_scores(self) -> bool:
        """Return whether frames or ranges are stored. Raises OutputError if the folder of ranges cannot be listed."""
        return bool(self._frames or self.range_folder.names())

    def settle(self, failures: Sequence[VkssimError]) -> None:
        """Drop the stored scores if the run is done and its scores are written, whatever the scores are.

        A run that never began leaves the files that it found, because they may belong to another run.
        """
        for failure in failures:
            self.leave(failure)
        if not self.begun or any(isinstance(failure, CUT_OFF) for failure in failures):
            return
        self._frames = 0
        try:
            self.range_folder.discard()
        except OutputError as error:  # the output has the scores, so this is no failure
            self._tell(str(error))

    def close(self) -> None:
        """Close the journal, and remove it where neither frames nor ranges are stored."""
        with suppress(OutputError):  # the run is done, or has failed with another error
            if self._has_scores():
                self._journal.sync()
            else:
                self.range_folder.discard()
                self._journal.remove()
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _entry(entry: Any) -> _Devices | _Frame:
    """Return an entry of the journal. Raises ValueError, TypeError or KeyError for anything else."""
    if isinstance(entry, dict):
        backends = tuple(BackendInfo(**info) for info in entry["backends"])
        return _Devices(backends, int(entry["first"]), tuple(entry["names"]))
    index, time, values = entry
    return int(index), time, [float(value) for value in values]


def _in_order(entries: Sequence[_Devices | _Frame]) -> list[EarlierScores]:
    """Return the frames of a journal in blocks. Each block has consecutive pairs that one device scored."""
    blocks: list[tuple[_Devices, list[FrameScores]]] = []
    for entry in entries:
        if isinstance(entry, _Devices):
            blocks.append((entry, []))
        elif blocks:
            (devices, frames), (index, time, values) = blocks[-1], entry
            frames.append(FrameScores(index, dict(zip(devices.names, values, strict=True)), time))
    return [EarlierScores(devices.first, tuple(frames), devices.backends) for devices, frames in blocks if frames]
