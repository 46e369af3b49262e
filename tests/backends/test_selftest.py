"""The self-test: right drivers pass once, wrong ones never, and the note of it cannot be talked into anything."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from vulkan import _vulkan

import vkssim
from vkssim import shaders
from vkssim.backends import selftest
from vkssim.backends.known_answers import CASES, Case
from vkssim.backends.sessions import Session, close_sessions
from vkssim.backends.vulkan import frame_plan, with_largest_samples
from vkssim.errors import WrongNumbersError, exit_code
from vkssim.host.device import Device
from vkssim.host.devices import DEVICE_VARIABLE
from vkssim.host.plan import Plan
from vkssim.loss.plan import loss_plan
from vkssim.loss.spec import MS_SSIM_WEIGHTS, Loss, Negative, Pyramid, constants
from vkssim.metrics import make_scorer
from vkssim.metrics.dispatches import KernelShape
from vkssim.metrics.float_ssim import SsimMapScorer
from vkssim.metrics.plane_metrics import FrameMetrics, PlaneMetrics, plane_formats
from vkssim.shaders import load_module
from vkssim.shaders.interface import Precision, SampleCode, Shape
from vkssim.types import FrameFormat

from ..support.devices.faults import Layer, layer, wrong_readback
from ..support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

FRAMES = clip(2)
FEATURE = "float_ssim=scale=1:window=uniform8"
GAUSSIAN = "float_ssim=scale=1:precision=fast"
BUILDS = [precision.value for precision in Precision]
FORMATS = [
    *(FrameFormat.of_bits(352, 352, bits) for bits in (8, 10)),
    *(FrameFormat.of_array(352, 352, dtype, data_range) for dtype, data_range in (("f4", 1.0), ("u1", 200.0), ("u2", 1000.0))),
]


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """As if nothing had been tried; gives the names of the cases that are."""
    names: list[str] = []
    try_case = selftest._try

    def note(case: Case, *arguments: Any) -> None:
        names.append(case.name)
        try_case(case, *arguments)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(selftest, "_passed", set())
    monkeypatch.setattr(selftest, "_try", note)
    return names


def _open() -> None:
    close_sessions()
    with vkssim.Scorer(32, 24, bits=8, features=[FEATURE]):
        pass


def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another process would find it."""
    monkeypatch.setattr(selftest, "_passed", set())


