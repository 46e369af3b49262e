"""The automatic choice of a decoder: the GPU that scores is preferred, if its driver says that it decodes the clip."""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import av
import numpy as np
import pytest

from vkssim import score_files
from vkssim.backends import cuda, decoding
from vkssim.backends.cuda import Capabilities
from vkssim.backends.decoding import NvidiaDriver, hardware_decoder, sessions
from vkssim.engine import worker
from vkssim.errors import (
    DeviceError,
    DeviceMemoryError,
    InputError,
    NoDeviceError,
    NoLoaderError,
    UnsuitableDeviceError,
)
from vkssim.frames.decode import hardware
from vkssim.frames.decode.clip_decoder import ClipDecoder
from vkssim.frames.decode.container import ContainerFile
from vkssim.frames.decode.hardware import CodedVideo, HardwareDecoder
from vkssim.frames.options import RawDescription
from vkssim.host.device import Device
from vkssim.report import render

from ..engine.in_ranges import small_ranges
from ..support.commands import vkssim
from ..support.pictures import clip
from . import test_hardware
from .test_hardware import CUDA, FEATURE, FRAMES, Changed, _planes, _write

stand_in, folder = test_hardware.stand_in, test_hardware.folder

Answers = dict[tuple[str, str, int], Capabilities]
"""The driver's answers on a codec, a chroma format and a depth."""


def _good(engines: int = 1, **limits: int) -> Capabilities:
    """The answer of a driver that decodes frames up to 4096x4096."""
    limits = {"most_width": 4096, "most_height": 4096, "most_macroblocks": 65536, **limits}
    return Capabilities(is_supported=True, engines=engines, **limits)


_GOOD = _good()
PREFERRED = HardwareDecoder("cuda", required=False)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, device: Device, stand_in: list[Changed]) -> Answers:
    """Make the device that scores a GPU of NVIDIA's, whose driver gives these answers; it decodes nothing else."""
    answers: Answers = {("h264", "420", 8): _GOOD, ("av1", "420", 8): _GOOD, ("vp9", "420", 8): _GOOD}
    monkeypatch.setattr(decoding, "find_spec", lambda _name: True)
    monkeypatch.setattr(decoding, "_nvidia", lambda _device: device.info)
    monkeypatch.setattr(decoding, "cuda_of", lambda _gpu: SimpleNamespace(ordinal=0))
    monkeypatch.setattr(decoding, "ask", lambda _context, *codec: answers.get(codec, Capabilities()))
    return answers


