"""Decode a clip with PyAV alone, in software or on a device, and compare the planes bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.codec.hwaccel import HWAccel

from vkssim.types import Planes

_INTERLEAVED = {
    "nv12": 8,
    "nv16": 8,
    "nv24": 8,
    "p010le": 16,
    "p016le": 16,
    "p210le": 16,
    "p216le": 16,
    "p410le": 16,
    "p416le": 16,
}
"""Formats with one plane of luma and one of Cb and Cr in turn: the bits that a sample takes, its value in the highest ones."""

_HIGHEST_BITS = {"yuv444p16le": 16, "yuv444p10msble": 16, "yuv444p12msble": 16}
"""Planar formats of devices whose samples have their value in the highest bits."""

_HARDWARE_DECODERS = {"libdav1d": "av1"}
"""Decoders of FFmpeg that use devices, where the one that it takes by itself cannot."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of the frames of two decoders.

    `refused` says why the device decoded no frame at all. `first` is the first frame that differs in its samples, size or
    time, `difference` the greatest one between samples. `said` has the errors and the messages of the device's decoder.
    """

    frames: int
    device_frames: int
    first: int | None
    difference: int
    said: list[str]
    refused: str | None = None

    @property
    def equal(self) -> bool:
        """Return whether both gave the same frames."""
        return self.first is None and self.frames == self.device_frames


@dataclass(frozen=True)
class _Decoded:
    time: float | None
    planes: Planes


def device_problem(kind: str) -> str | None:
    """Return why this machine has no device of a kind, such as ``"cuda"``; None if it has one."""
    try:
        decoder = av.CodecContext.create("h264", "r", hwaccel=HWAccel(kind, allow_software_fallback=False))
    except (av.error.FFmpegError, NotImplementedError, RuntimeError, ValueError) as error:
        return f"PyAV {av.__version__} opens no device of the kind {kind}: {error}"
    return None if decoder.is_hwaccel else f"PyAV {av.__version__} decodes nothing on devices of the kind {kind}"


def planes_of(frame: Any, bits: int) -> Planes:
    """Return (H, W) planes of a frame of `bits` a sample, as software decoders give them, uint8 or uint16."""
    name = frame.format.name
    stored = _INTERLEAVED.get(name) or _HIGHEST_BITS.get(name)
    dtype = np.dtype("<u2" if (stored or bits) > 8 else "u1")
    memory = [np.frombuffer(plane, dtype).reshape(-1, plane.line_size // dtype.itemsize) for plane in frame.planes]
    if name in _INTERLEAVED:
        chroma = frame.planes[1]
        both = memory[1][: chroma.height, : 2 * chroma.width]
        planes = [memory[0][: frame.height, : frame.width], both[:, ::2], both[:, 1::2]]
    else:
        planes = [rows[: plane.height, : plane.width] for rows, plane in zip(memory, frame.planes, strict=True)]
    shift = stored - bits if stored else 0
    return tuple(plane >> shift for plane in planes)


def compare(path: Path, kind: str) -> Comparison:
    """Decode a clip in software and on a device of a kind, and compare the frames."""
    software: list[_Decoded] = []
    depths: list[int] = []
    errors: list[str] = []
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "NONE"
        for frame in _until_error(container.decode(video=0), errors):
            depths.append(frame.format.components[0].bits)
            software.append(_Decoded(frame.time, planes_of(frame, depths[-1])))
    said: list[str] = []
    hardware: list[_Decoded] = []
    before = av.logging.get_level()
    av.logging.set_level(av.logging.ERROR)
    try:
        with av.logging.Capture(local=False) as messages:
            for number, frame in enumerate(_until_error(_device_frames(path, kind), said)):
                bits = depths[min(number, len(depths) - 1)] if depths else 8
                hardware.append(_Decoded(frame.time, planes_of(frame, bits)))
    finally:
        av.logging.set_level(before)
    said += [text.strip() for _, _, text in messages]
    refused = None if hardware or not software else "; ".join(said) or "no frame, and no word of it"
    first, difference = None, 0
    for number, (frame, other) in enumerate(zip(software, hardware, strict=False)):
        apart = _apart(frame, other)
        if apart is not None:
            first = number if first is None else first
            difference = max(difference, apart)
    return Comparison(len(software), len(hardware), first, difference, said, refused)


def _apart(frame: _Decoded, other: _Decoded) -> int | None:
    """Return the greatest difference between two frames; None if they are the same, 0 if only size or time differ."""
    if [plane.shape for plane in frame.planes] != [plane.shape for plane in other.planes]:
        return 0
    pairs = zip(frame.planes, other.planes, strict=True)
    greatest = max(int(np.abs(one.astype(np.int32) - two).max()) for one, two in pairs)
    return greatest if greatest or frame.time != other.time else None


def _until_error(frames: Iterator[Any], errors: list[str]) -> Iterator[Any]:
    try:
        yield from frames
    except (av.error.FFmpegError, NotImplementedError, RuntimeError) as error:
        errors.append(str(error))


def _device_frames(path: Path, kind: str) -> Iterator[Any]:
    """Yield frames that a device decoded and that lie in the memory of this machine; software never stands in."""
    device = HWAccel(kind, allow_software_fallback=False)
    with av.open(str(path)) as container:
        taken = container.streams.video[0].codec_context
        other = _HARDWARE_DECODERS.get(taken.name)
        if other is not None:
            decoder: Any = av.CodecContext.create(other, "r", hwaccel=device)
            if not decoder.is_hwaccel:
                raise RuntimeError(f"the decoder {other} uses no devices of that kind")
            decoder.extradata = taken.extradata
            for packet in container.demux(video=0):
                yield from decoder.decode(packet if packet.size else None)
            return
    with av.open(str(path), hwaccel=device) as container:
        yield from container.decode(video=0)
