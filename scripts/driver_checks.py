"""One check of one driver with one size of subgroups: the work of a process of its own, which `check_drivers.py` starts.

Only the end of its process stops a driver that compiles, so no check runs beside an abandoned one.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gate_matrix
import numpy as np
import subgroups

from vkssim import score_files, ssim_and_grad
from vkssim.backends import sessions as devices
from vkssim.backends.known_answers import CASES
from vkssim.backends.selftest import TOLERANCE
from vkssim.backends.sessions import close_sessions, open_device
from vkssim.doctor.in_subprocess import Send
from vkssim.frames.options import Selection
from vkssim.host import executor
from vkssim.host.device import Device
from vkssim.host.devices import DeviceInfo, list_devices
from vkssim.host.errors import COMPILE_LOG, DeviceError
from vkssim.host.instance import shared_instance
from vkssim.host.pipelines import PipelineBuilder
from vkssim.metrics.dispatches import KernelShape
from vkssim.shaders import load_module

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
CLIPS = ("bbb_576x324", "bbb_576x324_10bit")
SCORE_TOLERANCE = 5e-5
"""Four decimals, the contract."""

GRADIENT_TOLERANCE = 2e-6
"""The largest difference of a gradient's samples, which are at most about 0.1, from float64."""

Check = Callable[[], str]


def first_score() -> str:
    """Score one frame of a clip, as a user's first command does, and return nothing wrong."""
    report = _score(CLIPS[0], 1)
    return "" if len(report.frames) == 1 else "there is no score"


def self_test() -> str:
    """Compute all known cases, and return the names of those that differ."""
    shape = KernelShape.for_device(_device())
    wrong = [
        case.name
        for case in CASES
        if case.plan(shape).dispatches and not np.allclose(case.numbers(None), case.right, rtol=0, atol=TOLERANCE)
    ]
    return "; ".join(wrong)


def golden_scores() -> str:
    """Score the bundled clips with both metrics, and return the scores that differ from libvmaf's."""
    wrong = []
    for clip in CLIPS:
        stored = json.loads((FIXTURES / f"{clip}.libvmaf.json").read_text("utf-8"))["frames"]
        frames = _score(clip, None).frames
        for metric in ("float_ssim", "float_ms_ssim"):
            pairs = zip(frames, stored, strict=True)
            worst = max(abs(float(frame.metrics[metric] or 0.0) - right["metrics"][metric]) for frame, right in pairs)
            if not worst <= SCORE_TOLERANCE:
                wrong.append(f"{metric} of {clip} is off by {worst:.1e}")
    return "; ".join(wrong)


def loss_step() -> str:
    """Compute a loss and its gradient, and return what differs from NumPy in float64."""
    random = np.random.default_rng(1)
    images = [random.random((2, 3, 61, 75), dtype=np.float32) for _ in range(2)]
    results = [ssim_and_grad(*images, data_range=1.0, backend=backend) for backend in ("vulkan", "cpu")]
    value = abs(float(results[0][0]) - float(results[1][0]))
    gradient = float(np.abs(np.asarray(results[0][1]) - np.asarray(results[1][1])).max())
    wrong = [f"the value is off by {value:.1e}"] if not value <= SCORE_TOLERANCE else []
    return "; ".join(wrong + ([f"the gradient is off by {gradient:.1e}"] if not gradient <= GRADIENT_TOLERANCE else []))


def gate() -> str:
    """Run the gate's matrix, and return the rows that mismatch."""
    return "; ".join(row.name for row in gate_matrix.run(None).rows if not row.agrees)


CHECKS: dict[str, Check] = {
    "first score": first_score,
    "self-test": self_test,
    "golden": golden_scores,
    "loss": loss_step,
    "gate": gate,
}


def _score(clip: str, count: int | None) -> Any:
    paths = FIXTURES / f"{clip}_ref.mp4", FIXTURES / f"{clip}_dis.mp4"
    features = ("float_ssim", "float_ms_ssim")
    return score_files(*paths, features=features, selection=Selection(count=count), backend="vulkan")


def _device() -> DeviceInfo:
    return next(info for info in list_devices(shared_instance()) if not info.lacks)


@contextmanager
def _compiled_once() -> Iterator[None]:
    """Open one device for a whole check, on which each kernel is compiled once: some drivers take half a minute for one.

    Frames that another API of the GPU writes need a device that was opened for sharing. It gets kernels of its own.
    """
    with ExitStack() as stack:
        device = stack.enter_context(Device(_device()))
        kept = PipelineBuilder(device, stack, load_module)

        def opened(owner: ExitStack, selector: str | int | None, *, sharing: bool = False) -> Device:
            return open_device(owner, selector, sharing=sharing) if sharing else device

        def builder(asked: Device, owner: ExitStack, *arguments: Any) -> PipelineBuilder:
            return kept if asked is device else PipelineBuilder(asked, owner, *arguments)

        for module in (executor, devices):
            stack.enter_context(patch.object(module, "PipelineBuilder", builder))
        stack.enter_context(patch.object(devices, "open_device", opened))
        stack.callback(close_sessions)
        yield


def describe(send: Send) -> None:
    """Send the name and the driver of the device, and the sizes of subgroups that can be checked, with their variables."""
    info = _device()
    sizes = {size: subgroups.environment_of(info, size) for size in subgroups.sizes_of(info)}
    for name, value in (("name", info.name), ("driver", info.driver), ("sizes", sizes)):
        send(name, value)


def run(send: Send, name: str, size: int) -> None:
    """Run a check with subgroups of a size, and send its problem, an empty text if there is none, and its seconds."""
    logging.basicConfig(format="%(message)s")
    COMPILE_LOG.setLevel(logging.INFO)
    as_users_have_it = name == "first score"
    with subgroups.required(_device(), size), nullcontext() if as_users_have_it else _compiled_once():
        began = time.perf_counter()
        try:
            problem = CHECKS[name]()
        except (DeviceError, ArithmeticError) as error:
            problem = f"{type(error).__name__}: {error}"
        send("problem", problem)
        send("seconds", round(time.perf_counter() - began, 1))
