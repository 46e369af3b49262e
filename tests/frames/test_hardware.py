"""Hardware decoders without hardware: a stand-in gives the frames of FFmpeg's own decoders in the formats of surfaces."""

from __future__ import annotations

import gc
import os
import queue
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from vkssim import Selection, score_files
from vkssim.backends import decoding
from vkssim.engine import ranges, worker
from vkssim.engine.ranges import FrameRange
from vkssim.engine.run import score_range
from vkssim.errors import InputError, OptionError
from vkssim.frames.decode import choice, hardware
from vkssim.frames.decode.clip_decoder import ClipDecoder
from vkssim.frames.decode.container import ContainerFile
from vkssim.frames.decode.decoder import Decoder
from vkssim.frames.decode.hardware import HardwareDecoder, check_decode
from vkssim.frames.open import open_file
from vkssim.frames.options import RawDescription
from vkssim.frames.pairing import preprocessing
from vkssim.frames.source import ReadOutcome
from vkssim.host.device import Device
from vkssim.report import render
from vkssim.utils.choices import DECODERS

from ..engine.in_ranges import small_ranges
from ..ladder.ladders import encode
from ..support.coded.damage import video_packets
from ..support.commands import vkssim
from ..support.pictures import clip
from .encoding import encode_frames
from .reading import read_planes

FRAMES, GOP = 30, 10
GROUP = 8
"""Packets that hardware decodes in a row."""
CUDA = HardwareDecoder("cuda")
FEATURE = "float_ssim=scale=1:window=uniform8"  # compiles soonest

Changed = Callable[[int, Any], Any]
"""Changes a frame, given how many the decoder gave before it."""


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[Changed]:
    """Make FFmpeg's own decoders look like hardware; changes that are added to the list are made to each of its frames."""
    changes: list[Changed] = []
    CUDA.compared.clear()  # what another test left
    CUDA.idle.close()
    monkeypatch.setattr(decoding, "_decoders", {})
    take = Decoder.next

    def from_surface(self: Decoder) -> Any:
        before, frame = self.frame_count, take(self)
        if not self.hardware or frame is None:
            return frame
        name = {"yuv420p": "nv12", "yuvj420p": "nv12", "yuv420p10le": "p010le"}.get(frame.format.name, frame.format.name)
        frame = frame.reformat(format=name)
        for change in changes:
            frame = change(before, frame)
        return frame

    monkeypatch.setattr(Decoder, "next", from_surface)
    monkeypatch.setattr(HardwareDecoder, "request", lambda _self: None)
    monkeypatch.setattr(hardware, "offered", lambda: frozenset(["cuda"]))
    return changes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clips")
    luma = clip(FRAMES, 48, 64)
    encode(folder / "ref.mp4", luma, g=str(GOP))
    encode(folder / "dis.mp4", luma, g=str(GOP), crf="40")
    _write(folder / "ten.mp4", "libx264", luma, "yuv420p10le")
    _write(folder / "wide.mp4", "libx264", luma, "yuv422p")
    return folder


def _write(path: Path, codec: str, frames: Any, pixels: str = "yuv420p") -> None:
    grey = [av.VideoFrame.from_ndarray(luma, format="gray").reformat(format=pixels) for luma in frames]
    encode_frames(path, grey, codec, muxer={"update": "1"} if path.suffix == ".png" else {}, gop_size=GOP)


def _planes(path: Path, decoder: HardwareDecoder | None) -> tuple[list[np.ndarray], ContainerFile]:
    with open_file(str(path), RawDescription(), hardware=decoder) as source:
        assert isinstance(source, ContainerFile)
        frames = read_planes(source, range(FRAMES + 1), 3)
        return [np.concatenate([plane.ravel() for plane in frame]) for frame in frames], source


@pytest.mark.parametrize("name", ["ref.mp4", "ten.mp4"])
def test_the_samples_are_those_of_the_cpu(folder: Path, stand_in: list[Changed], name: str) -> None:
    expected, on_cpu = _planes(folder / name, None)
    found, by_hardware = _planes(folder / name, CUDA)
    assert len(found) == FRAMES
    np.testing.assert_array_equal(found, expected)
    assert (on_cpu.clip_facts().decoder, by_hardware.clip_facts().decoder) == ("h264", "h264 (cuda)")
    (note,) = by_hardware.info.notes
    assert note == "decoded by cuda, which notices less damage than the CPU's decoder"
    assert replace(by_hardware.info, notes=()) == on_cpu.info


