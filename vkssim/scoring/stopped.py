"""Make the errors for runs that the user stopped, or that ran out of memory, with the scores computed so far."""

from __future__ import annotations

import signal

from ..errors import HostMemoryError, InterruptedRunError
from ..report.results import ScoreReport
from ..utils.wording import counted


def stopped_error(stop: KeyboardInterrupt, problem: str, report: ScoreReport | None) -> InterruptedRunError:
    """Return the error for a run that `stop` ended. `report` has the scores computed so far; None stands for no scores."""
    error = InterruptedRunError(problem)
    error.signal = getattr(stop, "signal", signal.SIGINT)
    error.report = report
    return error


def stopped_early(stop: KeyboardInterrupt, report: ScoreReport | None) -> InterruptedRunError:
    """Return the error for a run that was stopped before its last frame, and add a warning about this to the report."""
    frames = counted(0 if report is None else len(report.frames), "frame")
    if report is not None:
        report.warnings.append(f"the run was stopped after {frames}; those after them are missing")
    return stopped_error(stop, f"stopped after {frames}; what was scored is kept", report)


def no_memory_left(report: ScoreReport | None) -> HostMemoryError:
    """Return the error for a run that ran out of memory, with the scores computed so far."""
    error = HostMemoryError()
    error.report = report
    return error
