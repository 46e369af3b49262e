"""Score the pairs of a manifest on several workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..distributed.coordinator import Coordinator, Job
from ..distributed.scheduler import Scheduler
from ..distributed.task import Done
from ..distributed.worker_options import WorkerOptions
from ..errors import OutputError
from ..scoring.options import ScoreOptions
from ..scoring.range_folder import RangeFolder
from ..scoring.ranges import FrameRange, RangeScores
from .batch import Outcomes, Scored
from .manifest import Pair


def in_ranges(
    where: WorkerOptions,
    folder: str,
    seconds: float,
    tell: Callable[[str], None],
    on_frames: Callable[[int, int], None],
) -> Scored:
    """Return a function for `score_pairs` that scores pairs in ranges.

    Scores are stored in `folder`, a path or a URL, until their pair is finished; the folder itself stays. `tell` gets notes
    about workers that fail. `on_frames` gets the number of frames scored so far, and the number of workers.
    """

    def scored(todo: Sequence[tuple[str, Pair]], options: ScoreOptions) -> Outcomes:
        if not todo:
            return
        pairs = dict(todo)
        frames = 0

        def count(_job: Job, _range: FrameRange, scores: RangeScores, _done: Done | None) -> None:
            nonlocal frames
            frames += len(scores.report.frames)
            on_frames(frames, scheduler.workers)

        with where.open() as pool:
            scheduler = Scheduler(pool, tell)
            coordinator = Coordinator(scheduler, options, folder=RangeFolder(folder), seconds=seconds, on_range=count)
            jobs = [Job(key, pair.clips) for key, pair in pairs.items()]
            for job, outcome in coordinator.score(jobs):
                if isinstance(outcome, OutputError):  # the folder failed, not the pair
                    raise outcome
                yield (job.key, pairs[job.key]), outcome

    return scored
