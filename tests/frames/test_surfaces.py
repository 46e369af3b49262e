"""Frames that stay on the GPU that decodes them: a stand-in has FFmpeg's own decoders and memory of the host in its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from vkssim import PictureOptions, RawDescription, ScoreReport, Selection, score_files
from vkssim.engine import worker
from vkssim.errors import DecoderBusyError, DeviceError, DeviceMemoryError, InputError
from vkssim.frames.decode.container import ContainerFile
from vkssim.frames.decode.hardware import HardwareDecoder
from vkssim.frames.pixels import DecodedFrame, pixel_format, plane_rows
from vkssim.host import executor, waiting
from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.report import render
from vkssim.types import ExternalPlane, FrameFormat, Rows
from vkssim.utils.av_frames import plane_samples

from ..engine.in_ranges import small_ranges
from ..support.clips import raw_bytes, write
from ..support.devices import host_cuda
from ..support.devices.host_cuda import Gpu, HostCopies, HostTimeline, Surface
from ..support.pictures import clip
from . import test_hardware
from .encoding import colour_frame, encode_colours
from .test_hardware import Changed

stand_in = test_hardware.stand_in

pytestmark = pytest.mark.usefixtures("shared_device")

FRAMES, GOP = 30, 10
WIDTH, HEIGHT = 66, 50
FEATURES = ["float_ssim=scale=1:window=uniform8", "float_psnr"]  # they compile soonest
ON_DEVICE = "device", "device"
COPIES_OF_A_FRAME = {"y": 1, "all": 2}
"""The copies of a frame by the planes that are scored: one of its luma, and one of its chroma."""
TWO_SECONDS = 2_000_000_000  # in nanoseconds


@pytest.fixture
def copies() -> HostCopies:
    return HostCopies()


@pytest.fixture
def surfaces(monkeypatch: pytest.MonkeyPatch, stand_in: list[Changed], copies: HostCopies) -> Callable[[int], None]:
    """Make FFmpeg's own decoders give surfaces; the function that is returned has them fail at a frame."""
    stand_in.append(lambda _before, frame: Surface(frame))

    def fail_at(number: int) -> None:
        def failing(before: int, frame: Any) -> Any:
            if before == number:
                raise av.ExternalError(1, "the surface is lost")
            return frame

        stand_in.insert(0, failing)

    def chosen(decode: str, _backend: str, _device: object) -> HardwareDecoder | None:
        return None if decode == "cpu" else HardwareDecoder(decode, Gpu(copies))

    monkeypatch.setattr(worker, "hardware_decoder", chosen)
    monkeypatch.setattr(worker, "sessions", lambda _decoder: 1)
    host_cuda.stand_in(monkeypatch)
    return fail_at


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clips")
    for which, crf in ("reference", "10"), ("distorted", "22"):  # a pair that scores low would be searched for a shift
        encode_colours(folder / f"eight-{which}.mp4", (WIDTH, HEIGHT), FRAMES, crf=crf, g=str(GOP))
        encode_colours(folder / f"ten-{which}.mp4", (WIDTH, HEIGHT), FRAMES, "yuv420p10le", crf=crf, g=str(GOP))
        encode_colours(folder / f"odd-{which}.mp4", (65, 49), 6, codec="libvpx-vp9", crf=crf, deadline="realtime")
    write(folder / "reference.yuv", raw_bytes(clip(FRAMES, HEIGHT, WIDTH)))
    return folder


def _score(folder: Path, name: str, decode: str, **options: Any) -> ScoreReport:
    clips = [folder / f"{name}-{which}.mp4" for which in ("reference", "distorted")]
    return score_files(*clips, **{"features": FEATURES, **options}, decode=decode)


def _rendered(report: ScoreReport) -> Any:
    """Return a report as JSON without the names of the decoders."""
    data = json.loads(render(report, "json", "max"))
    for name in ("reference", "distorted"):
        data["scoring"][name].pop("decoder")
    data.pop("notes", None)
    return data


@pytest.mark.parametrize("planes", COPIES_OF_A_FRAME)
@pytest.mark.parametrize(("name", "frames"), [("eight", FRAMES), ("ten", FRAMES), ("odd", 6)])
def test_scores_are_those_of_the_cpu(
    folder: Path, surfaces: object, copies: HostCopies, name: str, frames: int, planes: str
) -> None:
    """No frame visits the host once the clips are open."""
    on_cpu = _score(folder, name, "cpu", planes=planes)
    assert not copies.made
    on_device = _score(folder, name, "cuda", planes=planes)
    assert copies.made.count(ON_DEVICE) == 2 * frames * COPIES_OF_A_FRAME[planes]
    kinds = 1 if name == "odd" else 2  # H.264 states the quality in its parameter sets, and VP9 has none
    assert copies.made.count(("device", "host")) == 2 * kinds, "both planes of the first frame of each kind, for the comparison"
    assert ("host", "device") not in copies.made
    assert _rendered(on_device) == _rendered(on_cpu)


