"""The gate: what it compares, that it can fail, and how it ends."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gate_matrix
import numpy as np
import pytest
from click.testing import CliRunner
from cross_backend_diff import main
from gate_matrix import LARGE_PAIRS, PAIRS, CasePair, Form, compare, stored_samples, tolerance_of

from vkssim.backends.vulkan import frame_plan, with_largest_samples
from vkssim.host import executor
from vkssim.host.device import Device
from vkssim.host.devices import DeviceKind
from vkssim.host.submissions import SubmissionBudget
from vkssim.metrics import with_options
from vkssim.metrics.dispatches import KernelShape
from vkssim.metrics.plane_metrics import FrameMetrics
from vkssim.shaders.interface import Precision, Shape, module_name, modules
from vkssim.types import FrameFormat

from .support.commands import python_process

pytestmark = pytest.mark.usefixtures("shared_device")

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"

Metrics = dict[str, float | None]
ONE = replace(PAIRS[0], builds=((Shape.STAGED, Precision.EXACT),))


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        ({"a": 0.5}, {"a": 0.5 + 4.9e-5}, True),
        ({"a": 0.5}, {"a": 0.5 + 5.1e-5}, False),
        ({"a": None}, {"a": math.nan}, True),
        ({"a": math.inf}, {"a": math.inf}, True),
        *(({"a": missing}, {"a": 0.5}, False) for missing in (None, math.nan, math.inf)),
        ({"a": 0.5, "b": None}, {"a": 0.5}, False),
        ({}, {"a": 0.5}, False),
    ],
)
def test_scores_agree_to_half_a_unit_of_the_last_place(first: Metrics, second: Metrics, agree: bool) -> None:
    """A score or a frame that one side lacks is a mismatch."""
    for sides in ((first, second), (second, first)):
        tested, trusted = ({0: side} if side else {} for side in sides)
        assert all(not score.mismatches for score in compare(tested, trusted, tolerance_of(4))) == agree


def test_the_matrix_runs_every_kernel_that_scores() -> None:
    """Every module but those of losses, maps and a decoder's surfaces, and every format that a kernel reads."""
    needed = {module_name(*it) for it in modules() if not re.match(r"loss_|deinterleave$", it[0])}
    run: set[str] = set()
    formats: dict[str, set[int]] = {}
    for pair in PAIRS:
        frame, _ = _samples(pair)
        for shape, precision in pair.builds:
            for feature, _ in pair.features:
                metrics = FrameMetrics(with_options(feature, precision=precision.value), [frame])
                plan, _ = frame_plan(metrics.planes, KernelShape(shape, 8))
                if shape is Shape.STAGED:
                    plan, _ = with_largest_samples(plan, metrics.planes, KernelShape(shape, 8))
                for kernel in plan.kernels:
                    run.add(kernel.module)
                    formats.setdefault(kernel.module, set()).update(value for number, value in kernel.constants if number == 1)
    metrics = FrameMetrics((*gate_matrix.VMAF, *gate_matrix.VMAF_V1, *gate_matrix.CAMBI), [FrameFormat.of_bits(576, 324, 8)])
    run |= {kernel.module for shape in Shape for kernel in frame_plan(metrics.planes, KernelShape(shape, 8))[0].kernels}
    assert run == needed
    for shape in Shape:
        for precision in Precision:
            assert formats[module_name("ms_ssim", shape, precision)] == {0, 1, 2}
            assert formats[module_name("ssim", shape, precision)] >= {1, 2}


def _samples(pair: CasePair) -> tuple[Any, Any]:
    cases = json.loads((gate_matrix.FIXTURES / "cases.json").read_text("utf-8"))["cases"]
    with np.load(gate_matrix.FIXTURES / "cases.npz") as archive:
        return gate_matrix._formed(pair.form, cases[pair.case]["bitdepth"], stored_samples(pair, archive))


@pytest.mark.parametrize("form", Form)
def test_every_form_stands_for_the_same_samples(form: Form) -> None:
    pair = replace(PAIRS[0], form=form)
    (stored_frame, stored), (frame, given) = _samples(replace(pair, form=Form.STORED)), _samples(pair)
    for samples, expected in zip(given, stored, strict=True):
        np.testing.assert_allclose(samples * frame.factor, expected * stored_frame.factor, rtol=1e-15)


def test_large_frames_are_those_of_the_case_repeated() -> None:
    sizes = set()
    for pair in LARGE_PAIRS:
        (frame, tiled), (_, stored) = _samples(pair), _samples(replace(pair, tiled=None))
        sizes.add((frame.width, frame.height))
        for large, small in zip(tiled, stored, strict=True):
            assert large.shape == (frame.height, frame.width)
            rows, columns = np.ogrid[: frame.height, : frame.width]
            np.testing.assert_array_equal(large, small[rows % small.shape[0], columns % small.shape[1]])
    assert (1920, 1080) in sizes
    assert max(width for width, _ in sizes) > 2048


def test_large_frames_take_the_place_of_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_matrix, "LARGE_PAIRS", (ONE,))
    result = gate_matrix.run(None, large=True)
    assert result.agrees
    assert [row.name.split(",")[0] for row in result.rows] == [ONE.case]


