"""The plan as data."""

from __future__ import annotations

import pytest

from vkssim.host.plan import BufferSpec, Dispatch, Kernel, Role

from .made_up import dispatch, plan


def test_a_sound_plan_is_valid() -> None:
    plan((dispatch("in", "between"),), (dispatch("between", "out"),)).validate()


def test_dispatches_are_in_order() -> None:
    steps = (dispatch("in", "between"), dispatch("in", "out")), (dispatch("between", "out"),)
    assert plan(*steps).dispatches == (*steps[0], *steps[1])


def test_equal_kernels_count_once() -> None:
    other = Dispatch("stage", Kernel("other", ((0, 8),)), ("between",), ("out",), b"", (1, 1))
    assert plan((dispatch(), dispatch()), (other,)).kernels == (Kernel("nothing"), Kernel("other", ((0, 8),)))


def test_buffer_by_name() -> None:
    assert plan().buffer("between") == BufferSpec("between", Role.WORK, 16)
    with pytest.raises(KeyError):
        plan().buffer("absent")


def test_doubled_buffer_is_refused() -> None:
    with pytest.raises(ValueError, match=r"named twice: \['in'\]"):
        plan(buffers=("in", "in", "out")).validate()


@pytest.mark.parametrize("unknown", [dispatch(source="absent"), dispatch(target="absent")])
def test_unknown_buffer_is_refused(unknown: Dispatch) -> None:
    with pytest.raises(ValueError, match=r"unknown buffers: \['absent'\]"):
        plan((unknown,)).validate()


def test_bindings_left_open_are_refused() -> None:
    open_binding = Dispatch("stage", Kernel("nothing", sources=2), ("in",), ("out",), b"", (1, 1))
    with pytest.raises(ValueError, match=r"stage: \(1, 1\) buffers for \(2, 1\) bindings"):
        plan((open_binding,)).validate()


def test_a_step_that_races_with_itself_is_refused() -> None:
    with pytest.raises(ValueError, match=r"both reads and writes \['between'\]"):
        plan((dispatch("in", "between"), dispatch("between", "out"))).validate()
