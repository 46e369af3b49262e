"""Continue a run after its device failed, if its inputs can be read again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..backends.failure_policy import FailurePolicy
from ..errors import DeviceLostError, VkssimError
from ..report.backend_info import merged_info
from ..report.frame_scores import FrameScores
from ..report.results import ScoreReport
from ..utils.wording import counted
from .stopped import no_memory_left, stopped_early


def score_on(score: Callable[[Sequence[FrameScores]], ScoreReport], policy: FailurePolicy, *, again: bool) -> ScoreReport:
    """Return the report of the run that `score` makes. `score` gets the frames that an earlier try has scored.

    If the device fails and `policy` allows another try, the run continues behind the frames that were scored, and the report
    has a warning. This needs sources that can be read `again`. An error has all scored frames in its `report`.
    """
    earlier: ScoreReport | None = None
    done: Sequence[FrameScores] = ()
    while True:
        try:
            report = score(done)
        except VkssimError as error:
            if error.report is None:  # the device did not open
                error.report = earlier
            else:
                earlier = error.report = _joined(earlier, error.report)
            if not (again and policy.allows_another_try(error)):
                raise
            if earlier is not None:
                done = earlier.frames or done
                frames = counted(len(earlier.frames), "frame")
                if isinstance(error, DeviceLostError):
                    warning = f"was lost after {frames}; it was opened again, and the run continued behind them"
                else:
                    warning = f"ran out of memory after {frames}; batches of {policy.batch} were used from there on"
                earlier.warnings.append(f"{earlier.backend.device} {warning}")
        except MemoryError:  # `score_sources` handles it, but not while the files and the device are opened again
            if earlier is None:
                raise
            raise no_memory_left(earlier) from None
        except KeyboardInterrupt as stop:
            if earlier is None:
                raise
            raise stopped_early(stop, earlier) from None
        else:
            return _joined(earlier, report)


def _joined(earlier: ScoreReport | None, report: ScoreReport) -> ScoreReport:
    """Return the later report with the warnings and the times of the earlier one added."""
    if earlier is not None:
        report.warnings = earlier.warnings + [warning for warning in report.warnings if warning not in earlier.warnings]
        report.seconds += earlier.seconds
        report.resumed = earlier.resumed
        report.backend = merged_info([report.backend, earlier.backend])
        stages = {**earlier.stage_seconds, **report.stage_seconds}
        sources = earlier.stage_seconds, report.stage_seconds
        report.stage_seconds = {stage: sum(seconds.get(stage, 0.0) for seconds in sources) for stage in stages}
    return report
