"""Kinds of small clips for comparing decoders: what each is, and how its file is written. The table is corpus.py.

Their pictures are a real clip, made smaller, moved by a steady pan, with a little noise and one cut.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy as np

from vkssim.types import CHROMA_STEPS, Planes

from ...frames.encoding import encode_frames, video_frame
from ...frames.fields import write_fields
from ..children import in_child
from .damage import remux, with_stray_bytes

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
RATE = 25


class EncoderError(Exception):
    """The installed PyAV cannot make a clip: its name, and the reason of the encoder."""


@dataclass(frozen=True, kw_only=True)
class CodedClip(ABC):
    """A clip of the corpus.

    `pixel_format` is FFmpeg's name for the format of the source. `frames` are shown, after `hidden` ones that are coded and not
    shown. `field_order` is ``"top"`` or ``"bottom"``, whichever field is first, and None if pictures are progressive.
    """

    name: str
    stresses: str
    width: int = 192
    height: int = 160
    frames: int = 48
    hidden: int = 0
    pixel_format: str = "yuv420p"
    field_order: str | None = None

    @property
    def chroma(self) -> str:
        """Return the chroma format, as ``"420"``."""
        return "400" if self.pixel_format.startswith("gray") else self.pixel_format.removeprefix("yuv").lstrip("j")[:3]

    @property
    def bits(self) -> int:
        """Return the depth of the samples."""
        return av.VideoFormat(self.pixel_format).components[0].bits

    def pictures(self) -> list[Planes]:
        """Return the planes of every frame that is coded, as they are before they are encoded."""
        numbers = range(self.hidden + self.frames)
        if self.field_order:
            bottom = self.field_order == "bottom"
            return [woven(number, self.width, self.height, bottom_first=bottom) for number in numbers]
        return [picture(number, self.width, self.height, self.chroma, self.bits) for number in numbers]

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Write the clip; EncoderError is raised if the installed PyAV cannot."""


@dataclass(frozen=True, kw_only=True)
class Encoded(CodedClip):
    """A clip that an encoder of PyAV makes; `times` are the frames' in seconds, else one comes every 1/25."""

    encoder: str
    options: Mapping[str, str]
    times: Sequence[float] | None = None
    rotation: int | None = None

    def write(self, folder: Path) -> None:
        """Encode the pictures."""
        _clip()  # here, or each child decodes it
        self._encode(folder)

    @in_child  # which has FFmpeg's messages, and the priority that SVT-AV1 takes
    def _encode(self, folder: Path) -> None:
        os.environ.setdefault("SVT_LOG", "1")  # SVT-AV1 prints its settings otherwise
        frames = [video_frame(self.width, self.height, self.pixel_format, planes) for planes in self.pictures()]
        if self.field_order:
            frames = marked(frames, {"top": "tff", "bottom": "bff"}[self.field_order])
        before = av.logging.get_level()
        av.logging.set_level(av.logging.WARNING)
        try:
            with av.logging.Capture(local=False) as messages:
                encode_frames(
                    folder / self.name,
                    frames,
                    self.encoder,
                    options={**_SETTINGS.get(self.encoder, {}), **self.options},
                    times=self.times,
                    rate=RATE,
                    rotation=self.rotation,
                )
        except (av.error.FFmpegError, ValueError) as error:
            raise EncoderError(self._refusal(str(error))) from error
        finally:
            av.logging.set_level(before)
        for _, _, text in messages:
            if "option" in text:  # these encoders ignore an unknown option
                raise EncoderError(self._refusal(text.strip()))

    def _refusal(self, reason: str) -> str:
        options = " ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.name}: {self.encoder} of PyAV {av.__version__} refuses {self.pixel_format} {options}: {reason}"


def marked(frames: list[av.VideoFrame], mode: str) -> list[av.VideoFrame]:
    """Return frames that are marked as interlaced, by FFmpeg's filter setfield; encoders go by that."""
    graph = av.filter.Graph()
    source = graph.add_buffer(
        width=frames[0].width, height=frames[0].height, format=frames[0].format, time_base=Fraction(1, RATE)
    )
    graph.link_nodes(source, graph.add("setfield", mode), graph.add("buffersink")).configure()
    marked: list[Any] = []
    for number, frame in enumerate(frames):
        frame.pts = number
        graph.push(frame)
        marked.append(graph.pull())
    return marked


