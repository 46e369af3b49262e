"""The journal of one run: every frame that is scored, so that a run cut off goes on where it was.

The first line says what run it is, each further one has a frame: its number, its time and its scores, as JSON with the
shortest text that reads back to the same double. Each begins with the CRC-32 of all lines up to it: a line that is torn,
altered, doubled or out of place is found by that, and it and what follows it does not count.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from . import __version__
from .backends.base import BackendInfo
from .errors import (
    DeviceError,
    InputError,
    InterruptedRunError,
    OptionError,
    OutputError,
    ReadError,
    VkssimError,
    WorkerLostError,
)
from .frames.open import RawDescription
from .frames.pictures import PictureOptions
from .input_state import input_states
from .journal_file import JournalFile
from .scorer import FrameScores
from .selection import Selection

Identity = Mapping[str, Any]
"""What a run's scores depend on, as JSON has it, by the names that a user knows."""

PARTS_MAGIC = b"vkssim parts 1 "
"""What the journal of a run on several devices begins with; see `distributed.kept`."""

FRAMES_MAGIC = b"vkssim frames 1 "
"""What the journal of a run on one device begins with."""
CUT_OFF = (InterruptedRunError, DeviceError, OutputError, ReadError, WorkerLostError)
"""The errors after which a run may go on."""


def run_identity(
    reference: str,
    distorted: str,
    *,
    features: Sequence[str],
    planes: str,
    raw: RawDescription,
    selection: Selection,
    sync: str,
    pictures: PictureOptions,
) -> Identity:
    """What the scores of two files depend on, but for the device; files by their paths, sizes and times of change."""
    return {
        "version of vkssim": __version__,
        "reference": _digest(reference),
        "distorted clip": _digest(distorted),
        "description of raw files": asdict(raw),
        "features": list(features),
        "planes": planes,
        "selection of frames": asdict(selection),
        "sync": sync,
        "crop or scaling": asdict(pictures),
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
        self._found: Identity | None = None
        self._frames: list[tuple[int, float | None, list[float]]] = []
        self._sum = self._size = 0
        self._kept = 0
        self._damaged = False
        self.begun = False
        self._file = JournalFile(path)
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> None:
        for number, line in enumerate(self._file.lines()):
            if number == 0 and line.startswith(PARTS_MAGIC):
                if self._resume:
                    raise OptionError(f"{self._file.path} is of a run on several devices; --resume it on those")
                self._tell(f"{self._file.path} was of a run on several devices; --resume on those would have kept its parts")
                break
            if number == 0 and not (line.startswith(FRAMES_MAGIC[: len(line)]) or not line.strip(b"\0")):
                raise InputError(f"{self._file.path} is no journal of vkssim; move it away, or give another --output")
            try:
                entry, total = _parsed(line if number else line.removeprefix(FRAMES_MAGIC), self._sum)
                if number == 0:
                    self._found = dict(entry)
                else:
                    index, time, values = entry
                    self._frames.append((int(index), time, [float(value) for value in values]))
            except (ValueError, RecursionError, TypeError):
                self._damaged = True
                break
            self._sum, self._size = total, self._size + len(line)
        self._kept = len(self._frames)

    def begin(self, names: Sequence[str], backend: BackendInfo) -> list[FrameScores]:
        """The frames that are there already, now that it is known what scores there are and what computes them.

        Raises OptionError where they are of another run.
        """
        self.begun = True
        identity = self._identity | {"scores": list(names), "backend": backend.backend}
        identity |= {"device": backend.device, "driver": backend.driver}
        identity = json.loads(json.dumps(identity))
        path = self._file.path
        if self._resume and self._damaged:
            self._tell(f"{path} is damaged behind {self._kept} frames; what follows is scored again")
        if self._resume and self._found is not None:
            differing = [key for key in identity if identity[key] != self._found.get(key)]
            if differing:
                raise OptionError(
                    f"{path} is of another run: {', '.join(differing)} differ. Without --resume it is begun anew, its"
                    f" {self._kept} frames are lost then"
                )
            self._file.cut(self._size)
            if self._kept:
                self._tell(f"goes on behind {self._kept} frames of {path}")
            return [FrameScores(index, dict(zip(names, values, strict=True)), time) for index, time, values in self._frames]
        if self._kept:
            self._tell(f"{path} had {self._kept} frames of a run that was cut off; --resume would have kept them")
        self._file.cut(0)
        self._sum = self._kept = 0
        self._file.add(FRAMES_MAGIC + self._line(identity))
        self._file.sync()
        return []

    def add(self, frames: Sequence[FrameScores]) -> None:
        """Write frames at once: killing the process loses none of them. Raises OutputError."""
        before = self._sum
        lines = [self._line([frame.index, frame.time, list(frame.metrics.values())]) for frame in frames]
        try:
            self._file.add(b"".join(lines))
        except BaseException:
            self._sum = before
            raise
        self._kept += len(lines)

    def _line(self, entry: Any) -> bytes:
        text = json.dumps(entry, separators=(",", ":")).encode()
        self._sum = zlib.crc32(text, self._sum)
        return b"%08x %s\n" % (self._sum, text)

    def leave(self, error: VkssimError) -> None:
        """Say so in an error that cuts the run off, where there is something to go on from. Raises OutputError."""
        if self.begun and self._kept and isinstance(error, CUT_OFF):
            error.args = (f"{error}; --resume goes on from there",)

    def settle(self, failures: Sequence[VkssimError]) -> None:
        """Remove it where the run is done and its scores are where they belong, whatever they are."""
        for failure in failures:
            self.leave(failure)
        if not any(isinstance(failure, CUT_OFF) for failure in failures):
            self._kept = 0

    def close(self) -> None:
        """Close the file; without frames it goes."""
        with suppress(OutputError):  # what it is for is done, or lost to another error
            if self._kept:
                self._file.sync()
            else:
                self._file.remove()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _parsed(line: bytes, before: int) -> tuple[Any, int]:
    """A line's entry and the sum up to it. Raises ValueError where it is not whole, or does not follow those before it."""
    claimed, text = line[:8], line[9:-1]
    total = zlib.crc32(text, before)
    if claimed + line[8:9] + line[-1:] != b"%08x \n" % total:
        raise ValueError("torn, altered or out of place")
    return json.loads(text), total
