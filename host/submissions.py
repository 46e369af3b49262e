"""Divide the work of a batch into submissions, because drivers and operating systems end those that take too long.

The unit of work is a byte that a dispatch reads: the sum of `frame_bytes` over its source buffers, for each frame. Dispatches
are divided between workgroups, in y and z. Each workgroup computes the same as in one whole dispatch, so results have the same
bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from .devices import DeviceKind
from .plan import Dispatch, Plan


@dataclass(frozen=True)
class DispatchPart:
    """Some of the workgroups of a dispatch."""

    number: int
    """The place of the dispatch in `plan.dispatches`."""
    first_row: int
    """The first workgroup in y."""
    first_layer: int
    """The first workgroup in z."""
    groups: tuple[int, int, int]
    """The numbers of workgroups in x, y and z."""
    begins_step: bool = False
    """Whether it comes after everything that earlier steps have written."""
    ends_dispatch: bool = True
    """Whether it is the last part of its dispatch."""


Submission = tuple[DispatchPart, ...]


def work_of(plan: Plan, frames: int = 1) -> int:
    """Return the bytes that all dispatches of a plan read for a number of frames."""
    return frames * sum(_frame_work(plan, dispatch) for dispatch in plan.dispatches)


def divide(plan: Plan, frames: int, max_work: int | None = None) -> tuple[Submission, ...]:
    """Return the submissions that run a plan for a number of frames, each with at most `max_work` bytes of work.

    A submission exceeds `max_work` only if a single row of workgroups of one frame does. None means one submission.
    """
    max_work = work_of(plan, frames) if max_work is None else max_work
    steps_begin = set(accumulate(map(len, plan.steps), initial=0))

    submissions: list[Submission] = []
    current: list[DispatchPart] = []
    work = 0
    for number, dispatch in enumerate(plan.dispatches):
        whole = DispatchPart(number, 0, 0, (*dispatch.groups, dispatch.layers * frames), number in steps_begin)
        for part, part_work in _parts(whole, frames * _frame_work(plan, dispatch), max_work):
            if current and work + part_work > max_work:
                submissions.append(tuple(current))
                current, work = [], 0
            current.append(part)
            work += part_work
    return (*submissions, tuple(current))


def _frame_work(plan: Plan, dispatch: Dispatch) -> int:
    return sum(plan.buffer(name).frame_bytes for name in dispatch.sources)


def _parts(whole: DispatchPart, work: int, max_work: int) -> Iterator[tuple[DispatchPart, int]]:
    """Yield the parts of a dispatch and the work of each: layers together if `max_work` allows it, else rows of one layer."""
    columns, rows, layers = whole.groups
    layers_each = max(1, min(layers, layers * max_work // work if work else layers))
    rows_each = max(1, min(rows, rows * layers * max_work // work if work else rows)) if layers_each == 1 else rows
    for layer in range(0, layers, layers_each):
        for row in range(0, rows, rows_each):
            groups = (columns, min(rows_each, rows - row), min(layers_each, layers - layer))
            begins = whole.begins_step and (row, layer) == (0, 0)
            ends = row + groups[1] == rows and layer + groups[2] == layers
            yield DispatchPart(whole.number, row, layer, groups, begins, ends), work * groups[1] * groups[2] // (rows * layers)


# -- the size of submissions ------------------------------------------------------------------------------------------

TARGET_S = 0.2
"""The time that a submission should take at most: a tenth of the shortest limit that is known."""

_FIRST_WORK = {DeviceKind.DISCRETE: 1 << 31}
_FIRST_WORK_OF_OTHER_KINDS = 1 << 26
_MIN_WORK = 1 << 16
_FAST = 8


class SubmissionBudget:
    """The work that one submission on a device may have, from the time that earlier submissions took there.

    `kind` decides about the first submissions, and about all of them on a device that cannot measure. `batch_work` is the work
    of the largest batch. docs/adr/0002-plan-of-a-frame.md has the reasons for the numbers.
    """

    def __init__(self, kind: DeviceKind, batch_work: int, *, can_measure: bool = True) -> None:
        self._batch_work = batch_work
        has_limit = kind is not DeviceKind.CPU  # nothing ends the work of a software driver
        self.max_work = _FIRST_WORK.get(kind, _FIRST_WORK_OF_OTHER_KINDS) if has_limit else None
        """The bytes of work that a submission may have; None if there is no limit."""
        self.measuring = has_limit and can_measure
        """Whether the time of the next batch should be measured and passed to `note`."""

    def note(self, work: int, seconds: float) -> None:
        """Learn that the device took `seconds` for a batch with `work` bytes of work.

        If it is so fast that the largest batch takes an eighth of the target, nothing is limited or measured from then on.
        """
        max_work = work * TARGET_S / max(seconds, 1e-9)
        if max_work >= _FAST * self._batch_work:
            self.max_work, self.measuring = None, False
        else:  # powers of two, because each new value means that commands are recorded again
            self.max_work = 1 << max(_MIN_WORK, int(max_work)).bit_length() - 1
