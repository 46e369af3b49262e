"""What workers are asked for: plain values, small enough to travel. Frames never do."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..scoring.options import Clips, ScoreOptions
from ..scoring.ranges import EarlierScores, FrameRange, RangeScores
from ..scoring.record import ClipPackets
from .rates import SECONDS


@dataclass(frozen=True)
class WorkerSpec:
    """What a worker computes with: a `device` by its UUID for the backend ``"vulkan"``.

    `kind` is ``"gpu"``, ``"software"`` or, for the backend of that name, ``"cpu"``; `label` is how people know it. `profile`
    has the time of each stage taken.
    """

    backend: str
    device: str | None
    kind: str
    label: str
    profile: bool = False


@dataclass(frozen=True)
class Task:
    """Score a range of two clips; where `part` is None, score all of it, or say how to divide it.

    It is divided into ranges that take some `seconds` each, `least` of them where it has the frames. Scores are also kept as
    `name` in `folder`, a `RangeFolder`, where one is given and can be written. `earlier` are the first frames of the range that
    need not be scored again.
    """

    clips: Clips
    options: ScoreOptions
    part: FrameRange | None = None
    seconds: float = SECONDS
    least: int = 1
    folder: str | None = None
    name: str = ""
    earlier: EarlierScores = field(default_factory=EarlierScores)


@dataclass
class Done:
    """What came of a task: `scores`, or the `parts` that its clips are to be divided into, and their `packets`.

    `frames` were scored and `bytes` of the clips read in so many `seconds` on `device`. `kept` says that the scores are in the
    folder of the task.
    """

    scores: RangeScores | None
    parts: list[FrameRange]
    frames: int
    bytes: int
    seconds: float
    device: str
    packets: ClipPackets | None = None
    kept: bool = False