@dataclass(frozen=True, kw_only=True)
class FieldCoded(CodedClip):
    """H.264 whose fields are coded one by one; see tests/frames/fields.py. Its chroma is all 128."""

    def write(self, folder: Path) -> None:
        """Write the fields."""
        write_fields(folder / self.name, np.stack([luma for luma, *_ in self.pictures()]))
        (folder / self.name).with_suffix(".h264").unlink()


@dataclass(frozen=True, kw_only=True)
class Stored(CodedClip):
    """A clip of fixtures/, for codecs without an encoder in PyAV."""

    stored: str

    def write(self, folder: Path) -> None:
        """Copy the file."""
        shutil.copyfile(FIXTURES / self.stored, folder / self.name)


@dataclass(frozen=True, kw_only=True)
class Joined(CodedClip):
    """A stream that continues in another format: the bytes, or the packets, of two clips, joined."""

    parts: tuple[Encoded, Encoded]

    def write(self, folder: Path) -> None:
        """Encode both parts and join them."""
        with tempfile.TemporaryDirectory() as own:
            paths = [Path(own, part.name) for part in self.parts]
            for part in self.parts:
                part.write(Path(own))
            if Path(self.name).suffix in (".h264", ".hevc", ".ts"):
                (folder / self.name).write_bytes(b"".join(path.read_bytes() for path in paths))
            else:
                self._join_packets(paths, folder / self.name)

    def _join_packets(self, paths: list[Path], target: Path) -> None:
        with av.open(str(target), "w") as output:
            stream = None
            for number, path in enumerate(paths):
                with av.open(str(path)) as source:
                    stream = stream or output.add_stream_from_template(source.streams.video[0])
                    for packet in source.demux(video=0):
                        if packet.size and packet.pts is not None and packet.dts is not None and packet.time_base:
                            start = round(number * self.parts[0].frames / RATE / packet.time_base)
                            packet.pts, packet.dts, packet.stream = packet.pts + start, packet.dts + start, stream
                            output.mux(packet)


