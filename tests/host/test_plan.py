"""Plans that contradict themselves."""

from __future__ import annotations

import pytest

from vkssim.host.plan import Dispatch, Kernel, Plan

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
        (plan((dispatch("in", "between"), dispatch("between", "out"))), r"both reads and writes \['between'\]"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(inconsistent: Plan, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inconsistent.validate()
