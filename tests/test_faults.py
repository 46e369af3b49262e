"""Every call of Vulkan that can fail is made to fail: each failure gives its error or the right scores, and leaves nothing."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkssim
from vkssim.backends import loss_engine
from vkssim.backends.sessions import close_sessions
from vkssim.errors import DeviceError, DeviceLostError, DeviceMemoryError, NoDeviceError, SmallerBatchWarning
from vkssim.host.device import Device
from vkssim.host.devices import list_devices
from vkssim.host.instance import Instance, shared_instance

from .support.clips import write, y4m_bytes
from .support.devices.faults import ERRORS, RESULTS, Fault, Reuse, layer
from .support.pictures import clip

FRAMES = clip(9, 16, 16)
DISTORTED = np.roll(FRAMES, 1, axis=2)
FEATURE = "float_ssim=scale=1:precision=fast"

OPENING = {
    "vkCreateDevice",
    "vkCreateInstance",
    "vkEnumerateDeviceExtensionProperties",
    "vkEnumerateInstanceExtensionProperties",
    "vkEnumeratePhysicalDevices",
}
"""Called before there is a batch that could be smaller."""
USING = {
    "vkAllocateCommandBuffers",
    "vkBeginCommandBuffer",
    "vkEndCommandBuffer",
    "vkGetFenceStatus",
    "vkInvalidateMappedMemoryRanges",
    "vkQueueSubmit",
    "vkResetFences",
    "vkWaitForFences",
}
"""Called once there are batches on their way."""
HARMLESS = {"vkGetPipelineCacheData"}
"""All that it costs is compiling again."""
MEMORY = {"OUT_OF_HOST_MEMORY", "OUT_OF_DEVICE_MEMORY", "MEMORY_MAP_FAILED"}


@dataclass
class Outcome:
    """The result of a run: scores and messages."""

    scores: list[float]
    warnings: list[str] = field(default_factory=list)


def _scorer(frames: np.ndarray, distorted: np.ndarray, **options: Any) -> Outcome:
    with vkssim.Scorer(16, 16, features=[FEATURE], batch=2, **options) as scorer:
        scored = list(scorer.score(zip(frames, distorted, strict=True)))
    return Outcome([frame.metrics["float_ssim"] for frame in scored])


def _integers(_folder: Path) -> Outcome:
    return _scorer(FRAMES, DISTORTED, bits=8)


def _floats(_folder: Path) -> Outcome:
    return _scorer(FRAMES.astype(np.float32), DISTORTED.astype(np.float32), dtype=np.float32, data_range=255)


def _files(folder: Path) -> Outcome:
    paths = [write(folder / name, y4m_bytes(frames)) for name, frames in (("r.y4m", FRAMES), ("d.y4m", DISTORTED))]
    report = vkssim.score_files(*paths, features=[FEATURE], profile=True)  # whose queries can fail too
    assert [frame.index for frame in report.frames] == list(range(len(FRAMES)))
    return Outcome([frame.metrics["float_ssim"] for frame in report.frames], report.warnings)


def _loss(_folder: Path) -> Outcome:
    try:
        value, gradient = vkssim.ssim_and_grad(FRAMES, DISTORTED)
    finally:
        close_sessions()
    assert isinstance(value, float)
    return Outcome([value, *gradient.ravel()[:500].tolist()])


def _devices(_folder: Path) -> Outcome:
    with Instance(validation=False) as instance:
        return Outcome([float(len(list_devices(instance)))])


RUNS: dict[str, Callable[[Path], Outcome]] = {
    "integers": _integers,
    "floats": _floats,
    "files": _files,
    "loss": _loss,
    "devices": _devices,
}


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Device]]:
    """All devices that a test opens. Batches of losses are small, or halving them takes long."""
    opened: list[Device] = []
    make = Device.__init__

    def note(self: Device, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        opened.append(self)

    monkeypatch.setattr(Device, "__init__", note)
    monkeypatch.setattr(loss_engine, "_BATCH_BYTES", 1 << 14)
    shared_instance()  # made once for all
    yield opened
    assert not any(+device.live_objects for device in opened)


def _faults(calls: Counter[str]) -> Iterator[tuple[str, str, int]]:
    """Every error of every function at its first call, and one of them in the middle and at the last."""
    for function, count in sorted(calls.items()):
        errors = ERRORS[function]
        yield from ((function, error, 0) for error in errors)
        for number, call in enumerate(sorted({count // 2, count - 1} - {0})):
            yield function, errors[(number + 1) % len(errors)], call


def _error(error: str) -> type[DeviceError]:
    if error in MEMORY:
        return DeviceMemoryError
    return {"DEVICE_LOST": DeviceLostError, "INCOMPATIBLE_DRIVER": NoDeviceError}.get(error, DeviceError)


def _recovers(run: str, function: str, error: str) -> bool:
    if function in HARMLESS:
        return True
    if error in MEMORY:
        return function not in OPENING and (run == "files" or function not in USING)
    return error == "DEVICE_LOST" and run in ("files", "loss")


@pytest.fixture(scope="module")
def reuse() -> Iterator[Reuse]:
    with closing(Reuse()) as made:
        yield made


@pytest.mark.parametrize("run", RUNS)
def test_every_call_that_can_fail(run: str, tmp_path: Path, devices: list[Device], reuse: Reuse) -> None:
    score = RUNS[run]
    score(tmp_path)  # with the self-test, if it was not done yet
    devices.clear()
    with layer(reuse=reuse) as clean:
        expected = score(tmp_path).scores
    assert not clean.left
    calls = Counter(name for name in clean.calls if name in clean.can_fail)
    assert set(calls) <= set(ERRORS), "a function that can fail has no list of its errors"
    last = ""
    for function, error, call in _faults(calls):
        if function != last:
            with layer(reuse=reuse):
                assert score(tmp_path).scores == expected, f"the clean run before {function}"
        last = function
        while not _fails_as_it_should(run, Fault(function, call, RESULTS[error]), error, tmp_path, expected, devices, reuse):
            call -= 1  # how often some are called depends on how quick the device is


def _fails_as_it_should(
    run: str, fault: Fault, error: str, folder: Path, expected: list[float], devices: list[Device], reuse: Reuse
) -> bool:
    """Whether the call was made at all; asserts what has to come of it."""
    what = f"{fault.function} {error} at call {fault.call}"
    got: Outcome | None = None
    raised: DeviceError | None = None
    with layer(fault, reuse=reuse) as faulty, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            got = RUNS[run](folder)
        except DeviceError as failure:
            raised = failure
    assert not faulty.left, f"{what}: {faulty.left}"
    assert not any(+device.live_objects for device in devices), what
    assert not any(device.abandoned for device in devices), what
    devices.clear()
    assert all(warning.category is SmallerBatchWarning for warning in said), what
    if raised is not None:
        assert faulty.injected == 1, what
        assert not _recovers(run, fault.function, error), f"{what}: {raised}"
        assert type(raised) is _error(error), f"{what}: {raised}"
        assert fault.function in str(raised) or type(raised) is NoDeviceError, f"{what}: {raised}"
        assert not said, what
        return True
    assert got is not None
    np.testing.assert_allclose(got.scores, expected, rtol=0, atol=1e-6, err_msg=what)
    if faulty.injected:
        assert _recovers(run, fault.function, error), what
        told = fault.function not in HARMLESS | OPENING and (run == "files" or error in MEMORY)
        assert len(got.warnings) + len(said) == told, f"{what}: {got.warnings}"
    return faulty.injected == 1
