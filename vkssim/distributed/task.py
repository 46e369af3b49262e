"""Describe the work of workers and its results, as plain values that are small enough to be sent. Frames are never sent."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..scoring.options import Clips, ScoreOptions
from ..scoring.ranges import EarlierScores, FrameRange, RangeScores
from ..scoring.record import ClipPackets
from .rates import SECONDS


@dataclass(frozen=True)
class WorkerSpec:
    """Describe what a worker computes with: the `device` has a UUID for the backend ``"vulkan"``.

    `kind` is ``"gpu"``, ``"software"`` or, for the backend of that name, ``"cpu"``. `label` is the name for messages. With
    `profile` the time of each stage is taken.
    """

    backend: str
    device: str | None
    kind: str
    label: str
    profile: bool = False


@dataclass(frozen=True)
class Task:
    """Score a range of two clips; where `frame_range` is None, score all of it, or say how to divide it.

    It is divided into ranges that take some `seconds` each, `least` of them where it has the frames. Scores are also kept as
    `name` in `folder`, a `RangeFolder`, where one is given and can be written. `earlier` are the first frames of the range that
    need not be scored again.
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

    `frames` is the number of frames that were scored, `bytes` how many bytes of the clips were read, and `seconds` the time
    that this took on `device`. `kept` says that the scores are in the folder of the task.
    """

    scores: RangeScores | None
    ranges: list[FrameRange]
    frames: int
    bytes: int
    seconds: float
    device: str
    packets: ClipPackets | None = None
    kept: bool = False
