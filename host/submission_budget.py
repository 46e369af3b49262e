"""Decide how much work one submission may have on a device, from the time that earlier submissions took there.

Windows ends a submission after 2 s and resets the GPU, and newer kernels of Linux do so on AMD's GPUs.
docs/adr/0008-divided-submissions.md has the reasons for the numbers below.
"""

from __future__ import annotations

from .devices import DeviceKind

TARGET_SECONDS = 0.2
"""The time that a submission should take at most: a tenth of the shortest limit that is known."""

_FIRST_WORK = {DeviceKind.DISCRETE: 1 << 31}
_FIRST_WORK_OF_OTHERS = 1 << 26
_SMALLEST_WORK = 1 << 16
_FAST = 8


class SubmissionBudget:
    """The work that one submission on a device may have, in bytes; see `division`.

    Parameters
    ----------
    kind
        The kind of the device. It decides about the first submissions, before anything is measured.
    batch_work
        The work of the largest batch.
    can_measure
        Whether the device has timestamps. Without them the work of a submission stays at that of the first ones.

    Attributes
    ----------
    most
        The work that a submission may have; None if there is no limit.
    measuring
        Whether the time of the next batch should be measured and passed to `note`.

    """

    def __init__(self, kind: DeviceKind, batch_work: int, *, can_measure: bool = True) -> None:
        self._batch_work = batch_work
        has_limit = kind is not DeviceKind.CPU  # nothing ends the work of a software driver
        self.most = _FIRST_WORK.get(kind, _FIRST_WORK_OF_OTHERS) if has_limit else None
        self.measuring = has_limit and can_measure

    def note(self, work: int, seconds: float) -> None:
        """Learn that the device took `seconds` for a batch with `work` bytes of work.

        If it is so fast that the largest batch takes an eighth of the target, nothing is limited or measured from then on.
        """
        most = work * TARGET_SECONDS / max(seconds, 1e-9)
        if most >= _FAST * self._batch_work:
            self.most, self.measuring = None, False
        else:  # powers of two, because each new value means that commands are recorded again
            self.most = 1 << max(_SMALLEST_WORK, int(most)).bit_length() - 1