@dataclass(frozen=True, kw_only=True)
class Damaged(CodedClip):
    """A damaged copy of another clip."""

    of: CodedClip
    kind: str

    def write(self, folder: Path) -> None:
        """Write the copy; the sound clip is encoded if it is missing."""
        sound, target = folder / self.of.name, folder / self.name
        if not sound.exists():
            self.of.write(folder)
        if self.kind == "truncated":
            data = sound.read_bytes()
            target.write_bytes(data[: len(data) * 7 // 10])
        elif self.kind == "dropped":
            remux(sound, target, lambda number, data: None if number == _DAMAGED_PACKET else data)
        elif self.kind == "torn":
            remux(sound, target, lambda number, data: data[: len(data) // 2] if number == _DAMAGED_PACKET else data)
        else:
            target.write_bytes(with_stray_bytes(sound, _FLIPPED[self.kind], seed=len(self.name)))


_DAMAGED_PACKET = 13
_FLIPPED = {"flipped": (_DAMAGED_PACKET,), "flipped_often": (7, 19, 33), "flipped_key": (0,)}
DAMAGE = {
    "flipped": "bytes altered in a packet",
    "flipped_often": "bytes altered in three packets",
    "flipped_key": "bytes altered in the first packet",
    "dropped": "a packet missing",
    "torn": "the second half of a packet missing",
    "truncated": "the end of the file missing",
}
"""The kinds of damage, and what each is."""

# The deadline "realtime" makes VP8 choose its effort by the time that frames take: its bytes depend on the machine's load.
_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "libx264": {"threads": "1", "preset": "veryfast", "crf": "26"},
    "libx265": {"threads": "1", "preset": "ultrafast", "crf": "28"},
    "libvpx": {"threads": "1", "deadline": "good", "cpu-used": "5", "b": "400k", "g": "24", "lag-in-frames": "0"},
    "libvpx-vp9": {"threads": "1", "deadline": "realtime", "cpu-used": "7", "b": "400k", "g": "24", "lag-in-frames": "0"},
    "libsvtav1": {"preset": "11", "crf": "40", "svtav1-params": "lp=1"},
    "mpeg2video": {"threads": "1", "b": "900k", "g": "12"},
    "mpeg4": {"threads": "1", "b": "600k", "g": "24"},
    "mjpeg": {"threads": "1", "b": "2M"},
}


def write_reference(clip: CodedClip, folder: Path) -> Path:
    """Write the pictures of a clip that are shown, as they are before they are encoded, as Y4M; returns the path.

    Clips of equal pictures share a file.
    """
    scan = clip.field_order or "progressive"
    path = folder / f"{clip.width}x{clip.height}_{clip.pixel_format}_{scan}_{clip.hidden}_{clip.frames}.y4m"
    if not path.exists():
        depth = "" if clip.bits == 8 else f"p{clip.bits}"
        colour = "mono" if clip.chroma == "400" else clip.chroma
        span = "FULL" if clip.pixel_format.startswith("yuvj") else "LIMITED"
        header = f"YUV4MPEG2 W{clip.width} H{clip.height} F{RATE}:1 I{scan[0]} A1:1 C{colour}{depth} XCOLORRANGE={span}\n"
        with path.open("wb") as file:
            file.write(header.encode())
            for planes in clip.pictures()[clip.hidden :]:
                file.write(b"FRAME\n" + b"".join(plane.astype(plane.dtype.newbyteorder("<")).tobytes() for plane in planes))
    return path


_PAN = 3  # samples a frame
_NOISE = 3  # largest value that is added, in steps of 8 bits
_CUT = 27  # the frame after which the picture is another part of the clip


@cache
def picture(number: int, width: int, height: int, chroma: str = "420", bits: int = 8) -> Planes:
    """Return the planes of a frame: (H, W) luma, and chroma if there is any, uint8 or uint16, of limited range.

    Everything is integer arithmetic of NumPy, so that the planes are the same on every machine.
    """
    rng = np.random.default_rng(number)
    pan = _PAN * number + (width if number > _CUT else 0)
    rows = np.arange(height) + number // 4
    columns = np.arange(width) + pan
    steps = CHROMA_STEPS[chroma]
    planes: list[np.ndarray] = []
    for plane, (row_step, column_step) in zip(_source(number), [(1, 1)] + [steps] * 2 if steps else [(1, 1)], strict=False):
        part = plane.take(rows[::row_step], 0, mode="wrap").take(columns[::column_step], 1, mode="wrap")
        if row_step == column_step == 1 and not planes:
            part = np.clip(part + rng.integers(-_NOISE, _NOISE + 1, part.shape), 16, 235)
        deep = (part.astype(np.uint16) << (bits - 8)) + rng.integers(0, 1 << (bits - 8), part.shape, np.uint16)
        planes.append(deep.astype(np.uint8 if bits == 8 else np.uint16))
    return tuple(planes)


def woven(number: int, width: int, height: int, *, bottom_first: bool = False) -> Planes:
    """Return an interlaced 4:2:0 frame of 8 bits: its two fields are of different moments."""
    earlier, later = (picture(2 * number + field, width, height) for field in (0, 1))
    planes = tuple(plane.copy() for plane in earlier)
    for plane, other in zip(planes, later, strict=True):
        plane[0 if bottom_first else 1 :: 2] = other[0 if bottom_first else 1 :: 2]
    return planes


def _source(number: int) -> Planes:
    """Return the planes of a frame of the source, all of the size of its chroma; frames go forth and back."""
    clip = _clip()
    number %= 2 * len(clip) - 2
    return clip[min(number, 2 * len(clip) - 2 - number)]


@cache
def _clip() -> list[Planes]:
    with av.open(str(FIXTURES / "bbb_576x324_ref.mp4")) as container:
        return [_halved(frame) for frame in container.decode(video=0)]


def _halved(frame: Any) -> Planes:
    luma, *chroma = (
        np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height, : plane.width] for plane in frame.planes
    )
    rows = luma[::2].astype(np.int16) + luma[1::2]
    return (rows[:, ::2] + rows[:, 1::2] + 2) // 4, *(plane.astype(np.int16) for plane in chroma)
