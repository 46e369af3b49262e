"""Describe the work of workers and its results, as plain values that are small enough to be sent. Frames are never sent."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..scoring.options import Clips, ScoreOptions
from ..scoring.ranges import EarlierScores, FrameRange, RangeScores
from ..scoring.record import ClipPackets
from .rates import SECONDS


@dataclass(frozen=True)
class WorkerSpec:
    """Describe the device of a worker. `device` is the UUID of a Vulkan device; None for the backend ``"cpu"``.

    `kind` is ``"gpu"``, ``"software"`` or, for the backend of that name, ``"cpu"``. `label` is the name in messages. With
    `profile`, the time of each stage is measured.
    """

    backend: str
    device: str | None
    kind: str
    label: str
    profile: bool = False


@dataclass(frozen=True)
class Task:
    """Ask for the scores of a range of two clips. If `frame_range` is None, ask for their division, or for all scores.

    Clips are divided into ranges that take about `seconds` seconds each, and into `least` ranges or more if they are long
    enough. Clips that cannot be divided are scored as one range. The worker also writes the scores as `name` into `folder`, a
    `RangeFolder`, if there is one and it can be written. `earlier` are the first frames of the range that are already scored.
    """

    clips: Clips
    options: ScoreOptions
    frame_range: FrameRange | None = None
    seconds: float = SECONDS
    least: int = 1
    folder: str | None = None
    name: str = ""
    earlier: EarlierScores = field(default_factory=EarlierScores)


@dataclass
class Done:
    """Hold the result of a task: `scores`, or the `ranges` into which its clips are divided and their `packets`.

    `frames` is the number of scored frames, `bytes` the number of bytes that were read from the clips, and `seconds` the time
    that the task took on `device`. `stored` says that the scores are in the folder of the task.
    """

    scores: RangeScores | None
    ranges: list[FrameRange]
    frames: int
    bytes: int
    seconds: float
    device: str
    packets: ClipPackets | None = None
    stored: bool = False