@pytest.mark.parametrize(("error", "ends"), [(NoDeviceError, False), (NoLoaderError, False), (DeviceMemoryError, True)])
def test_a_failure_while_devices_are_listed(error: type[Exception], ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no device, the backend says so. Another failure ends the run, or the CPU would decode in silence."""

    def fail(_instance: object) -> None:
        raise error("it fails")

    monkeypatch.setattr(decoding, "find_spec", lambda _name: object())
    monkeypatch.setattr(decoding, "list_devices", fail)
    with pytest.raises(error) if ends else nullcontext():
        assert hardware_decoder("auto", "vulkan", None) is None


def test_without_a_gpu_of_nvidia_it_is_the_cpu(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of CUDA is imported where the device that scores is another one."""
    bindings = tmp_path / "cuda" / "bindings"
    bindings.mkdir(parents=True)
    (bindings / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    assert hardware_decoder("auto", "vulkan", str(device.info.uuid)) is None
    assert hardware_decoder("auto", "cpu", None) is None
    assert not [name for name in set(sys.modules) - before if name.partition(".")[0] == "cuda"]


def test_without_cuda_bindings_it_is_the_cpu(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_nvidia", lambda _device: device.info)
    for present in ((), ("cuda",)):
        monkeypatch.setattr(decoding, "find_spec", lambda name, present=present: True if name in present else None)
        assert hardware_decoder("auto", "vulkan", None) is None


def test_where_ffmpeg_lacks_cuda_it_is_the_cpu(folder: Path, stand_in: list[Changed], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "offered", lambda: frozenset(["vaapi"]))
    (expected, on_cpu), (found, preferred) = (_planes(folder / "ref.mp4", decoder) for decoder in (None, PREFERRED))
    np.testing.assert_array_equal(found, expected)
    assert (preferred.clip_facts(), preferred.info) == (on_cpu.clip_facts(), on_cpu.info)


def _json(clips: tuple[Path, Path], device: Device, decode: str) -> str:
    return render(score_files(*clips, features=FEATURE, device=str(device.info.uuid), decode=decode), "json", "max")


REASON = "the GPU has no decoder for H.264 4:2:2 of 8 bits"


def test_the_cpu_decodes_what_the_gpu_cannot(folder: Path, driver: Answers, device: Device) -> None:
    """The report says so and why, and is otherwise equal to the CPU's; a required decoder is an error."""
    clips = folder / "wide.mp4", folder / "dis.mp4"
    preferred, by_cpu = (json.loads(_json(clips, device, decode)) for decode in ("auto", "cpu"))
    reference, distorted = preferred["scoring"]["reference"], preferred["scoring"]["distorted"]
    assert (reference["decoder"], distorted["decoder"]) == ("h264", "h264 (cuda)")
    assert reference.pop("decoder_reason") == f"cuda: {REASON}"
    assert preferred.pop("notes") == [
        f"{clips[0]}: decoded on the CPU, because the cuda decoder cannot decode it: {REASON}",
        f"{clips[1]}: decoded by cuda, which notices less damage than the CPU's decoder",
    ]
    distorted["decoder"] = "h264"
    del by_cpu["notes"]
    assert preferred == by_cpu
    with pytest.raises(InputError, match=f"wide.mp4: the cuda decoder cannot decode it: {REASON}. `decode=cpu`"):
        _json(clips, device, "cuda")


def test_the_log_says_who_decodes_a_clip_and_why(
    folder: Path, stand_in: list[Changed], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """And nothing is printed unless a program asks for the log."""
    preferred = HardwareDecoder("cuda", required=False)
    for name in ("ref.mp4", "wide.mp4"):
        _planes(folder / name, preferred)
    assert capfd.readouterr() == ("", "")
    with caplog.at_level("INFO", "vkssim"):
        for name, decoder in (("ref.mp4", preferred), ("wide.mp4", preferred), ("ref.mp4", None)):
            _planes(folder / name, decoder)
    why = "its frames are yuv422p; it only decodes 4:2:0 of 8 and 10 bits"
    assert caplog.messages == [
        f"{folder / 'ref.mp4'}: decoded by cuda",
        f"{folder / 'wide.mp4'}: decoded by the CPU, not by cuda: {why}",
        f"{folder / 'ref.mp4'}: decoded by the CPU",
    ]


def test_a_driver_or_a_decoder_that_fails_leaves_the_clip_to_the_cpu(
    folder: Path, stand_in: list[Changed], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = _planes(folder / "ref.mp4", None)
    stand_in.append(test_hardware._other_samples)
    found, source = _planes(folder / "ref.mp4", PREFERRED)
    np.testing.assert_array_equal(found, expected)
    assert source.clip_facts().decoder_reason == "cuda: its first frame has other samples"

    def refuse(_self: HardwareDecoder) -> None:
        raise av.error.MemoryError(12, "Cannot allocate memory")

    monkeypatch.setattr(HardwareDecoder, "request", refuse)
    found, source = _planes(folder / "ref.mp4", PREFERRED)
    np.testing.assert_array_equal(found, expected)
    assert source.clip_facts().decoder_reason == "cuda: its driver or its device refuses (Cannot allocate memory)"


def test_pictures_are_passed_over_and_inexact_codecs_refused(tmp_path: Path, stand_in: list[Changed]) -> None:
    for name, codec, pixels in (("a.png", "png", "rgb24"), ("a.avi", "rawvideo", "yuv420p"), ("a.mp4", "mpeg4", "yuv420p")):
        _write(tmp_path / name, codec, clip(2, 48, 64), pixels)
    reasons = {name: _planes(tmp_path / name, PREFERRED)[1].clip_facts().decoder_reason for name in ("a.png", "a.avi", "a.mp4")}
    exact = "hardware gives the same samples only for H.264, HEVC, VP8, VP9, AV1"
    assert reasons == {"a.png": None, "a.avi": None, "a.mp4": f"cuda: it is mpeg4, and {exact}"}
    with pytest.raises(InputError, match=f"it is png, and {exact}"):
        _planes(tmp_path / "a.png", CUDA)


@pytest.mark.parametrize(
    ("video", "reason"),
    [
        (CodedVideo("h264", "420", 8, 1920, 1088), None),
        (CodedVideo("h264", "420", 10, 64, 48), "the GPU has no decoder for H.264 of 10 bits"),
        (CodedVideo("h264", "422", 8, 64, 48), REASON),
        (CodedVideo("av1", "400", 8, 64, 48), "the GPU has no decoder for AV1 grey of 8 bits"),
        (CodedVideo("prores", "422", 10, 64, 48), "the GPU has no decoder for prores 4:2:2"),
        (CodedVideo("h264", "420", 8, 480, 20000), "480x20000 is larger than its 4096x4096"),
        (CodedVideo("vp9", "420", 8, 512, 512), "512x512 has more macroblocks than its 1000"),
        (CodedVideo("vp9", "420", 8, 256, 64), "256x64 is smaller than its 128x128"),
    ],
)
def test_the_driver_is_asked_before(driver: Answers, video: CodedVideo, reason: str | None) -> None:
    driver["vp9", "420", 8] = _good(most_macroblocks=1000, least_width=128, least_height=128)
    decoder = hardware_decoder("auto", "vulkan", None)
    assert decoder is not None
    assert isinstance(decoder.gpu, NvidiaDriver)
    assert decoder.gpu.device == "0"
    assert decoder.gpu.refuses(video) == reason


def test_a_driver_that_says_nothing_refuses_nothing(driver: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    """FFmpeg asks the driver as well, when the decoder is opened."""
    decoder = hardware_decoder("auto", "vulkan", None)
    assert decoder is not None
    assert isinstance(decoder.gpu, NvidiaDriver)

    def fail(*_words: object) -> None:
        raise DeviceError("cuCtxPushCurrent failed: CUDA_ERROR_INVALID_CONTEXT")

    for ask in (lambda *_words: None), fail:
        monkeypatch.setattr(decoding, "ask", ask)
        assert decoder.gpu.refuses(CodedVideo("h264", "420", 10, 64, 48)) is None
        assert sessions(decoder) == 1

    def not_known(_gpu: object) -> None:
        raise UnsuitableDeviceError("no such device")

    monkeypatch.setattr(decoding, "cuda_of", not_known)
    unknown = NvidiaDriver(decoding._nvidia(None).uuid)  # type: ignore[union-attr]
    assert unknown.refuses(CodedVideo("h264", "420", 8, 64, 48)) == "CUDA cannot open the GPU that scores (no such device)"


def test_the_structure_is_that_of_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offsets are those that a C compiler gives CUVIDDECODECAPS."""
    offsets = {name: getattr(Capabilities, name).offset for name, *_ in Capabilities._fields_}
    assert ctypes.sizeof(Capabilities) == 88
    assert [offsets[name] for name in ("is_supported", "engines", "output_formats", "most_width")] == [24, 25, 26, 28]
    assert [offsets[name] for name in ("most_macroblocks", "least_width", "least_height", "has_histogram")] == [36, 40, 42, 44]

    def answer_all(place: Any) -> int:
        query = place._obj
        assert (query.codec, query.chroma, query.bits_beyond_8) == (8, 1, 2)
        query.is_supported, query.engines = 1, 7
        query.most_width, query.most_height, query.most_macroblocks = 8192, 8192, 262144
        query.least_width, query.least_height = 144, 142
        return 0

    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace(cuvidGetDecoderCaps=answer_all))
    gpu: Any = Mock(current=nullcontext)  # the answer is remembered for each GPU
    answer = cuda.ask(gpu, "hevc", "420", 10)
    assert answer is not None
    assert (answer.is_supported, answer.engines, answer.most_macroblocks) == (1, 7, 262144)


def test_av1_is_decoded_by_a_codec_that_has_hardware(
    tmp_path: Path, stand_in: list[Changed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FFmpeg's own decoder of AV1 needs hardware, so that libdav1d, opened a second time, stands in for it."""
    assert CUDA.own_codec(av.Codec("libdav1d", "r")) == "av1"
    assert CUDA.own_codec(av.Codec("hevc", "r")) is None
    monkeypatch.setattr(HardwareDecoder, "own_codec", lambda _self, _codec: "libdav1d")
    path = tmp_path / "a.mp4"
    _write(path, "libsvtav1", clip(FRAMES, 48, 64))
    expected, _ = _planes(path, None)
    found, source = _planes(path, CUDA)
    np.testing.assert_array_equal(found, expected)
    assert len(found) == FRAMES
    assert source.clip_facts().decoder == "av1 (cuda)"
    with ContainerFile(str(path), hardware=CUDA) as begun:
        marks = begun.seek_index()
        assert marks is not None
        planes = begun.info.new_planes(3)
        assert begun.read([5], [planes])
        begun.seek(2, marks.position(2))
        assert begun.read([2], [planes])
    np.testing.assert_array_equal(np.concatenate([plane.ravel() for plane in planes]), expected[2])


def _rounded_up(_before: int, frame: Any) -> Any:
    """Return a frame as VP9's surfaces are: of even sizes."""
    larger = av.VideoFrame(frame.width + frame.width % 2, frame.height + frame.height % 2, frame.format.name)
    planes: tuple[Any, ...] = larger.planes
    for plane, other in zip(planes, frame.planes, strict=True):
        rows, samples = (np.frombuffer(memory, np.uint8).reshape(-1, memory.line_size) for memory in (plane, other))
        rows[:] = 77
        width = min(rows.shape[1], samples.shape[1], frame.width + frame.width % 2)
        rows[: samples.shape[0], :width] = samples[:, :width]
    larger.pts, larger.time_base = frame.pts, frame.time_base
    larger.color_range, larger.colorspace, larger.color_trc = frame.color_range, frame.colorspace, frame.color_trc
    return larger


def test_surfaces_of_odd_sizes_are_cropped(tmp_path: Path, stand_in: list[Changed]) -> None:
    path = tmp_path / "odd.webm"
    _write(path, "libvpx-vp9", clip(5, 47, 63))
    expected, _ = _planes(path, None)
    stand_in.append(_rounded_up)
    found, source = _planes(path, CUDA)
    np.testing.assert_array_equal(found, expected)
    assert source.clip_facts().decoder == "vp9 (cuda)"


@pytest.fixture
def limit(driver: Answers, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the GPU decode only that many clips at a time, for a pair that three workers decode."""
    most, opened, lock = [100], set[int](), threading.Lock()
    driver["h264", "420", 8] = _good(5)
    start, take_over, close = ClipDecoder.start, ClipDecoder.take_over, ClipDecoder.close

    def start_one(self: ClipDecoder, **words: Any) -> None:
        with lock:
            opened.discard(id(self))
            if words.get("hardware") is not None:
                if len(opened) + len(words["hardware"].idle._idle) >= most[0]:
                    raise av.error.MemoryError(12, "Cannot allocate memory")
                opened.add(id(self))
        start(self, **words)

    def take_one_over(self: ClipDecoder, *words: Any) -> bool:
        with lock:
            if is_taken := take_over(self, *words):
                opened.add(id(self))
        return is_taken

    def close_one(self: ClipDecoder) -> None:
        close(self)
        with lock:
            opened.discard(id(self))

    monkeypatch.setattr(ClipDecoder, "start", start_one)
    monkeypatch.setattr(ClipDecoder, "take_over", take_one_over)
    monkeypatch.setattr(ClipDecoder, "close", close_one)
    small_ranges(monkeypatch, 4)
    return most


@pytest.mark.parametrize(("decode", "most"), [("auto", 2), ("cuda", 3)])
def test_fewer_sessions_score_the_same(folder: Path, limit: list[int], device: Device, decode: str, most: int) -> None:
    """Workers that cannot open the clips are left out, which is said once."""
    clips = folder / "ref.mp4", folder / "dis.mp4"
    score = partial(score_files, *clips, features=FEATURE, device=str(device.info.uuid), decode=decode)
    expected = score()
    assert expected.worker_warnings == []
    limit[0] = most
    hardware.close_idle_decoders()
    report = score()
    assert render(report, "json", "max") == render(expected, "json", "max")
    (trouble,) = report.worker_warnings
    assert trouble.startswith("the cuda decoder decodes fewer clips in parallel: its driver")


def test_a_limit_of_one_clip(folder: Path, limit: list[int], device: Device) -> None:
    """Both clips are opened side by side. The CPU decodes the late one, which is an error if hardware is required."""
    clips = folder / "ref.mp4", folder / "dis.mp4"
    expected = json.loads(_json(clips, device, "cpu"))
    limit[0] = 1
    report = json.loads(_json(clips, device, "auto"))
    assert report["frames"] == expected["frames"]
    decoded = {report["scoring"][name]["decoder"]: report["scoring"][name] for name in ("reference", "distorted")}
    assert decoded.keys() == {"h264", "h264 (cuda)"}
    assert decoded["h264"]["decoder_reason"].startswith("cuda: its driver or its device refuses")
    assert len([note for note in report["notes"] if "on the CPU" in note]) == 1
    with pytest.raises(InputError, match=r"(ref|dis)\.mp4: the cuda decoder cannot decode it: its driver"):
        _json(clips, device, "cuda")


def test_the_command_line_tells_which_decoder_read_a_clip(folder: Path, driver: Answers, device: Device) -> None:
    clips = str(folder / "wide.mp4"), str(folder / "dis.mp4")
    where = "--device", str(device.info.uuid), "--decode", "auto"
    result = vkssim("score", "-r", clips[0], "-d", clips[1], "--feature", FEATURE, "--profile", *where)
    assert result.exit_code == 0, result.output
    assert f"note: {clips[0]}: decoded on the CPU, because the cuda decoder cannot decode it: {REASON}" in result.output
    assert f"{clips[0]}: decoder h264 (cuda: {REASON})" in result.output
    assert f"{clips[1]}: decoder h264 (cuda)\n" in result.output


def test_the_driver_is_not_asked_for_raw_files(driver: Answers, device: Device, tmp_path: Path, monkeypatch: Any) -> None:
    """To load CUDA takes time."""
    raw = tmp_path / "a.yuv"
    raw.write_bytes(bytes(64 * 48 * 3 // 2))
    for name in ("cuda_of", "ask"):
        monkeypatch.setattr(decoding, name, lambda *_words: pytest.fail("the driver is asked"))
    monkeypatch.setattr(decoding, "missing_for_sharing", lambda _gpu: ())
    description = RawDescription(width=64, height=48, pixel_format="420", bits=8)
    report = score_files(raw, raw, raw=description, features=FEATURE, device=str(device.info.uuid), decode="auto")
    assert report.frame_count == 1
    assert report.notes == []


def test_a_run_on_several_engines_asks_the_driver(folder: Path, driver: Answers, device: Device, monkeypatch: Any) -> None:
    asked: list[int] = []
    monkeypatch.setattr(worker, "sessions", lambda decoder: asked.append(sessions(decoder)) or 1)
    driver["h264", "420", 8] = _good(7)
    _json((folder / "ref.mp4", folder / "dis.mp4"), device, "auto")
    assert asked == [7]
