"""`scripts/dump_frame.py`: every stage agrees with its twin, and a fault in one stage is named with its position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import dump_frame
import numpy as np
import pytest

from vkssim.errors import VkssimError
from vkssim.host.device import Device
from vkssim.host.plan import Dispatch, Plan
from vkssim.metrics import with_options
from vkssim.metrics.dispatches import KernelShape
from vkssim.shaders.interface import INTERFACES, Precision
from vkssim.types import FrameFormat

from .support import tolerances
from .support.pictures import distort, texture

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"

FRAME = FrameFormat.of_bits(301, 203, 10)

pytestmark = pytest.mark.usefixtures("shared_device")


def _stages(
    device: Device, shape: KernelShape, feature: str, change: Callable[[Plan], Plan] = lambda plan: plan
) -> list[dump_frame.Stage]:
    """Return the stages of a textured frame. `change` plants a fault in the plan that the device runs."""
    reference = texture(FRAME.height, FRAME.width)
    samples = np.round(np.stack([reference, distort(reference)]) * FRAME.peak).astype(np.uint16)
    plan = dump_frame.plan_of(feature, FRAME, shape)
    written = dump_frame.run_plan(device, change(plan), FRAME, samples)
    return list(dump_frame.stages(plan, shape, FRAME, samples, written))


def _with_fault(label: str, fault: Callable[[Dispatch], Dispatch]) -> Callable[[Plan], Plan]:
    def change(plan: Plan) -> Plan:
        steps = tuple(tuple(fault(one) if one.label == label else one for one in step) for step in plan.steps)
        assert steps != plan.steps
        return replace(plan, steps=steps)

    return change


@pytest.mark.parametrize("feature", ["float_ms_ssim", "float_ssim", "float_ssim=scale=2"])
def test_every_stage_agrees(device: Device, kernel_build: KernelShape, feature: str) -> None:
    found = _stages(device, kernel_build, with_options(feature, precision=kernel_build.precision.value))
    assert dump_frame.table(found).endswith("all stages agree")
    assert all(stage.device.shape == stage.twin.shape for stage in found)
    assert max(stage.gaps.max() for stage in found) > 0, "two sets of numbers, not one"


def _narrower(stem: str, side: str) -> Callable[[Dispatch], Dispatch]:
    """Return a fault: a kernel takes its source for one sample smaller than it is."""

    def fault(dispatch: Dispatch) -> Dispatch:
        push = INTERFACES[stem].unpack(dispatch.push)
        return replace(dispatch, push=INTERFACES[stem].pack(**{**push, side: push[side] - 1}))

    return fault


def test_a_fault_in_a_plane_is_named(device: Device, kernel_build: KernelShape) -> None:
    """The low-pass mirrors the picture at the wrong column, so the last columns of the next scale are wrong."""
    feature = with_options("float_ms_ssim", precision=kernel_build.precision.value)
    fault = _with_fault("decimate to scale 2", _narrower("ms_ssim_decimate", "width"))
    found = _stages(device, kernel_build, feature, fault)
    wrong = next(stage for stage in found if not stage.agrees)
    assert wrong.label == "decimate to scale 2"
    assert wrong.device.shape == (2, 51, 76)
    beyond = np.argwhere(wrong.gaps > wrong.tolerance)
    assert beyond[:, 2].min() >= 73
    row, column = beyond[0, 1:]
    assert f"decimate to scale 2: the reference plane, row {row}, column {column}: " in dump_frame.table(found)


def test_a_fault_in_a_sum_is_named(device: Device, kernel_build: KernelShape) -> None:
    """The last row of workgroups lacks a row of windows."""
    feature = with_options("float_ms_ssim", precision=kernel_build.precision.value)
    found = _stages(device, kernel_build, feature, _with_fault("ms_ssim scale 1", _narrower("ms_ssim", "height")))
    (wrong,) = (stage for stage in found if not stage.agrees)
    assert wrong.label == "ms_ssim scale 1"
    last = len(wrong.device) - 1
    beyond = np.argwhere(wrong.gaps > wrong.tolerance)
    assert set(beyond[:, 0]) == {last}
    term = "lcs"[beyond[0, 2]]
    assert f"ms_ssim scale 1: {term} of the workgroup in row {last}, column 0: " in dump_frame.table(found)


def test_a_missing_number_is_a_difference() -> None:
    nan, one = np.full((2, 1, 1), np.nan), np.ones((2, 1, 1))
    assert not dump_frame.Stage("stage", nan, one, 1.0).agrees
    assert dump_frame.Stage("stage", nan, nan, 1.0).agrees


def test_tolerances_are_those_of_the_kernels() -> None:
    exact, fast = Precision.EXACT, Precision.FAST
    assert {
        ("ssim_downscale", exact): tolerances.DOWNSCALE.value,
        ("ms_ssim_decimate", exact): tolerances.DECIMATE_EXACT.value,
        ("ms_ssim_decimate", fast): tolerances.DECIMATE_FAST.value,
        **{(stem, exact): tolerances.WINDOW_EXACT.value for stem in ("ssim", "ms_ssim")},
        **{(stem, fast): tolerances.WINDOW_FAST.value for stem in ("ssim", "ms_ssim")},
    } == dump_frame.TOLERANCES


def test_the_command_writes_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--feature", "float_ssim=scale=2", "--frame", "3", "-o", str(tmp_path)]
    assert dump_frame.main.main(words, standalone_mode=False) == 0
    assert "all stages agree" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["01-ssim_downscale.npz", "02-ssim.npz"]
    with np.load(tmp_path / "01-ssim_downscale.npz") as archive:
        assert archive["device"].shape == archive["twin"].shape == (2, 162, 288)


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--frame", "48"], "has no frame 48; frames are counted from 0"), (["--feature", "float_psnr"], "float_psnr uses psnr")],
)
def test_a_frame_or_metric_without_a_dump_is_an_error(words: list[str], message: str) -> None:
    with pytest.raises((VkssimError, click.ClickException), match=message):
        dump_frame.main.main(words, standalone_mode=False)