def test_kernels_wait_for_the_copies(folder: Path, surfaces: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frames of a batch are written, and the timeline says so, after the batch was submitted.

    One thread does all of it: if a second one signals a timeline while the first is in vkWaitForFences, the validation layer
    may wait for itself for ten seconds and report it (pull request 8519 of KhronosGroup/Vulkan-ValidationLayers).
    """
    on_cpu = _score(folder, "eight", "cpu", planes="all")  # first, so that the driver has compiled the kernels
    held: list[Callable[[], None]] = []
    copy, signal, wait = HostCopies.copy, HostTimeline.signal, waiting.wait_for_fences

    def copy_later(self: HostCopies, *words: Any) -> None:
        if words[1].on_device:
            kept = np.empty(words[3] * words[0].pitch, np.uint8)
            rows = type(words[0])(kept.ctypes.data, words[0].pitch, True)
            copy(self, words[0], rows, *words[2:])  # the surface is given back
            held.append(lambda: (copy(self, rows, *words[1:]), kept)[0])
        else:
            copy(self, *words)

    def write_then_wait(device: Device, fences: Sequence[Any], *words: Any) -> None:
        if held:
            with pytest.raises(vk.module.VkTimeout):
                vk.vkWaitForFences(device.handle, len(fences), fences, vk.VK_TRUE, TWO_SECONDS)
        while held:
            held.pop(0)()
        wait(device, fences, *words)

    monkeypatch.setattr(HostCopies, "copy", copy_later)
    monkeypatch.setattr(HostTimeline, "signal", lambda self, number: held.append(lambda: signal(self, number)))
    monkeypatch.setattr(executor, "wait_for_fences", write_then_wait)
    assert _rendered(_score(folder, "eight", "cuda", planes="all")) == _rendered(on_cpu)


@pytest.mark.parametrize(("name", "planes"), [("eight", "y"), ("eight", "all"), ("ten", "all")])
@pytest.mark.parametrize("at", [1, GOP + 1])
def test_a_decoder_that_fails_on_the_way(
    folder: Path, surfaces: Callable[[int], None], copies: HostCopies, name: str, at: int, planes: str
) -> None:
    """The CPU's frames go on in the same memory of the device."""
    surfaces(at)
    report = _score(folder, name, "cuda", planes=planes)
    assert copies.made.count(ON_DEVICE) == 2 * at * COPIES_OF_A_FRAME[planes]
    assert copies.made.count(("host", "device")) == 2 * (FRAMES - at) * COPIES_OF_A_FRAME[planes]
    assert sum("decoded on the CPU from here" in warning for warning in report.warnings) == 2
    expected = _score(folder, name, "cpu", planes=planes)
    assert [frame.metrics for frame in report.frames] == [frame.metrics for frame in expected.frames]


@pytest.mark.parametrize(
    "options",
    [
        {"pictures": PictureOptions(crop="60x40+2+2")},
        {"pictures": PictureOptions(crop="60x40+2+2"), "planes": "all"},
        {"backend": "cpu", "planes": "all"},
    ],
    ids=["crop", "crop of all planes", "cpu"],
)
def test_what_is_scored_from_the_host(folder: Path, surfaces: object, copies: HostCopies, options: dict[str, Any]) -> None:
    """Preprocessing and the CPU's backend get the same frames in the host's memory."""
    report = _score(folder, "eight", "cuda", **options)
    assert ON_DEVICE not in copies.made
    assert copies.made
    assert _rendered(report) == _rendered(_score(folder, "eight", "cpu", **options))


def test_a_clip_beside_a_raw_file(folder: Path, surfaces: object, copies: HostCopies) -> None:
    clips = folder / "reference.yuv", folder / "eight-distorted.mp4"
    raw = RawDescription(WIDTH, HEIGHT, "420", 8)
    one, other = (score_files(*clips, raw=raw, features=FEATURES, decode=decode) for decode in ("cuda", "cpu"))
    assert ON_DEVICE not in copies.made
    assert [frame.metrics for frame in one.frames] == [frame.metrics for frame in other.frames]


@pytest.mark.parametrize("planes", COPIES_OF_A_FRAME)
def test_ranges(folder: Path, surfaces: object, copies: HostCopies, monkeypatch: pytest.MonkeyPatch, planes: str) -> None:
    """Several engines decode ranges side by side; the seams are compared on the host."""
    monkeypatch.setattr(worker, "sessions", lambda _decoder: 4)
    small_ranges(monkeypatch, 4)
    on_device = _score(folder, "eight", "cuda", device="llvmpipe", planes=planes)
    assert copies.made.count(ON_DEVICE) >= 2 * FRAMES * COPIES_OF_A_FRAME[planes]
    assert _rendered(on_device) == _rendered(_score(folder, "eight", "cpu", device="llvmpipe", planes=planes))


def test_a_copy_that_fails_is_an_error(folder: Path, surfaces: object, monkeypatch: pytest.MonkeyPatch) -> None:
    read = HostCopies.copy

    def fail(self: HostCopies, source: Any, target: Any, *size: int) -> None:
        if target.on_device:
            raise DeviceError("cuMemcpy2DAsync failed: CUDA_ERROR_ILLEGAL_ADDRESS")
        read(self, source, target, *size)

    monkeypatch.setattr(HostCopies, "copy", fail)
    with pytest.raises(DeviceError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        _score(folder, "eight", "cuda")


def test_a_copy_that_fails_while_a_clip_is_opened(folder: Path, surfaces: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preferred decoder leaves the clip to the CPU; if it is required, that is an error of the clip."""

    def fail(*_words: object) -> None:
        raise DeviceMemoryError("cuMemcpy2D failed: CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(HostCopies, "copy", fail)
    path, gpu = str(folder / "eight-reference.mp4"), Gpu(HostCopies())
    with ContainerFile(path, hardware=HardwareDecoder("cuda", gpu, required=False)) as source:
        assert not source.external
        assert "CUDA_ERROR_OUT_OF_MEMORY" in (source.clip_facts().decoder_reason or "")
        assert source.read([0], [source.info.new_planes(1)])
    with pytest.raises(InputError, match=r"cuda decoder cannot decode it: .*CUDA_ERROR_OUT_OF_MEMORY"):
        ContainerFile(path, hardware=HardwareDecoder("cuda", gpu))
    with pytest.raises(DecoderBusyError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        ContainerFile(path, hardware=HardwareDecoder("cuda", gpu, shared=True))


@pytest.mark.parametrize(
    "options",
    [
        {"selection": Selection(subsample=3)},
        {"selection": Selection(start=7, end=20)},
        {"selection": Selection(offset=2, subsample=4)},
        {"sync": "pts"},
    ],
    ids=["every", "start", "offset", "times"],
)
def test_selections(folder: Path, surfaces: object, copies: HostCopies, options: dict[str, Any]) -> None:
    report = _score(folder, "ten", "cuda", **options)
    left_over = copies.made.count(ON_DEVICE) - 2 * len(report.frames)
    assert left_over in (0, 1), "frames that are passed over are not copied; the last one may lack a partner"
    assert _rendered(report) == _rendered(_score(folder, "ten", "cpu", **options))


def _place(plane: np.ndarray, row_bytes: int, shift: int = 0) -> ExternalPlane:
    return ExternalPlane(Rows(plane.ctypes.data, plane.strides[0]), len(plane), row_bytes, shift)


@pytest.mark.parametrize("bits", [8, 10, 12, 16])
def test_formats_of_surfaces(bits: int) -> None:
    plain = FrameFormat.of_bits(64, 48, bits)
    surface = plain.in_surfaces()
    assert surface.external
    assert not surface.may_be_exceeded
    assert not surface.needs_ingest
    assert (surface.factor, surface.peak) == (plain.factor, plain.peak)
    assert surface.stored_factor * (2**bits - 1 << surface.shift) == plain.factor * plain.peak


@pytest.mark.parametrize(("name", "shift"), [("yuv420p", 0), ("yuv420p10le", 6)])
def test_a_frame_of_the_host_is_written_as_surfaces_are(copies: HostCopies, name: str, shift: int) -> None:
    """Chroma lies in one plane, and samples of ten bits in the upper bits. The width and the height are odd."""
    width, height, dtype = 63, 49, np.dtype(np.uint16 if shift else np.uint8)
    picture = np.random.default_rng(1).integers(0, 256, (height, width), np.uint8)
    frame = colour_frame(picture, np.random.default_rng(2), name)
    y, cb, cr = (plane_samples(plane_rows(frame, number), dtype).copy() for number in range(3))
    luma, chroma = np.zeros((height, 64), dtype), np.zeros((25, 64), dtype)
    target = _place(luma, width * dtype.itemsize, shift), _place(chroma, 64 * dtype.itemsize, shift)
    DecodedFrame(frame, pixel_format("", name), copies).write(target)
    np.testing.assert_array_equal(luma[:, :width], y[:height, :width] << shift)
    np.testing.assert_array_equal(chroma[:, 0::2], cb[:25, :32] << shift)
    np.testing.assert_array_equal(chroma[:, 1::2], cr[:25, :32] << shift)
    assert not luma[:, width:].any()
    assert copies.made == [("host", "device")] * 2
