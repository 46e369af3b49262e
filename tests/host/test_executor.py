"""The executor: results, its slots, its profile, and that nothing outlives it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vkssim.backends.vulkan import frame_plan
from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.host.errors import DeviceError, DeviceTimeoutError, VkssimError
from vkssim.host.executor import Executor
from vkssim.host.plan import Plan, Role
from vkssim.host.waiting import TIMEOUT_VARIABLE
from vkssim.metrics.dispatches import KernelShape
from vkssim.metrics.motion import clip_sums
from vkssim.metrics.plane_metrics import FrameMetrics
from vkssim.shaders import load_module
from vkssim.shaders.interface import Shape

from .kinds import FRAME, KINDS, SOURCE, doubling, pretend


def _open(device: Device, **options: Any) -> Executor:
    return Executor(device, doubling(device), load_module, **options)


def _samples(frames: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (frames, SOURCE.spec(Role.INPUT).frame_bytes), np.uint8)


@pytest.mark.parametrize("frames", [1, 2, 3])
def test_slots_keep_apart_what_is_in_flight(device: Device, frames: int) -> None:
    with _open(device, batch=3, slots=2) as executor:
        samples = [_samples(frames, seed) for seed in range(4)]
        for round_of in (0, 2):
            for number, slot in enumerate(executor.slots):
                slot.inputs[SOURCE.buffer][:frames] = samples[round_of + number]
                executor.submit(slot, frames)
            for number, slot in enumerate(executor.slots):
                assert executor.wait(slot) == frames
                assert executor.is_done(slot) is False, "its fence is reset for the next submission"
                got = slot.outputs["out"][:frames].view(np.float32)
                np.testing.assert_array_equal(got, 2.0 * samples[round_of + number])


def test_an_interrupted_wait_is_not_waited_for_again(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its fences are reset by then, and would never say that they are done."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv(TIMEOUT_VARIABLE, "20")
    with _open(device) as executor:
        executor.submit(executor.slots[0], 1)
        executor.slots[0].readback["out"].refresh = interrupt  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            executor.wait(executor.slots[0])
    assert not device.abandoned


def test_an_interrupted_submission_is_waited_for(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals are heard as soon as the driver has taken it, when nothing here knows that yet."""
    submit, waits = vk.vkQueueSubmit, []

    def submitted(*arguments: Any) -> None:
        submit(*arguments)
        raise KeyboardInterrupt

    with _open(device) as executor:
        monkeypatch.setattr(device, "wait_idle", lambda idle=device.wait_idle: waits.append(idle()))
        monkeypatch.setattr(vk, "vkQueueSubmit", submitted)
        with pytest.raises(KeyboardInterrupt):
            executor.submit(executor.slots[0], 1)
    assert len(waits) == 1


