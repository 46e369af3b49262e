"""Devices of every kind, and one that is slow for its batches and gets short submissions, give the same bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from vkssim.backends.loss_engine import LossEngine, LossStep
from vkssim.backends.sessions import close_sessions
from vkssim.errors import FrameError, SmallerBatchWarning
from vkssim.host import executor, submissions
from vkssim.host.api import vk
from vkssim.host.bound_plan import Binding
from vkssim.host.device import Device
from vkssim.host.devices import DeviceKind
from vkssim.host.executor import Executor
from vkssim.host.plan import Plan
from vkssim.host.submissions import TARGET_S, Submission, SubmissionBudget
from vkssim.loss.spec import MS_SSIM_WEIGHTS, Loss, Negative, Pyramid, constants
from vkssim.maps.mapper import SsimMapper
from vkssim.scorer import Scorer
from vkssim.shaders.interface import Shape
from vkssim.torch import ms_ssim
from vkssim.types import FrameFormat

from ..host.kinds import KINDS, pretend
from ..support.devices.geometry import use_shape
from ..support.pictures import clip
from ..torch import stand_in

pytestmark = pytest.mark.usefixtures("shared_device")

Arrays = list[npt.NDArray[Any]]

REFERENCE, DISTORTED = (clip(5, 180, 190, seed=seed).astype(np.uint16) * 4 for seed in (1, 2))

MOST = 1 << 15
"""The bytes of work that the slow device may get at once: one row of workgroups of the largest scale."""

FIRST = 1 << 17
"""The bytes of work that it gets before it is measured: a dispatch of one frame."""

SLOW = MOST / TARGET_S
"""The bytes of work that the slow device does in a second."""


def _scores() -> Arrays:
    features = ["float_ms_ssim=enable_lcs=true:precision=fast", "float_ssim=scale=2:precision=fast"]
    close_sessions()  # another call has an executor of its own
    with Scorer(190, 180, bits=10, features=features, batch=2) as scorer:
        return [np.array(list(scores.metrics.values())) for scores in scorer.score(zip(REFERENCE, DISTORTED, strict=True))]


def _map() -> Arrays:
    close_sessions()
    with SsimMapper(FrameFormat.of_bits(190, 180, 10), {"scale": 1, "precision": "fast"}, batch=2) as mapper:
        return list(mapper.run(REFERENCE, DISTORTED))


def _gradient() -> Arrays:
    reference, distorted = (frames.astype(np.float32) / np.float32(1023) for frames in (REFERENCE, DISTORTED))
    gradient = np.empty_like(reference)
    loss = Loss(180, 190, **constants(1.0), weights=MS_SSIM_WEIGHTS, pyramid=Pyramid.AVERAGE, negative=Negative.CLAMP)
    with LossEngine(LossStep(loss, gradient=True), planes=2) as engine:
        return [engine.run(reference, distorted, gradient), engine.run(reference, distorted, gradient), gradient]


@dataclass
class Slow:
    """The submissions that a slow device got, each as the bytes of its work, and what was measured of its batches."""

    submissions: list[float] = field(default_factory=list)
    measured: list[float] = field(default_factory=list)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """Make what is opened from now on as slow as SLOW. It is an integrated GPU, as far as its time is concerned."""
    seen = Slow()
    note, record = SubmissionBudget.note, Binding.record

    def noted(self: SubmissionBudget, work: int, seconds: float) -> None:
        seen.measured.append(seconds)
        note(self, work, work / SLOW)

    def recorded(self: Binding, commands: Any, submission: Submission, *rest: Any) -> None:
        seen.submissions.append(_work(self._plan, submission))
        record(self, commands, submission, *rest)

    monkeypatch.setattr(
        executor,
        "SubmissionBudget",
        lambda _kind, work, can_measure: SubmissionBudget(DeviceKind.INTEGRATED, work, can_measure=can_measure),
    )
    monkeypatch.setattr(SubmissionBudget, "note", noted)
    monkeypatch.setattr(Binding, "record", recorded)
    monkeypatch.setattr(submissions, "_MIN_WORK", 1)
    monkeypatch.setattr(submissions, "_FIRST_WORK_OF_OTHER_KINDS", FIRST)
    return seen


def _work(plan: Plan, submission: Submission) -> float:
    work = 0.0
    for part in submission:
        dispatch = plan.dispatches[part.number]
        share = part.groups[1] * part.groups[2] / (dispatch.groups[1] * dispatch.layers)
        work += share * sum(plan.buffer(name).frame_bytes for name in dispatch.sources)
    return work


@pytest.mark.parametrize("shape", Shape, ids=lambda shape: shape.value)
@pytest.mark.parametrize("compute", [_scores, _gradient])
def test_short_submissions_change_no_bit(
    compute: Callable[[], Arrays], shape: Shape, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_shape(monkeypatch, shape)
    expected = compute()
    slow: Slow = request.getfixturevalue("slow")
    for got, wanted in zip(compute(), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert all(seconds > 0.0 for seconds in slow.measured), "the device has taken the times"
    assert len(slow.submissions) > 20
    assert max(slow.submissions) <= FIRST


def test_tensors_on_the_gpu_get_short_submissions(request: pytest.FixtureRequest) -> None:
    """The host does not wait for them, and learns of their time when it starts the next ones."""
    images = [frames[:2, None].astype(np.float32) / np.float32(1023) for frames in (DISTORTED, REFERENCE)]

    def steps() -> Arrays:
        distorted, reference = (torch.from_numpy(image).to(stand_in.DEVICE) for image in images)
        distorted.requires_grad_()
        computed: Arrays = []
        with stand_in.sharing():
            for _ in range(3):
                value = ms_ssim(distorted, reference, data_range=1.0)
                computed += [part.detach().cpu().numpy() for part in (value, *torch.autograd.grad(value, distorted))]
        return computed

    expected = steps()
    slow: Slow = request.getfixturevalue("slow")
    for got, wanted in zip(steps(), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    before = max(number for number, work in enumerate(slow.submissions) if work > MOST)
    assert max(slow.submissions) <= FIRST
    assert len(slow.submissions) - before > 20, "they are shorter from the second step on"
    assert all(seconds > 0.0 for seconds in slow.measured)
    assert len(slow.measured) >= 2


def test_submissions_get_shorter_once_the_device_is_measured(slow: Slow) -> None:
    _map()
    before = max(number for number, work in enumerate(slow.submissions) if work > MOST)
    assert max(slow.submissions) <= FIRST
    assert 1 < before < 8, "these are the submissions of the first batch"
    assert len(slow.submissions) > 20


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("clip_name", ["reference", "distorted"])
def test_a_sample_beyond_the_depth_is_found(clip_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that looks for it has one result for each workgroup of the whole dispatch."""
    use_shape(monkeypatch, Shape.STAGED)
    clips = {"reference": REFERENCE.copy(), "distorted": DISTORTED.copy()}
    clips[clip_name][3, -1, -1] = 1024
    with (
        SsimMapper(FrameFormat.of_bits(190, 180, 10), {"scale": 1, "precision": "fast"}, batch=1) as mapper,
        pytest.raises(FrameError, match=f"the {clip_name} frame 3 has a sample of 1024"),
    ):
        mapper.run(clips["reference"], clips["distorted"])


