"""Make the clips of the section `decoding`: the bundled clip, repeated in space and time, as encoders of today write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

_FIXTURE = Path(__file__).resolve().parent.parent / "fixtures" / "bbb_576x324_ref.mp4"
_RATE = 24
_SEGMENT = 96  # frames that are encoded; longer clips repeat their packets
_PAN = 2  # samples a frame
_GRAIN = 1  # largest value that is added, in steps of 8 bits


@dataclass(frozen=True)
class Codec:
    """The encoding of a pair of clips: FFmpeg's encoder, its options, and the quality of each clip."""

    name: str
    encoder: str
    pixel_format: str
    options: Mapping[str, str]
    reference_crf: int
    distorted_crf: int


_X265 = {"preset": "fast", "x265-params": "log-level=error"}
CODECS = (
    Codec("H.264, 8 bit", "libx264", "yuv420p", {"preset": "medium"}, 20, 30),
    Codec("HEVC, 8 bit", "libx265", "yuv420p", _X265, 22, 32),
    Codec("HEVC, 10 bit", "libx265", "yuv420p10le", _X265, 22, 32),
)


def write_pair(folder: Path, codec: Codec, width: int, height: int, frames: int) -> tuple[Path, Path]:
    """Write a reference and a distorted clip of so many frames into a folder, and return their paths."""
    paths = folder / "reference.mp4", folder / "distorted.mp4"
    for path, crf in zip(paths, (codec.reference_crf, codec.distorted_crf), strict=True):
        segment = folder / "segment.mp4"
        length = min(frames, _SEGMENT)
        _encode(segment, codec, crf, _pictures(width, height, length))
        _repeat(segment, path, frames)
        segment.unlink()
    return paths


def _pictures(width: int, height: int, count: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield 4:2:0 pictures as PyAV takes them, (3 H / 2, W) uint8.

    The bundled clip runs forth and back. It is mirrored at its edges until the picture is full, because to enlarge it would
    take its detail away. A pan and a little grain give the encoders work as cameras do.
    """
    random = np.random.default_rng(0)
    for number, planes in enumerate(islice(_forth_and_back(), count)):
        luma, *chroma = (
            np.roll(_filled(plane, height // step, width // step), -_PAN * number // step, 1)
            for plane, step in zip(planes, (1, 2, 2), strict=True)
        )
        grain = random.integers(-_GRAIN, _GRAIN + 1, luma.shape, np.int16)
        luma = np.clip(luma + grain, 16, 235).astype(np.uint8)
        yield np.concatenate([luma, *(plane.reshape(-1, width) for plane in chroma)])


def _forth_and_back() -> Iterator[tuple[npt.NDArray[np.uint8], ...]]:
    with av.open(str(_FIXTURE)) as container:
        clip: list[Any] = [frame.to_ndarray(format="yuv420p") for frame in container.decode(video=0)]
    height, width = clip[0].shape[0] * 2 // 3, clip[0].shape[1]
    while True:
        for picture in (*clip, *clip[-2:0:-1]):
            luma, chroma = picture[:height], picture[height:].reshape(2, height // 2, width // 2)
            yield luma, chroma[0], chroma[1]


def _filled(plane: npt.NDArray[np.uint8], height: int, width: int) -> npt.NDArray[np.uint8]:
    """Return a plane of that size: the given one, mirrored at its edges, or its upper left part."""
    missing = [(0, max(0, wanted - given)) for wanted, given in zip((height, width), plane.shape, strict=True)]
    return np.pad(plane, missing, mode="symmetric")[:height, :width]


def _encode(path: Path, codec: Codec, crf: int, pictures: Iterator[npt.NDArray[np.uint8]]) -> None:
    with av.open(str(path), "w") as container:
        options = {**codec.options, "crf": str(crf)}
        stream: Any = container.add_stream(codec.encoder, rate=Fraction(_RATE), options=options)
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
            if number == 0:
                stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, codec.pixel_format
            container.mux(stream.encode(frame.reformat(format=codec.pixel_format)))
        container.mux(stream.encode())


def _repeat(source: Path, target: Path, frames: int) -> None:
    """Write the packets of a clip, which begins with a key frame, over and over until there are at least so many frames."""
    with av.open(str(source)) as given, av.open(str(target), "w") as made:
        stream = given.streams.video[0]
        copy = made.add_stream_from_template(stream)
        packets: list[Any] = [packet for packet in given.demux(stream) if packet.size]
        length = sum(packet.duration for packet in packets)
        for number in range(-(-frames // len(packets))):
            for packet in packets:
                again: Any = av.Packet(bytes(packet))
                again.pts, again.dts = (time + number * length for time in (packet.pts, packet.dts))
                again.duration, again.time_base, again.is_keyframe = packet.duration, packet.time_base, packet.is_keyframe
                again.stream = copy
                made.mux(again)
