"""The division of a batch's work into submissions: nothing is lost, nothing is done twice, and the order stays."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from vkssim.host.division import DispatchPart, divide, work_of
from vkssim.host.plan import Plan

from .made_up import dispatch, plan


def _plan() -> Plan:
    """A frame reads 16 bytes in each of three dispatches. They have 6, 10 and 1 workgroups."""
    wide = replace(dispatch("in", "between"), groups=(2, 3))
    layered = replace(dispatch("in", "out"), groups=(1, 5), layers=2)
    return plan((wide, layered), (dispatch("between", "out"),))


def _workgroups(part: DispatchPart) -> list[tuple[int, int, int, int]]:
    first = 0, part.first_row, part.first_layer
    ranges = [range(begin, begin + count) for begin, count in zip(first, part.groups, strict=True)]
    return [(part.number, x, y, z) for z in ranges[2] for y in ranges[1] for x in ranges[0]]


def test_work_is_what_the_dispatches_read() -> None:
    assert work_of(_plan()) == 48
    assert work_of(_plan(), 3) == 144


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
    assert len(divide(_plan(), 3, most)) == expected


def test_a_frame_that_is_too_much_is_divided_by_rows() -> None:
    first = divide(_plan(), 1, 6)[0]
    assert first == (DispatchPart(0, 0, 0, (2, 1, 1), begins_step=True, ends_dispatch=False),)