def test_a_failure_between_submissions_waits_for_the_earlier_ones(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slot is free then, and can be submitted again."""
    submit, calls, waits = vk.vkQueueSubmit, 0, []

    def fail_second(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise DeviceError("the second submission fails in this test")
        submit(*arguments)

    with _open(device) as executor:
        slot = executor.slots[0]
        slot.inputs[SOURCE.buffer][:] = _samples(1, 1)
        monkeypatch.setattr(executor._budget, "max_work", SOURCE.spec(Role.INPUT).frame_bytes)
        monkeypatch.setattr(device, "wait_idle", lambda idle=device.wait_idle: waits.append(idle()))
        monkeypatch.setattr(vk, "vkQueueSubmit", fail_second)
        with pytest.raises(DeviceError, match="the second submission fails"):
            executor.submit(slot, 1)
        assert len(waits) == 1
        executor.submit(slot, 1)
        executor.wait(slot)
        assert calls > 3, "there are several submissions"
        np.testing.assert_array_equal(slot.outputs["out"].view(np.float32), 2.0 * _samples(1, 1))


@pytest.mark.parametrize("most", [None, 100], ids=["one submission", "several submissions"])
def test_profile_has_every_stage(device: Device, monkeypatch: pytest.MonkeyPatch, most: int | None) -> None:
    with _open(device, profile=True) as executor:
        monkeypatch.setattr(executor._budget, "max_work", most)
        executor.submit(executor.slots[0], 1)
        executor.wait(executor.slots[0])
        times = executor.stage_times(executor.slots[0])
    assert set(times) == {"upload", "ingest"}
    assert all(0 <= seconds < 10 for seconds in times.values())


def test_a_device_that_does_not_answer(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of once the time is up, and left alone from then on: neither waited for nor destroyed."""
    touched: list[str] = []

    def silence(*_: Any) -> None:
        touched.append("wait")
        raise vk.module.VkTimeout

    monkeypatch.setenv(TIMEOUT_VARIABLE, "0.5")
    with Device(device.info) as hung, _open(hung) as executor:
        for slot in executor.slots:
            executor.submit(slot, 1)
        with monkeypatch.context() as patch:
            patch.setattr(vk, "vkWaitForFences", silence)
            patch.setattr(vk, "vkDeviceWaitIdle", silence)
            with pytest.raises(DeviceTimeoutError, match=r"did not finish 1 frame in 0\.5 s.*VKSSIM_TIMEOUT=SECONDS"):
                executor.wait(executor.slots[0])
            assert len(touched) == 5, "it waits in slices, between which Python hears signals"
            with pytest.raises(DeviceTimeoutError, match="has stopped answering"):
                executor.wait(executor.slots[1])
            before = +hung.live_objects
            executor.close()
            hung.close()
            assert (+hung.live_objects, len(touched)) == (before, 5)
        hung.abandoned = False  # it only seemed so
        hung.wait_idle()


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "1e9"])
def test_a_time_out_that_is_no_time_is_refused(device: Device, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(TIMEOUT_VARIABLE, text)
    with pytest.raises(VkssimError, match=f"VKSSIM_TIMEOUT is '{text}'; it is the seconds"):
        _open(device)
    assert not +device.live_objects


def test_a_plan_that_contradicts_itself_is_refused(device: Device) -> None:
    plan = doubling(device)
    with pytest.raises(ValueError, match="unknown buffers"):
        Executor(device, Plan(plan.buffers[:1], plan.steps), load_module)


# -- large outputs and runs without copies -----------------------------------------------------------------------------


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the executor takes the device to be."""
    pretend(monkeypatch, request.param)
    return str(request.param)


@pytest.fixture
def other(device: Device, kind: str) -> Iterator[Device]:
    """The device opened as one of that kind."""
    with Device(device.info) as opened:
        yield opened
        assert not +opened.live_objects


def _open_large(device: Device, **options: Any) -> Executor:
    plan = doubling(device)
    *others, target = plan.buffers
    return Executor(device, replace(plan, buffers=(*others, replace(target, role=Role.LARGE_OUTPUT))), load_module, **options)


@pytest.mark.parametrize("profile", [False, True])
def test_a_lead_is_from_the_batch_before(other: Device, kind: str, profile: bool) -> None:
    """Whatever slot that had, and whatever the host has written to its inputs since."""
    metrics = FrameMetrics("motion", [FRAME])
    shape = KernelShape(Shape.STRIP, other.info.subgroup_size)
    plan, ((part,),) = frame_plan(metrics.planes, shape)
    planes = np.random.default_rng(0).integers(0, 256, (11, 2, FRAME.height, FRAME.width), np.uint8)
    sums: list[float] = []
    with Executor(other, plan, load_module, batch=3, slots=2, profile=profile) as executor:
        before, first = None, 0
        for number, frames in ((0, 2), (1, 3), (0, 1), (0, 3), (1, 2)):
            slot = executor.slots[number]
            slot.inputs[SOURCE.buffer][:frames] = planes[first : first + frames].reshape(frames, -1)
            executor.submit(slot, frames, after=before)
            executor.wait(slot)
            slot.inputs[SOURCE.buffer][:] = 0
            partials = slot.outputs[part.partials.name][:frames].view(np.float32)
            sums += metrics.planes[0].scorers[0].means(partials, part)[:, 0].tolist()
            before, first = slot, first + frames
    assert sums[1:] == clip_sums(planes[:, 0], 8)[1:]


@pytest.mark.parametrize("frames", [1, 3])
def test_large_outputs_reach_the_host(other: Device, kind: str, frames: int) -> None:
    """Through a copy of just the frames that were run where the device has memory of its own."""
    with _open_large(other, batch=3, slots=2) as executor:
        for seed, slot in enumerate(executor.slots):
            assert (slot.buffers["out"] is not slot.readback["out"]) == (kind != "one memory")
            samples = _samples(frames, seed)
            slot.inputs[SOURCE.buffer][:frames] = samples
            slot.outputs["out"][:] = 0xFF
            executor.submit(slot, frames)
            executor.wait(slot)
            np.testing.assert_array_equal(slot.outputs["out"][:frames].view(np.float32), 2.0 * samples)
            assert (slot.outputs["out"][frames:] == 0xFF).all()


def test_a_table_is_there_for_every_batch(other: Device) -> None:
    """It is written once, whatever memory the device has."""
    plan = doubling(other)
    source, *others = plan.buffers
    samples = _samples(1, 3)
    table = replace(source, role=Role.TABLE, content=samples.tobytes())
    with Executor(other, replace(plan, buffers=(table, *others)), load_module, slots=2) as executor:
        for slot in (*executor.slots, *executor.slots):
            assert not slot.inputs
            slot.outputs["out"][:] = 0xFF
            executor.submit(slot, 1)
            executor.wait(slot)
            np.testing.assert_array_equal(slot.outputs["out"].view(np.float32), 2.0 * samples)


def test_without_copies_kernels_see_the_last_upload(other: Device, kind: str) -> None:
    """And large outputs stay on the device; where there is one memory, there is nothing to leave out."""
    with _open_large(other, slots=1) as executor:
        slot = executor.slots[0]
        first, second = _samples(1, 1), _samples(1, 2)
        slot.inputs[SOURCE.buffer][:] = first
        executor.submit(slot, 1)
        executor.wait(slot)
        slot.inputs[SOURCE.buffer][:] = second
        slot.outputs["out"][:] = 0xFF
        executor.submit(slot, 1, copies=False)
        executor.wait(slot)
        if kind != "one memory":
            assert (slot.outputs["out"] == 0xFF).all()
        else:
            np.testing.assert_array_equal(slot.outputs["out"].view(np.float32), 2.0 * second)
        executor.submit(slot, 1)
        executor.wait(slot)
        np.testing.assert_array_equal(slot.outputs["out"].view(np.float32), 2.0 * second)


# -- closing ----------------------------------------------------------------------------------------------------------


def test_closing_waits_for_what_is_in_flight(device: Device) -> None:
    executor = _open(device, slots=2)
    for slot in executor.slots:
        executor.submit(slot, 1)
        with pytest.raises(RuntimeError, match="in flight"):
            executor.submit(slot, 1)
    executor.close()
    assert not +device.live_objects
