"""Test the batches that a device gets."""

from __future__ import annotations

from typing import Any

import pytest

from vkssim.errors import SmallerBatchWarning
from vkssim.host.device import Device
from vkssim.host.executor import Executor
from vkssim.host.plan import Plan
from vkssim.scorer import Scorer

from ..support.pictures import clip


@pytest.mark.usefixtures("shared_device")
def test_a_batch_that_no_device_could_hold_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try compiles the kernels: the first is for what the device states that it can bind and has memory for."""
    tried: list[int] = []
    begin = Executor.__init__

    def note(self: Executor, device: Device, plan: Plan, *arguments: Any, batch: int = 1, **options: Any) -> None:
        if batch > 1000:  # else it is the self-test's
            tried.append(batch)
            assert max(spec.frame_bytes for spec in plan.buffers) * batch <= device.info.max_storage_bytes
        begin(self, device, plan, *arguments, batch=min(batch, 8), **options)

    monkeypatch.setattr(Executor, "__init__", note)
    with (
        pytest.warns(SmallerBatchWarning, match="batches of 1000000000 frames; batches of "),
        Scorer(32, 24, bits=8, features="float_ssim=scale=1", batch=10**9) as scorer,
    ):
        assert len(list(scorer.score([(clip(1, 24, 32)[0],) * 2]))) == 1
    assert len(tried) == 1
