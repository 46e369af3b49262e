"""The journal of one run: every frame that is scored, so that a run cut off goes on where it was.

The first line says what run it is, each further one has a frame: its number, its time and its scores, as JSON with the
shortest text that reads back to the same double. They are checked lines: a line that is torn, altered, doubled or out of place
is found, and it and what follows it does not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from ..errors import DeviceError, InterruptedRunError, OptionError, OutputError, ReadError, VkssimError, WorkerLostError
from ..frames.fingerprint import input_states
from ..report.backend_info import BackendInfo
from ..report.frame_scores import FrameScores
from ..storage.checked_journal import CheckedJournal
from ..storage.checked_lines import FRAMES, PARTS
from ..utils.version import __version__
from ..utils.wording import counted
from .options import Clips, ScoreOptions

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
    }


def _digest(path: str) -> str:
    return hashlib.sha256(json.dumps(input_states(path)).encode()).hexdigest()


class FrameJournal:
    """Opens the journal of a run, or begins one; use with `with`.

    `resume` goes on from what is there; without it that is begun anew. `tell` is called with what the user should know of that.
    `begun` is True once `begin` was called: a run that opens its device a second time goes on with the frames that it has. The
    file is left behind when this is closed, unless `settle` found that nobody needs it.

    Raises InputError where the file is no such journal, OutputError where it cannot be written or another process has it.
    """

    def __init__(self, path: Path, identity: Identity, *, resume: bool, tell: Callable[[str], None]) -> None:
        self._identity = dict(identity)
        self._resume = resume
        self._tell = tell
        self.begun = False
        self._journal = CheckedJournal(path, FRAMES, _frame, also=[PARTS])
        self._kept = len(self._journal.entries)
        try:
            if self._journal.there == PARTS:
                self._leave_parts()
        except BaseException:
            self._journal.close()
            raise

    def _leave_parts(self) -> None:
        """Say what becomes of the journal of a run on several devices. Raises OptionError where it was to be gone on with."""
        if self._resume:
            raise OptionError(f"{self._journal.path} is of a run on several devices; `resume` it on those")
        self._tell(f"{self._journal.path} was of a run on several devices; `resume` on those would have kept its parts")

    def begin(self, names: Sequence[str], backend: BackendInfo) -> list[FrameScores]:
        """Return the frames that are there already, now that it is known what scores there are and what computes them.

        Raises OptionError where they are of another run.
        """
        identity = self._identity | {"scores": list(names), "backend": backend.backend}
        identity |= {"device": backend.device, "driver": backend.driver}
        identity = json.loads(json.dumps(identity))
        path, found = self._journal.path, self._journal.head
        if self._journal.older and self._journal.there == FRAMES:
            self._tell(f"{path} is of an older version: it is not believed, and the run is begun anew")
        if self._resume and self._journal.damaged:
            self._tell(f"{path} is damaged behind {counted(self._kept, 'frame')}; what follows is scored again")
        if self._resume and found is not None:
            differing = [key for key in identity if identity[key] != found.get(key)]
            if differing:
                raise OptionError(
                    f"{path} is of another run: {', '.join(differing)} differ. Without `resume` it is begun anew, its"
                    f" {self._kept} frames are lost then"
                )
            self.begun = True
            self._journal.go_on()
            if self._kept:
                self._tell(f"goes on behind {counted(self._kept, 'frame')} of {path}")
            frames = self._journal.entries
            return [FrameScores(index, dict(zip(names, values, strict=True)), time) for index, time, values in frames]
        if self._kept:
            self._tell(f"{path} had {counted(self._kept, 'frame')} of a run that was cut off; `resume` would have kept them")
        self.begun, self._kept = True, 0
        self._journal.begin(identity)
        return []

    def add(self, frames: Sequence[FrameScores]) -> None:
        """Write frames at once: killing the process loses none of them. Raises OutputError."""
        self._journal.add([[frame.index, frame.time, list(frame.metrics.values())] for frame in frames])
        self._kept += len(frames)

    def leave(self, error: VkssimError) -> None:
        """Say so in an error that cuts the run off, where there is something to go on from. Raises OutputError."""
        if self.begun and self._kept and isinstance(error, CUT_OFF):
            error.args = (f"{error}; `resume` goes on from there",)

    def settle(self, failures: Sequence[VkssimError]) -> None:
        """Remove it where the run is done and its scores are where they belong, whatever they are.

        A run that never began leaves what it found, which may be another run's.
        """
        for failure in failures:
            self.leave(failure)
        if self.begun and not any(isinstance(failure, CUT_OFF) for failure in failures):
            self._kept = 0

    def close(self) -> None:
        """Close the file; without frames it goes."""
        with suppress(OutputError):  # what it is for is done, or lost to another error
            if self._kept:
                self._journal.sync()
            else:
                self._journal.remove()
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _frame(entry: Any) -> tuple[int, float | None, list[float]]:
    """Return the number, the time and the scores of a frame."""
    index, time, values = entry
    return int(index), time, [float(value) for value in values]
