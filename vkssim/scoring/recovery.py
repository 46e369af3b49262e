"""Goes on after the device failed, where what was on its way can be read again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..backends.base import Backend
from ..errors import DeviceLostError, DeviceMemoryError, VkssimError
from ..features.plane_metrics import PlaneMetrics
from ..report.backend_info import merged_info
from ..report.frame_scores import FrameScores
from ..report.results import ScoreReport
from ..utils.wording import counted


class BackendReopener:
    """Opens the backend of a run as often as it takes. `batch` is the size of its batches, None until it is known."""

    def __init__(self, open_engine: Callable[..., Backend], batch: int | None) -> None:
        self._open = open_engine
        self.batch = batch

    def __call__(self, planes: Sequence[PlaneMetrics]) -> Backend:
        """Open it with batches of `batch` frames."""
        engine = self._open(planes, batch=self.batch)
        self.batch = engine.batch_size
        return engine

    def halve(self) -> bool:
        """Make the batches smaller from the next time on; False where they cannot be."""
        if self.batch is None or self.batch == 1:
            return False
        self.batch //= 2
        return True


def score_on(score: Callable[[Sequence[FrameScores]], ScoreReport], engines: BackendReopener, *, again: bool) -> ScoreReport:
    """Return the report of a run that `score` makes on `engines`, given the frames that an earlier try scored.

    Where the device is lost it is opened again, once, and where it runs out of memory on the way batches are halved: the run
    goes on behind what was scored, and the report has a warning. Not unless the sources can be read `again`. An error has all
    that was scored in its `report`.
    """
    earlier: ScoreReport | None = None
    done: Sequence[FrameScores] = ()
    lost = False
    while True:
        try:
            report = score(done)
        except VkssimError as error:
            if error.report is None:  # the device did not open
                error.report = earlier
            else:
                earlier = error.report = _joined(earlier, error.report)
            if again and isinstance(error, DeviceLostError) and not lost:
                lost = True
                said = "was lost after {}; it was opened again, and the run went on behind them"
            elif again and earlier is not None and isinstance(error, DeviceMemoryError) and engines.halve():
                said = f"ran out of memory after {{}}; batches of {engines.batch} were used from there on"
            else:
                raise
            if earlier is not None:
                done = earlier.frames or done
                earlier.warnings.append(f"{earlier.backend.device} {said.format(counted(len(earlier.frames), 'frame'))}")
        else:
            return _joined(earlier, report)


def _joined(earlier: ScoreReport | None, report: ScoreReport) -> ScoreReport:
    """Return the later report with the warnings and the times of the earlier one as well."""
    if earlier is not None:
        report.warnings = earlier.warnings + [warning for warning in report.warnings if warning not in earlier.warnings]
        report.seconds += earlier.seconds
        report.resumed = earlier.resumed
        report.backend = merged_info([report.backend, earlier.backend])
        stages = {**earlier.stage_seconds, **report.stage_seconds}
        sources = earlier.stage_seconds, report.stage_seconds
        report.stage_seconds = {stage: sum(seconds.get(stage, 0.0) for seconds in sources) for stage in stages}
    return report