def _run(monkeypatch: pytest.MonkeyPatch, *pairs: CasePair) -> gate_matrix.Result:
    monkeypatch.setattr(gate_matrix, "PAIRS", pairs)
    monkeypatch.setattr(gate_matrix, "VMAF_CLIPS", ())
    monkeypatch.setattr(gate_matrix, "CLIPS", ())
    return gate_matrix.run(None)


def test_a_row_has_all_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _run(monkeypatch, ONE)
    (row,) = result.rows
    assert result.agrees
    assert {info.backend for info in result.backends} == {"vulkan", "cpu"}
    assert set(row.comparisons) == {("vulkan", "cpu"), ("vulkan", "libvmaf"), ("cpu", "libvmaf")}
    for scores in row.comparisons.values():
        assert len(scores) == 20, "float_ms_ssim, float_ssim and their l, c, s"
        assert max(score.greatest for score in scores) > 0, "three sets of numbers, not one"


@pytest.mark.parametrize(
    ("changed", "shapes"),
    [
        ({}, ["strip", "staged"]),
        ({"kind": DeviceKind.DISCRETE}, ["staged"]),
        ({"name": "SwiftShader Device (Subzero)"}, ["staged"]),
    ],
)
def test_shapes_by_device(monkeypatch: pytest.MonkeyPatch, device: Device, changed: Any, shapes: list[str]) -> None:
    """A GPU's subgroups may be of several sizes, and the strip shape needs one. SwiftShader needs 6 GB to compile it."""
    monkeypatch.setattr(gate_matrix, "choose_device", lambda *_: replace(device.info, **changed))
    pair = replace(ONE, features=ONE.features[1:], builds=((Shape.STRIP, Precision.EXACT), (Shape.STAGED, Precision.EXACT)))
    names = [row.name.split(", ")[-1] for row in _run(monkeypatch, pair).rows]
    assert names == [f"{shape} exact" for shape in shapes]


def test_another_number_of_dispatches_is_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    feature, dispatches = ONE.features[0]
    result = _run(monkeypatch, replace(ONE, features=((feature, dispatches + 2),)))
    assert not result.agrees
    assert result.rows[0].problems == (f"{feature} takes 9 dispatches a frame, not 11",)


def test_a_device_whose_speed_is_measured_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU the commands of the first batch have timestamps, and those of the second one have none."""

    def pace(_kind: DeviceKind, work: int, *, can_measure: bool) -> SubmissionBudget:
        return SubmissionBudget(DeviceKind.DISCRETE, work, can_measure=can_measure)

    monkeypatch.setattr(executor, "SubmissionBudget", pace)
    pair = next(pair for pair in PAIRS if pair.case == "ten_bit" and len(pair.features) == 1)
    assert _run(monkeypatch, replace(pair, builds=((Shape.STAGED, Precision.EXACT),))).agrees


def test_scores_of_libvmaf_are_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that both backends share shows against the stored scores, and there alone."""
    monkeypatch.setattr("vkssim.metrics.float_ms_ssim.GAMMA", (0.0448, 0.2856, 0.31, 0.2363, 0.1333))
    row = _run(monkeypatch, ONE).rows[0]
    wrong = {sides: [score.name for score in scores if score.mismatches] for sides, scores in row.comparisons.items()}
    assert wrong == {("vulkan", "cpu"): [], ("vulkan", "libvmaf"): ["float_ms_ssim"], ("cpu", "libvmaf"): ["float_ms_ssim"]}


def test_sums_in_float32_are_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    """They pass six places."""

    def in_single(partial_sums: Any, groups: Sequence[int], terms: int) -> Any:
        table = partial_sums[:, : sum(groups) * terms].reshape(len(partial_sums), -1, terms)
        starts = np.concatenate(([0], np.cumsum(groups)[:-1]))
        return np.add.reduceat(table, starts, axis=1, dtype=np.float32).astype(np.float64)

    monkeypatch.setattr("vkssim.metrics.float_ms_ssim.sum_groups", in_single)
    row = _run(monkeypatch, ONE).rows[0]
    assert not any(score.mismatches for scores in row.comparisons.values() for score in scores)
    assert any("the host makes float_ms_ssim_" in problem for problem in row.problems)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--places", "3"), "--feature says what is compared"),
        (("--large", "--feature", "float_ssim"), "--large is for the matrix"),
        (("--backend", "cpu"), "is the reference itself"),
    ],
)
def test_a_gate_that_cannot_run_ends_with_2(words: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_the_script_ends_with_the_code_of_the_gate() -> None:
    process = python_process(str(SCRIPTS / "cross_backend_diff.py"), "--device", "no such device")
    assert process.returncode == 2, process.stdout.decode()
    assert "no such device" in process.stderr.decode()


@pytest.mark.parametrize(
    ("feature", "places", "code"), [("float_ssim", "4", 0), ("float_ssim", "12", 1), ("float_psnr", "6", 0)]
)
def test_a_clip(capsys: pytest.CaptureFixture[str], feature: str, places: str, code: int) -> None:
    words = ["--feature", feature, "--places", places, "--frame_cnt", "2", "--json"]
    assert main.main(words, standalone_mode=False) == code
    found = json.loads(capsys.readouterr().out)
    assert (found["agree"], found["frames"]) == (code == 0, 2)
    assert list(found["scores"]) == [feature, *(f"{feature}_{term}" for term in "lcs" if feature == "float_ssim")]