def _note(folder: Path) -> Path:
    (found,) = (folder / "cache" / "vkssim").glob("*.tried")
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_known_is_what_numpy_gives(case: Case) -> None:
    np.testing.assert_allclose(case.numbers(twin=True), case.right, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", Shape)
def test_every_kernel_has_a_case(shape: Shape) -> None:
    """Also for every type of samples that it reads, and with every other constant: each is compiled for itself."""
    built = {file.name.removesuffix(".spv") for file in (resources.files(shaders) / "spv").iterdir()}
    kernels = KernelShape(shape, 64)
    tried = {kernel for case in CASES for kernel in selftest.kernels_of(case.plan(kernels))}
    assert {module for module in built if shape.value in module.split(".")} == {module for module, _ in tried}
    missing = {kernel for plan in _plans(kernels) for kernel in selftest.kernels_of(plan)} - tried
    assert not missing


def _plans(kernels: KernelShape) -> Iterator[Plan]:
    """Every kind of plan that scores, maps and losses have, over every type of samples."""
    for frame in FORMATS:
        features = [f"{name}=precision={build}" for name in ("float_ssim=scale=1", "float_ssim=scale=2") for build in BUILDS]
        features = [feature.replace("=precision", ":precision") for feature in features]
        boxes = [f"float_ssim=scale={scale}:window=uniform8" for scale in (1, 2)]
        ms_ssim = [f"float_ms_ssim=precision={build}" for build in BUILDS]
        for feature in (*features, *boxes, *(f"{box}:estimate=true" for box in boxes), *ms_ssim, "float_psnr"):
            for planes in ("y", "all"):
                formats = (
                    [frame] if planes == "y" or frame.code is SampleCode.FLOAT32 else plane_formats(frame.in_surfaces(), "all")
                )
                metrics = FrameMetrics(feature, formats).planes
                plan = frame_plan(metrics, kernels)[0]
                yield plan if kernels.shape is Shape.STRIP else with_largest_samples(plan, metrics, kernels)[0]
        for options in ({"scale": "1"}, {"scale": "2"}):
            for more in ({"precision": "exact"}, {"precision": "fast"}, {"window": "uniform8"}):
                scorer = SsimMapScorer(frame, {**options, **more})
                yield frame_plan([PlaneMetrics("y", frame, (scorer,))], kernels)[0]
        if frame.code is not SampleCode.FLOAT32 and frame.peak in (255.0, 1023.0):
            scaled = "cambi=enc_width=230:enc_height=229", "speed_chroma=speed_prescale=2"
            for feature in ("vif", "adm", "adm=adm_skip_aim=false", "motion", "cambi", "cambi=max_log_contrast=5", *scaled):
                yield frame_plan([PlaneMetrics("y", frame, (make_scorer(feature, frame),))], kernels)[0]
    for weights, pyramid, gradient in product([(1.0,), MS_SSIM_WEIGHTS], Pyramid, [False, True]):
        loss = Loss(200, 200, **constants(255.0), weights=weights, pyramid=pyramid, negative=Negative.CLAMP)
        yield loss_plan(loss, kernels, gradient=gradient)


def test_another_type_of_samples_is_tried_for_itself(tried: list[str]) -> None:
    """A driver that reads 8 bits rightly may read 16 bits wrongly."""
    _open()
    with vkssim.Scorer(32, 24, bits=10, features=[FEATURE]):
        pass
    assert tried[:2] == [FEATURE, f"{FEATURE} of 10 bits"]


def test_a_right_driver_is_tried_once(tried: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _open()
    assert tried == [FEATURE], "no kernel that was not asked for"
    assert _note(tmp_path).stat().st_mode & 0o777 == 0o600
    _open()
    _forget(monkeypatch)
    _open()
    assert tried == [FEATURE]


def _fewer_groups(made: Layer) -> None:
    """The last column of workgroups is forgotten."""
    made.before["vkCmdDispatch"] = lambda commands, x, y, z: (commands, max(1, x - 1), max(1, y - 1), z)


def _wrong_width(made: Layer) -> None:
    """A push constant arrives one too small."""

    def push(commands: Any, layout: Any, stages: int, offset: int, size: int, data: Any) -> tuple[Any, ...]:
        words = bytearray(_vulkan.ffi.buffer(data, size))
        struct.pack_into("<I", words, 0, struct.unpack_from("<I", words)[0] - 1)
        held.append(bytes(words))
        return commands, layout, stages, offset, size, _vulkan.ffi.from_buffer(held[-1])

    held: list[bytes] = []
    made.before["vkCmdPushConstants"] = push


@pytest.mark.usefixtures("own_devices")  # of whose objects none is left
@pytest.mark.parametrize("spoil", [wrong_readback, _wrong_width, _fewer_groups])
def test_a_wrong_driver_is_refused(tried: list[str], tmp_path: Path, spoil: Any) -> None:
    with layer() as made:
        spoil(made)
        with np.errstate(all="ignore"), pytest.raises(WrongNumbersError) as caught:
            vkssim.Scorer(176, 176, bits=8, features=[GAUSSIAN])
    assert not made.left
    for words in (
        os.environ[DEVICE_VARIABLE],
        "computes wrong numbers: " + GAUSSIAN,
        "it gives",
        "choose another device, or `backend=cpu`",
    ):
        assert words in str(caught.value)
    assert exit_code(caught.value) == 3
    assert not list((tmp_path / "cache" / "vkssim").glob("*.tried"))


def test_losses_are_tried_too(tried: list[str]) -> None:
    close_sessions()
    with layer() as made:
        wrong_readback(made)
        with np.errstate(all="ignore"), pytest.raises(WrongNumbersError, match="wrong numbers: SSIM of two known pictures"):
            vkssim.ssim_and_grad(FRAMES[0], FRAMES[1])
    vkssim.ssim_and_grad(FRAMES[0], FRAMES[1])
    assert tried == ["SSIM", "SSIM", "SSIM and its gradient"]


def _no_file(note: Path) -> None:
    note.unlink()
    note.mkdir()


@pytest.mark.parametrize(
    "tamper",
    [
        lambda note: note.write_text(note.read_text()[::-1]),
        lambda note: note.chmod(0o666),
        lambda note: note.write_bytes(os.urandom(1000)),
        lambda note: note.write_text(note.read_text() + "\n" * (1 << 20)),
        _no_file,
    ],
    ids=["changed", "from others", "binary", "too large", "no file"],
)
def test_a_note_that_was_tampered_with_is_not_believed(
    tried: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tamper: Any
) -> None:
    _open()
    tamper(_note(tmp_path))
    _forget(monkeypatch)
    _open()
    assert tried == [FEATURE] * 2


def test_another_driver_or_another_build_is_tried_again(
    tried: list[str], device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, plan = device.info, CASES[0].plan(KernelShape.for_device(device.info))
    session = Session(None)
    others = [replace(info, driver_version=info.driver_version + 1), replace(info, uuid=UUID(int=1))]
    for number, changed in enumerate([info, *others, replace(info, api_version=(1, 9, 9))], 1):
        selftest.check(changed, plan, session)
        assert len(tried) == number
    monkeypatch.setattr(selftest, "load_module", lambda name: load_module(name) + b"\0\0\0\0")
    selftest.check(info, plan, session)
    session.close()
    assert len(tried) == 5


def test_without_a_place_for_the_note_it_is_tried_every_time(
    tried: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    for _ in range(2):
        _forget(monkeypatch)
        _open()
    assert tried == [FEATURE] * 2