def test_hardware_starts_while_the_cpu_decodes(folder: Path, stand_in: list[Changed], monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU waits here for the first frame of hardware, which would never come if one started after the other."""
    started, first_frames = threading.Event(), ClipDecoder.first_frames

    def note_start(_before: int, frame: Any) -> Any:
        started.set()
        return frame

    def first_frames_later(self: ClipDecoder) -> Any:
        assert started.wait(60)
        return first_frames(self)

    stand_in.append(note_start)
    monkeypatch.setattr(ClipDecoder, "first_frames", first_frames_later)
    _, source = _planes(folder / "ref.mp4", CUDA)
    assert source.clip_facts().decoder == "h264 (cuda)"


def test_hardware_decodes_packets_in_groups(folder: Path, stand_in: list[Changed]) -> None:
    """The first frame comes as soon as it can, and each later group before its frames are used."""
    with ContainerFile(str(folder / "ref.mp4"), hardware=CUDA) as source:
        decoder = source._clip.decoder
        packets = [decoder.count.presented]
        while decoder.next() is not None:
            packets.append(decoder.count.presented)
    assert packets[0] < GROUP
    assert set(np.diff(packets)) == {0, GROUP, (FRAMES - packets[0]) % GROUP}
    assert len(packets) == FRAMES == packets[-1]


@pytest.mark.parametrize("broken", [OSError("the share is lost"), av.InvalidDataError(1, "torn")])
@pytest.mark.parametrize("reads", [True, False], ids=["read", "decoded"])
def test_frames_before_an_error_in_a_group_are_returned(
    folder: Path, stand_in: list[Changed], broken: Exception, reads: bool
) -> None:
    first_bad = 2 * GROUP + 5  # in the middle of a group

    class Failing:
        """A container whose packet of that number cannot be read, or a codec that cannot decode it."""

        def __init__(self, real: Any) -> None:
            self._real, self._decoded = real, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def demux(self, stream: Any) -> Any:
            for number, packet in enumerate(self._real.demux(stream)):
                if number == first_bad:
                    raise broken
                yield packet

        def decode(self, packet: Any) -> Any:
            self._decoded += 1
            if self._decoded > first_bad:
                raise broken
            return self._real.decode(packet)

    found: list[int] = []
    with av.open(str(folder / "ref.mp4")) as opened:
        stream = opened.streams.video[0]
        codec = stream.codec_context
        parts = (Failing(opened), stream, codec) if reads else (opened, stream, Failing(codec))
        decoder = Decoder(*parts, threads=False, hardware=True)
        frames = iter(decoder.next, None)
        with pytest.raises(type(broken)):
            found.extend(frame.pts for frame in frames)
        decoder.close()
    with av.open(str(folder / "ref.mp4")) as opened:
        codec = opened.streams.video[0].codec_context
        packets = list(opened.demux(video=0))[:first_bad]
        assert found == [frame.pts for packet in packets for frame in codec.decode(packet)]


def test_hardware_starts_later_if_its_thread_cannot_open_the_clip(
    folder: Path, stand_in: list[Changed], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_clip = ClipDecoder.open

    def open_elsewhere(self: ClipDecoder, hwaccel: Any = None) -> Any:
        if threading.current_thread().name == "vkssim-hardware":
            raise OSError(24, "Too many open files")
        return open_clip(self, hwaccel)

    monkeypatch.setattr(ClipDecoder, "open", open_elsewhere)
    _, source = _planes(folder / "ref.mp4", CUDA)
    assert source.clip_facts().decoder == "h264 (cuda)"


def test_hardware_does_not_start_with_a_clip_that_it_refuses(
    folder: Path, stand_in: list[Changed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FFmpeg would log an error, which looks like damage to other decoders of the codec."""
    requests: list[None] = []
    starts: queue.Queue[Any] = queue.Queue()
    start_early = choice.start_early

    def start(clip: ClipDecoder, decoder: HardwareDecoder) -> None:
        starts.put(start_early(clip, decoder))

    monkeypatch.setattr(HardwareDecoder, "request", lambda _self: requests.append(None))
    monkeypatch.setattr(choice, "start_early", start)
    _, source = _planes(folder / "wide.mp4", replace(CUDA, required=False))
    assert source.clip_facts().decoder == "h264"
    assert starts.get(timeout=60) is None
    assert not requests


@pytest.mark.parametrize("decoder", [None, CUDA])
def test_a_clip_that_is_closed_has_no_decoder(
    folder: Path, stand_in: list[Changed], decoder: HardwareDecoder | None, request: pytest.FixtureRequest
) -> None:
    """A GPU has few decoders and little memory: they are free before the objects of the clip are collected, except the decoder
    that waits for the next clip of its kind."""

    def decoders_and_frames() -> int:
        gc.collect()
        # By its type, because isinstance() also asks for __class__, of which an object of PyTorch's warns.
        return sum(issubclass(type(thing), av.VideoCodecContext | av.VideoFrame) for thing in gc.get_objects())

    gc.collect()
    request.addfinalizer(gc.unfreeze)
    gc.freeze()  # leaves out what other tests have made, which takes long to look through
    before = decoders_and_frames()
    source = ContainerFile(str(folder / "ref.mp4"), hardware=decoder)
    source.read([3], [source.info.new_planes(1)])
    assert decoders_and_frames() > before
    source.close()
    if decoder is not None:
        assert decoders_and_frames() == before + 2, "the decoder, and the frame that PyAV would fill next"
        assert decoder.idle.close()
    assert decoders_and_frames() == before
    assert source.bytes_read > 0
    assert (source.damage, list(source.remarks)) == ({}, [])


def test_a_machine_without_the_hardware(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FFmpeg cannot open the driver, or has no such decoder for the codec."""
    CUDA.idle.close()
    refusals = {
        PermissionError(1, "Operation not permitted"): r"its driver or its device refuses \(Operation not permitted\)",
        RuntimeError("no stream is compatible"): "FFmpeg has none for h264",
    }
    for error, reason in refusals.items():

        def refuse(_self: HardwareDecoder, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(HardwareDecoder, "request", refuse)
        with pytest.raises(InputError, match=f"the cuda decoder cannot decode it: {reason}. `decode=cpu` decodes it"):
            _planes(folder / "ref.mp4", CUDA)


def _other_samples(_before: int, frame: Any) -> Any:
    samples = frame.to_ndarray()
    samples[0, 0] ^= 1
    changed = av.VideoFrame.from_ndarray(samples, format=frame.format.name)
    changed.pts = frame.pts
    return changed


def _smaller(_before: int, frame: Any) -> Any:
    return frame.reformat(width=frame.width - 2)


def test_a_clip_is_compared_with_the_cpu_once(tmp_path: Path, folder: Path, stand_in: list[Changed]) -> None:
    """Other samples are only noticed in a stream with other parameter sets. Another size is noticed in any file."""
    path = tmp_path / "ref.mp4"
    shutil.copy(folder / "ref.mp4", path)
    _, first = _planes(path, CUDA)
    stand_in.append(_other_samples)
    for time in (None, (1, 1)):  # a file that is known, and one that was written since
        if time is not None:
            os.utime(path, ns=time)
        _, again = _planes(path, CUDA)
        assert again.info == first.info
        assert again.clip_facts() == first.clip_facts()
    with pytest.raises(InputError, match="its first frame has other samples"):
        _planes(folder / "dis.mp4", CUDA)
    os.utime(path, ns=(2, 2))
    stand_in[:] = [_smaller]
    with pytest.raises(InputError, match="its first frame is 62x48 nv12"):
        _planes(path, CUDA)


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_decoders_outlive_clips(tmp_path: Path, stand_in: list[Changed], codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clips of one format, with other parameter sets of pictures, other orders of frames, and parts that were read."""
    looks = {"bright": {}, "coarse": {"crf": "45"}, "plain": {"bf": "0", "crf": "20"}, "again": {}}
    for number, (name, options) in enumerate(looks.items()):
        encode(tmp_path / f"{name}.mp4", clip(FRAMES, 64, 96, seed=number), codec, g=str(GOP), **options)
    expected = {name: _planes(tmp_path / f"{name}.mp4", None)[0] for name in looks}
    requests: list[None] = []
    monkeypatch.setattr(HardwareDecoder, "request", lambda _self: requests.append(None))
    for name in [*looks, *reversed(looks)]:
        found, source = _planes(tmp_path / f"{name}.mp4", CUDA)
        np.testing.assert_array_equal(found, expected[name])
        assert source.clip_facts().decoder == f"{'h264' if codec == 'libx264' else 'hevc'} (cuda)"
        with ContainerFile(str(tmp_path / f"{name}.mp4"), hardware=CUDA) as part:  # frames are left in the decoder
            read_planes(part, [GOP + 1], 1)
    assert len(requests) == 2, "one for the order of frames without B frames, and one for the others"


def test_units_with_start_codes_need_another_decoder(tmp_path: Path, stand_in: list[Changed]) -> None:
    """A decoder takes lengths or start codes by the parameter sets that it had last, and some streams have none beside them."""
    luma = clip(FRAMES, 64, 96)
    for name in ("lengths.mp4", "codes.ts", "codes.h264"):
        encode(tmp_path / name, luma, g=str(GOP))
    for name in ("lengths.mp4", "codes.ts", "codes.h264", "lengths.mp4", "codes.h264"):
        found, source = _planes(tmp_path / name, CUDA)
        np.testing.assert_array_equal(found, _planes(tmp_path / name, None)[0])
        assert source.clip_facts().decoder == "h264 (cuda)"
    assert {kind[-1] for kind, _ in CUDA.idle._idle} == {b"\1", b"\0"}


def test_large_decoders_leave_room_for_few(folder: Path, stand_in: list[Changed], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were used longest ago are closed, but for the last one."""
    monkeypatch.setattr(hardware, "_MAX_IDLE_PIXELS", 2 * 64 * 48)
    with ExitStack() as stack:
        for name in ("ref.mp4", "dis.mp4", "ten.mp4"):
            stack.enter_context(ContainerFile(str(folder / name), hardware=CUDA))
    assert len(CUDA.idle._idle) == 2
    monkeypatch.setattr(hardware, "_MAX_IDLE_PIXELS", 1)
    _planes(folder / "ref.mp4", CUDA)
    assert len(CUDA.idle._idle) == 1


def test_a_decoder_that_saw_damage_is_closed(folder: Path, stand_in: list[Changed]) -> None:
    _planes(folder / "ref.mp4", CUDA)
    assert CUDA.idle.close()
    with ContainerFile(str(folder / "ref.mp4"), hardware=CUDA) as source:
        source._clip.decoder.has_failed = True
    assert not CUDA.idle.close()


def test_decoders_start_one_after_the_other(folder: Path, stand_in: list[Changed], monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that takes too long holds up no other clip."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    def wait(_before: int, frame: Any) -> Any:
        begun.release()
        go_on.wait()
        return frame

    stand_in.append(wait)
    monkeypatch.setattr(choice, "START_TIMEOUT_S", 60.0)
    with ThreadPoolExecutor(3) as pool, ExitStack() as stack:
        stack.callback(go_on.set)
        first, second = (pool.submit(_planes, folder / name, CUDA) for name in ("ref.mp4", "dis.mp4"))
        begun.acquire()
        assert not begun.acquire(timeout=0.1)
        monkeypatch.setattr(choice, "START_TIMEOUT_S", 0.01)
        third = pool.submit(_planes, folder / "ten.mp4", CUDA)
        begun.acquire()
        go_on.set()
        assert [len(run.result()[0]) for run in (first, second, third)] == [FRAMES] * 3


@pytest.mark.parametrize(("change", "why"), [(_other_samples, "has other samples"), (_smaller, "is 62x48 nv12")])
def test_a_decoder_that_gives_another_first_frame_is_not_believed(
    folder: Path, stand_in: list[Changed], change: Changed, why: str
) -> None:
    stand_in.append(change)
    with pytest.raises(InputError, match=f"the cuda decoder cannot decode it: its first frame {why}"):
        _planes(folder / "ref.mp4", CUDA)


@pytest.mark.parametrize("at", [1, GOP, FRAMES - 1])
@pytest.mark.parametrize(
    "error", [av.ExternalError(1, "the surface is lost"), av.error.MemoryError(12, "Cannot allocate memory")]
)
def test_a_decoder_that_fails_on_the_way(folder: Path, stand_in: list[Changed], at: int, error: OSError) -> None:
    """The CPU decodes the clip again, and gives the frames from there on; a warning says so."""
    expected, _ = _planes(folder / "ref.mp4", None)

    def failing(before: int, frame: Any) -> Any:
        if before == at:
            raise error
        return frame

    stand_in.append(failing)
    found, source = _planes(folder / "ref.mp4", CUDA)
    np.testing.assert_array_equal(found, expected)
    cause = f"because the cuda decoder saw damage or failed ({error.strerror})"
    assert source.fallback == (at, f"decoded on the CPU from here, {cause}")
    assert ReadOutcome.of(source, at).warnings() == [f"{source.info.path}, frame {at}: {source.fallback[1]}"]
    assert ReadOutcome.of(source, at - 1).warnings() == []
    assert source.clip_facts().decoder_reason == f"cuda: it saw damage or failed at frame {at} ({error.strerror})"


def test_the_last_frame_of_matroska_that_is_cut_off_is_named(tmp_path: Path, stand_in: list[Changed]) -> None:
    whole, cut = tmp_path / "whole.mkv", tmp_path / "cut.mkv"
    _write(whole, "libx265", clip(FRAMES, 48, 64), "yuv420p")
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 3 // 4])
    frames = len(video_packets(cut))
    assert 1 < frames < FRAMES
    with open_file(str(cut), RawDescription(), hardware=CUDA) as source:
        read_planes(source, range(frames), 3)
        assert source.clip_facts().decoder == "hevc (cuda)"
        assert source.damage == {frames - 1: "the file is cut off after this frame"}
        assert list(source.remarks) == []


def test_damage_while_a_range_is_sought_is_noted(
    folder: Path, stand_in: list[Changed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPU decodes the range, and the record and a warning say so."""
    seek = Decoder.seek

    def seek_and_report(self: Decoder, *words: Any, **options: Any) -> None:
        seek(self, *words, **options)
        if self.hardware:
            self._report("torn", is_damage=True)

    monkeypatch.setattr(Decoder, "seek", seek_and_report)
    with ContainerFile(str(folder / "ref.mp4"), hardware=CUDA) as source, ContainerFile(str(folder / "ref.mp4")) as other:
        marks = source.seek_index()
        assert marks is not None
        place = marks.position(2 * GOP)
        assert source.seek(2 * GOP, place) == other.seek(2 * GOP, place)
        facts = source.clip_facts()
        assert facts.decoder == "h264"
        assert facts.decoder_reason == f"cuda: it saw damage or failed at frame {2 * GOP} (torn)"
        assert source.fallback == (
            2 * GOP,
            "decoded on the CPU from here, because the cuda decoder saw damage or failed (torn)",
        )
        assert (source.damage, list(source.remarks)) == ({}, [])


def test_a_range_that_hardware_fails_on_is_decoded_again_by_the_cpu(
    folder: Path, stand_in: list[Changed], device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other ranges are left alone, and the scores are the same."""
    small_ranges(monkeypatch, 4)
    monkeypatch.setattr(worker, "sessions", lambda _decoder: 3)
    monkeypatch.setattr(worker, "has_lock", lambda: True)
    clips = folder / "ref.mp4", folder / "dis.mp4"
    score = partial(score_files, *clips, features=[FEATURE], device=str(device.info.uuid), decode="cuda")
    expected = score()
    ranges: list[FrameRange] = []
    failed: list[int] = []
    score_one = score_range

    def note_range(*words: Any, **how: Any) -> Any:
        ranges.append(words[4])
        return score_one(*words, **how)

    def fail_once(before: int, frame: Any) -> Any:
        if before == 3 and not failed:
            failed.append(before)
            raise av.error.ExternalError(1, "the surface is lost")
        return frame

    monkeypatch.setattr(worker, "score_range", note_range)
    stand_in.append(fail_once)
    report = score()
    assert failed
    assert len(ranges) > 2
    assert FrameRange() not in ranges
    assert [frame.metrics for frame in report.frames] == [frame.metrics for frame in expected.frames]
    (warning,) = set(report.warnings) - set(expected.warnings)
    assert "decoded on the CPU from here, because the cuda decoder saw damage or failed (the surface is lost)" in warning


def test_decoders_that_there_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="`decode` is 'nvdec'; it must be auto, cpu, cuda"):
        check_decode("nvdec")
    monkeypatch.setattr(hardware, "offered", lambda: frozenset(["vaapi"]))
    with pytest.raises(
        OptionError, match="`decode=cuda` is not possible: the FFmpeg of the installed PyAV was built with vaapi"
    ):
        check_decode("cuda")
    check_decode("vaapi")
    check_decode(DECODERS[0])


def test_the_command_line_names_its_flag(folder: Path, stand_in: list[Changed]) -> None:
    clip = str(folder / "wide.mp4")
    result = vkssim("score", "-r", clip, "-d", clip, "--decode", "cuda", "--backend", "cpu", "--feature", FEATURE)
    assert result.exit_code == 2
    assert "wide.mp4: the cuda decoder cannot decode it: its frames are yuv422p" in result.output
    assert "--decode cpu decodes it on the CPU" in result.output


def test_several_engines_score_ranges_side_by_side(
    folder: Path, stand_in: list[Changed], device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report is that of one engine; only the first worker of the process compares the clips with the CPU's frames."""
    monkeypatch.setattr(worker, "sessions", lambda _decoder: 5)
    monkeypatch.setattr(worker, "has_lock", lambda: True)
    small_ranges(monkeypatch, 4)
    clips = folder / "ref.mp4", folder / "dis.mp4"
    score_clips = partial(score_files, *clips, features=[FEATURE], device=str(device.info.uuid), decode="cuda")
    compared: list[str] = []
    ranges: list[FrameRange] = []
    compare, score = choice._compared, score_range

    def note_compared(clip: ClipDecoder, *words: Any) -> Any:
        compared.append(clip.path)
        return compare(clip, *words)

    def note_range(*words: Any, **how: Any) -> Any:
        ranges.append(words[4])
        return score(*words, **how)

    monkeypatch.setattr(choice, "_compared", note_compared)
    monkeypatch.setattr(worker, "score_range", note_range)
    report = score_clips()
    several = len(ranges)
    assert several > 2
    monkeypatch.setattr(worker, "sessions", lambda _decoder: 1)
    alone = score_clips()
    assert ranges[several:] == [FrameRange()]
    assert render(report, "json", "max") == render(alone, "json", "max")
    assert len(compared) == 2, "both clips, in the first of both runs"


@pytest.mark.parametrize(("frames_each", "subsample", "is_short"), [(11, 1, True), (10, 1, False), (10, 2, False)])
def test_a_short_pair_is_left_to_one_engine(
    folder: Path,
    stand_in: list[Changed],
    device: Device,
    monkeypatch: pytest.MonkeyPatch,
    frames_each: int,
    subsample: int,
    is_short: bool,
) -> None:
    """To open its clips for three workers would take longer than to score it. Frames that are left out are decoded, too."""
    monkeypatch.setattr(worker, "sessions", lambda _decoder: 5)
    monkeypatch.setattr(worker, "has_lock", lambda: True)
    for kind in "gpu", "software":
        monkeypatch.setitem(ranges.PIXELS_A_SECOND, kind, frames_each * 48 * 64)
    monkeypatch.setattr(worker, "_MIN_SECONDS_EACH", 1.0)
    monkeypatch.setattr(worker, "MIN_PAIRS", 1)
    opened: list[str] = []
    open_clip = open_file

    def note_opened(path: str, raw: RawDescription, stream: Any = None, decoder: Any = None, **how: Any) -> Any:
        opened.extend([path] if decoder else [])
        return open_clip(path, raw, stream, decoder, **how)

    monkeypatch.setattr(preprocessing, "open_file", note_opened)
    clips = folder / "ref.mp4", folder / "dis.mp4"
    selection = Selection(subsample=subsample)
    report = score_files(*clips, features=[FEATURE], device=str(device.info.uuid), decode="cuda", selection=selection)
    assert len(report.frames) == FRAMES // subsample
    assert (len(opened) == 2) is is_short


def test_a_file_is_opened_while_another_decoder_starts(
    folder: Path, stand_in: list[Changed], device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[ClipDecoder] = []
    both = threading.Event()
    start, take = ClipDecoder.start, Decoder.next

    def note_start(self: ClipDecoder, **how: Any) -> None:
        start(self, **how)
        if how.get("hardware") is not None:
            opened.append(self)
            if len(opened) == 2:
                both.set()

    def take_when_both_are_open(self: Decoder) -> Any:
        assert not self.hardware or both.wait(30)
        return take(self)

    monkeypatch.setattr(ClipDecoder, "start", note_start)
    monkeypatch.setattr(Decoder, "next", take_when_both_are_open)
    report = score_files(
        folder / "ref.mp4", folder / "dis.mp4", features=[FEATURE], device=str(device.info.uuid), decode="cuda"
    )
    assert len(report.frames) == FRAMES
