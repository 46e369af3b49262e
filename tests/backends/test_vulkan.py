"""Test scores on devices of every kind: they have the same bits, and the validation layer reports nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.backends.loss_engine import LossEngine
from vkssim.errors import SmallerBatchWarning
from vkssim.features import FEATURES, with_options
from vkssim.host.device import Device
from vkssim.host.executor import Executor
from vkssim.host.plan import Plan
from vkssim.loss.spec import Loss, constants
from vkssim.maps.mapper import SsimMapper
from vkssim.scorer import Scorer
from vkssim.types import FrameFormat

from ..host.kinds import KINDS, pretend
from ..support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

Arrays = list[npt.NDArray[Any]]

REFERENCE, DISTORTED = clip(3, 180, 190, seed=1), clip(3, 180, 190, seed=2)


def _scores() -> Arrays:
    """Score with every metric, with several batches on their way."""
    features = [with_options(name, enable_lcs=True, scale=1) for name in FEATURES]
    with Scorer(190, 180, bits=8, features=features, batch=1) as scorer:
        return [np.array(list(scores.metrics.values())) for scores in scorer.score(zip(REFERENCE, DISTORTED, strict=True))]


def _map() -> Arrays:
    with SsimMapper(FrameFormat.of_bits(190, 180, 8), {"scale": 1}, batch=2) as mapper:
        return list(mapper.run(REFERENCE, DISTORTED))


def _gradient() -> Arrays:
    reference, distorted = (frames.astype(np.float32) / np.float32(255) for frames in (REFERENCE, DISTORTED))
    gradient = np.empty_like(reference)
    with LossEngine(Loss(180, 190, **constants(1.0)), gradient=True) as engine:
        return [engine.run(reference, distorted, gradient), gradient]


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("compute", [_scores, _map, _gradient])
def test_the_kind_of_device_changes_no_bit(compute: Callable[[], Arrays], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = compute()
    pretend(monkeypatch, kind)
    for got, wanted in zip(compute(), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


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
