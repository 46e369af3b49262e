"""The pairs of a manifest on several workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..distributed.coordinator import Coordinator, Job
from ..distributed.scheduler import Scheduler
from ..distributed.task import Done
from ..distributed.worker_options import WorkerOptions
from ..errors import OutputError
from ..scoring.options import ScoreOptions
from ..scoring.range_folder import RangeFolder
from ..scoring.ranges import Part, PartScores
from .batch import Outcomes, Scored
from .manifest import Pair


def in_parts(
    where: WorkerOptions,
    folder: str,
    seconds: float,
    tell: Callable[[str], None],
    on_frames: Callable[[int, int], None],
) -> Scored:
    """Return what scores pairs in parts, for `score_pairs`.

    Scores are kept in `folder`, by path or by URL, until their pair is done; the folder stays. `tell` hears of workers that
    fail, `on_frames` how many frames were scored so far, and how many workers there are.
    """

    def scored(todo: Sequence[tuple[str, Pair]], options: ScoreOptions) -> Outcomes:
        if not todo:
            return
        pairs = dict(todo)
        frames = 0

        def count(_job: Job, _part: Part, scores: PartScores, _done: Done | None) -> None:
            nonlocal frames
            frames += len(scores.report.frames)
            on_frames(frames, scheduler.workers)

        with where.open() as engine:
            scheduler = Scheduler(engine, tell)
            coordinator = Coordinator(scheduler, options, ranges=RangeFolder(folder), seconds=seconds, on_part=count)
            jobs = [Job(key, pair.clips) for key, pair in pairs.items()]
            for job, outcome in coordinator.score(jobs):
                if isinstance(outcome, OutputError):  # of the folder, which is no pair's fault
                    raise outcome
                yield (job.key, pairs[job.key]), outcome

    return scored