@pytest.fixture(scope="module")
def ordinary(shared_device: None) -> Callable[[Callable[[], Arrays]], Arrays]:
    """What a function computes on the device as it is, once for all tests that compare with it."""
    return cache(lambda compute: compute())


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("compute", [_scores, _map, _gradient])
@pytest.mark.parametrize("is_slow", [False, True], ids=["fast", "slow"])
def test_the_kind_of_device_changes_no_bit(
    compute: Callable[[], Arrays],
    kind: str,
    is_slow: bool,
    ordinary: Callable[[Callable[[], Arrays]], Arrays],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Copies come before and after all submissions of a batch."""
    expected = ordinary(compute)
    pretend(monkeypatch, kind)
    submissions = request.getfixturevalue("slow").submissions if is_slow else None
    for got, wanted in zip(compute(), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert submissions is None or len(submissions) > 20


def test_each_submission_is_a_call_of_its_own(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers may join the submissions of one call."""
    submit, counts = vk.vkQueueSubmit, []
    monkeypatch.setattr(vk, "vkQueueSubmit", lambda *arguments: counts.append(arguments[1]) or submit(*arguments))
    _map()
    assert len(counts) > 20
    assert set(counts) == {1}


def test_a_fast_device_gets_one_submission_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is measured with its first batch, and left alone from then on."""
    _map()  # the self-test of these kernels has passed then, and adds no submission
    noted: list[float] = []
    monkeypatch.setattr(
        executor,
        "SubmissionBudget",
        lambda _kind, work, can_measure: SubmissionBudget(DeviceKind.DISCRETE, work, can_measure=can_measure),
    )
    note = SubmissionBudget.note
    monkeypatch.setattr(SubmissionBudget, "note", lambda self, work, _: noted.append(work) or note(self, work, 1e-6))
    submit, queues = vk.vkQueueSubmit, []
    monkeypatch.setattr(vk, "vkQueueSubmit", lambda *arguments: queues.append(arguments[0]) or submit(*arguments))
    with SsimMapper(FrameFormat.of_bits(190, 180, 10), {"scale": 1, "precision": "fast"}, batch=1) as mapper:
        mapper.run(REFERENCE, DISTORTED)
    assert set(Counter(queues).values()) == {len(REFERENCE)}, (
        "one for each batch, and one for its upload where that has a queue"
    )
    assert len(noted) == 1


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
