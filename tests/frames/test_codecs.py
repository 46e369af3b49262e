"""Real encoders: all planes are equal to PyAV's own arrays of the decoded frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.bitstream import BitStreamFilterContext

from vkssim.frames.decode import container
from vkssim.types import plane_shapes

from .encoding import encode_frames, noise_planes, video_frame
from .reading import assert_frames, open_source, read_file, read_planes

CODECS = [
    ("h264.mp4", "libx264", "yuv420p", {"qp": "0"}),
    ("h264.mkv", "libx264", "yuv444p10le", {"qp": "0"}),
    ("hevc.mp4", "libx265", "yuv422p10le", {"x265-params": "lossless=1:log-level=none"}),
    ("hevc12.mkv", "libx265", "yuv444p12le", {"x265-params": "lossless=1:log-level=none"}),
    ("vp9.webm", "libvpx-vp9", "yuv420p", {"lossless": "1"}),
    ("vp9.mkv", "libvpx-vp9", "yuv440p", {"lossless": "1"}),
    ("ffv1.mkv", "ffv1", "yuv420p16le", {}),
    ("ffv1.avi", "ffv1", "yuv410p", {}),
    ("ffv1a.mkv", "ffv1", "yuva444p12le", {}),
    ("utvideo.avi", "utvideo", "yuv422p", {}),
    ("v210.mov", "v210", "yuv422p10le", {}),
    ("raw.nut", "rawvideo", "yuv411p", {}),
    ("raw_nv12.nut", "rawvideo", "nv12", {}),
    ("raw_packed.avi", "rawvideo", "yuyv422", {}),
    ("av1.mp4", "libsvtav1", "yuv420p10le", {"preset": "12", "svtav1-params": "lp=1"}),
    ("prores.mov", "prores_ks", "yuv422p10le", {}),
    ("prores4444.mov", "prores_ks", "yuva444p10le", {}),
    ("dnxhr.mov", "dnxhd", "yuv422p10le", {"profile": "dnxhr_hqx"}),
    ("mjpeg.avi", "mjpeg", "yuvj420p", {}),
    ("mpeg2.ts", "mpeg2video", "yuv420p", {}),
]
SIZES = {"ffv1.avi": (64, 48), "utvideo.avi": (320, 180), "dnxhr.mov": (256, 120), "av1.mp4": (64, 64)}


def _planar(frame: Any) -> tuple[np.ndarray, ...]:
    """The planes by PyAV's own reshaping of its memory, alpha left out."""
    name = frame.format.name
    planar = {"nv12": "yuv420p", "yuyv422": "yuv422p", "yuvj420p": "yuvj420p"}.get(name, name.replace("yuva", "yuv"))
    frame = frame if planar == name else frame.reformat(format=planar, threads=1)
    deep = frame.format.components[0].bits > 8
    planes = []
    for plane in frame.planes:
        rows = np.frombuffer(bytes(plane), "<u2" if deep else np.uint8).reshape(plane.height, -1)
        planes.append(rows[:, : plane.width])
    return tuple(planes)


def _read(path: str, count: int) -> list[tuple[np.ndarray, ...]]:
    with open_source(path, chroma=True) as source:
        planes = read_planes(source, range(count), 3)
        assert source.problem is None
        shapes = plane_shapes(source.info.width, source.info.height, source.info.chroma)
        assert [plane.shape for plane in planes[0]] == shapes
    return planes


@pytest.mark.parametrize(("name", "codec", "pixel_format", "options"), CODECS)
def test_planes_are_those_that_pyav_decodes(
    tmp_path: Path, name: str, codec: str, pixel_format: str, options: dict[str, str]
) -> None:
    width, height = SIZES.get(name, (62, 50))
    frames = []
    for seed in range(3):
        frame: Any = av.VideoFrame(width, height, pixel_format)
        bits = frame.format.components[0].bits
        for plane in frame.planes:
            memory = np.frombuffer(plane, np.uint8 if bits == 8 else "<u2")
            memory[:] = np.random.default_rng(seed).integers(0, 2**bits, memory.shape)
        frames.append(frame)
    path = encode_frames(tmp_path / name, frames, codec, options=options)
    with av.open(path) as opened:
        expected = [_planar(frame)[:3] for frame in opened.decode(video=0)]
    assert len(expected) == 3
    assert_frames(_read(path, 5), expected)


def test_key_frames_are_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From all over a stream that is too long to decode it all."""
    monkeypatch.setattr(container, "_FEW_FRAMES", 0)
    clip = [noise_planes(64, 48, "420", 8, seed) for seed in range(24)]
    frames = [video_frame(64, 48, "yuv420p", planes) for planes in clip]
    path = encode_frames(tmp_path / "clip.mkv", frames, "libx264", options={"qp": "0", "g": "4", "sc_threshold": "0"})
    with open_source(path) as source:
        assert source.expected == 24, "by its duration"
        sampled = [luma.copy() for luma, *_ in source.sample(4)]
    found = [next(number for number, planes in enumerate(clip) if np.array_equal(planes[0], luma)) for luma in sampled]
    assert found == [0, 4, 12, 16]


@pytest.mark.parametrize("left", [2, 16, 40])
def test_a_crop_at_the_left_is_that_of_the_stream(tmp_path: Path, left: int) -> None:
    """H.264 says how many columns are not shown. libavcodec shows some of them, unless a plane may begin anywhere in memory."""
    whole, cropped = tmp_path / "whole.mp4", tmp_path / "cropped.mp4"
    frame = video_frame(192, 64, "yuv420p", noise_planes(192, 64, "420", 8))
    encode_frames(whole, [frame, frame], "libx264", options={"qp": "0"})
    with av.open(str(whole)) as source, av.open(str(cropped), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        edit = BitStreamFilterContext(f"h264_metadata=crop_left={left}:crop_right=6", source.streams.video[0], stream)
        for packet in source.demux(video=0):
            for edited in edit.filter(packet if packet.dts is not None else None):
                edited.stream = stream
                target.mux(edited)
    np.testing.assert_array_equal(read_file(str(cropped)), read_file(str(whole))[:, :, left : 192 - 6])
