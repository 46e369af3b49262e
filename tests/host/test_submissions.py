"""Plans that contradict themselves, and the division of a batch's work: nothing is lost or done twice, and the order stays."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from vkssim.host.devices import DeviceKind
from vkssim.host.plan import BufferSpec, Dispatch, Kernel, Plan, Role
from vkssim.host.submissions import TARGET_S, DispatchPart, SubmissionBudget, divide, work_of

from .made_up import dispatch, plan


@pytest.mark.parametrize(
    ("inconsistent", "message"),
    [
        (plan(buffers=("in", "in", "out")), r"named twice: \['in'\]"),
        (plan((dispatch(source="absent"),)), r"unknown buffers: \['absent'\]"),
        (plan((dispatch(target="absent"),)), r"unknown buffers: \['absent'\]"),
        (
            plan((Dispatch("stage", Kernel("nothing", sources=2), ("in",), ("out",), b"", (1, 1)),)),
            r"stage: \(1, 1\) buffers for \(2, 1\) bindings",
        ),
        (
            Plan((*plan().buffers, BufferSpec("lead", Role.LEAD, 16, of="between")), plan().steps),
            "lead is a lead of 'between', which is no input",
        ),
        (plan((dispatch("in", "between"), dispatch("between", "out"))), r"both reads and writes \['between'\]"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(inconsistent: Plan, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inconsistent.validate()


def test_a_kernel_may_read_what_it_changes_itself() -> None:
    """Another one of the same step may not."""
    in_place = replace(dispatch("between", "between"), kernel=Kernel("nothing", texel_input=True))
    plan((in_place,)).validate()
    with pytest.raises(ValueError, match=r"both reads and writes \['between'\]"):
        plan((in_place, dispatch("between", "out"))).validate()


def _plan() -> Plan:
    """A frame reads 16 bytes in each of three dispatches. They have 6, 10 and 1 workgroups."""
    wide = replace(dispatch("in", "between"), groups=(2, 3))
    layered = replace(dispatch("in", "out"), groups=(1, 5), layers=2)
    return plan((wide, layered), (dispatch("between", "out"),))


def _workgroups(part: DispatchPart) -> list[tuple[int, int, int, int]]:
    first = 0, part.first_row, part.first_layer
    ranges = [range(begin, begin + count) for begin, count in zip(first, part.groups, strict=True)]
    return [(part.number, x, y, z) for z in ranges[2] for y in ranges[1] for x in ranges[0]]


@pytest.mark.parametrize("frames", [1, 2, 7])
@pytest.mark.parametrize("most", [1, 5, 16, 33, 48, 100, 10_000])
def test_each_workgroup_runs_once_and_in_order(frames: int, most: int) -> None:
    made = divide(_plan(), frames, most)
    (whole,) = divide(_plan(), frames)
    parts = list(chain.from_iterable(made))
    assert all(made), "no submission is empty"
    assert [group for part in parts for group in _workgroups(part)] == [group for part in whole for group in _workgroups(part)]
    for number in range(3):
        of_dispatch = [part for part in parts if part.number == number]
        assert [part.ends_dispatch for part in of_dispatch] == [False] * (len(of_dispatch) - 1) + [True]
    begun = [part.number for part in parts if part.begins_step]
    assert begun == [0, 2], "each step has one barrier, before its first part"


@pytest.mark.parametrize(("most", "expected"), [(1000, 1), (48, 3), (24, 8), (16, 9)])
def test_a_submission_has_at_most_so_much_work(most: int, expected: int) -> None:
    """Three frames have 48 bytes in each dispatch. 24 bytes allow one layer of 16 bytes, and three layers of 8 bytes."""
    assert work_of(_plan(), 3) == 144
    assert len(divide(_plan(), 3, most)) == expected
    by_rows = (DispatchPart(0, 0, 0, (2, 1, 1), begins_step=True, ends_dispatch=False),)
    assert divide(_plan(), 1, 6)[0] == by_rows, "a frame is too much"


# -- the size of submissions ------------------------------------------------------------------------------------------

BATCH = 150_000_000  # eight frames of 1080p, 8 bit, all scales


@pytest.mark.parametrize("kind", [DeviceKind.INTEGRATED, DeviceKind.VIRTUAL, DeviceKind.OTHER])
def test_devices_that_may_be_slow_begin_with_little(kind: DeviceKind) -> None:
    """An integrated GPU with an eightieth of an H100's bandwidth takes less than the target for it."""
    budget = SubmissionBudget(kind, BATCH)
    discrete = SubmissionBudget(DeviceKind.DISCRETE, BATCH)
    assert budget.max_work is not None
    assert discrete.max_work is not None
    assert budget.max_work < BATCH < discrete.max_work
    assert budget.max_work / 1e9 < TARGET_S
    unmeasured = SubmissionBudget(kind, BATCH, can_measure=False)
    assert (unmeasured.max_work, unmeasured.measuring) == (budget.max_work, False)
    budget.note(BATCH, 1e9)
    assert budget.max_work >= 1 << 16, "work never vanishes"


@pytest.mark.parametrize("kind", [DeviceKind.DISCRETE, DeviceKind.INTEGRATED, DeviceKind.CPU])
def test_a_fast_device_is_measured_once(kind: DeviceKind) -> None:
    """A software driver has no limit, and is not measured at all."""
    budget = SubmissionBudget(kind, BATCH)
    if kind is not DeviceKind.CPU:
        budget.note(BATCH // 8, TARGET_S / 100)
    assert (budget.max_work, budget.measuring) == (None, False)


def test_a_slow_device_gets_less_and_is_measured_again() -> None:
    budget = SubmissionBudget(DeviceKind.DISCRETE, BATCH)
    for seconds in (4.0, 1.0, 8.0):
        budget.note(BATCH, seconds)
        assert budget.max_work is not None
        assert TARGET_S / 2 < budget.max_work / BATCH * seconds <= TARGET_S
        assert budget.measuring


def test_nearly_equal_measurements_give_the_same_work() -> None:
    """Commands are recorded for each different value."""
    values = set()
    for seconds in (1.00, 1.05, 0.98, 1.02):
        budget = SubmissionBudget(DeviceKind.INTEGRATED, BATCH)
        budget.note(BATCH, seconds)
        values.add(budget.max_work)
    assert len(values) == 1
