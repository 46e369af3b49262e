"""Frames of known planes, in memory and in containers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from vkssim.types import Planes, plane_shapes

from ..support.children import in_child
from ..support.pictures import Picture, clip

_ONE_THREAD = "pools=none:frame-threads=1"
"""Options of x265, whose threads may otherwise wait for each other for good."""


def noise_planes(width: int, height: int, chroma: str, bits: int, seed: int = 0) -> Planes:
    """Planes of noise; all values of the depth occur."""
    rng = np.random.default_rng(seed)
    dtype = np.uint8 if bits == 8 else np.uint16
    return tuple(rng.integers(0, 2**bits, shape, dtype) for shape in plane_shapes(width, height, chroma))


def video_frame(width: int, height: int, pixel_format: str, planes: Iterable[np.ndarray]) -> av.VideoFrame:
    """A frame whose planes start with these rows, given as they lie in memory."""
    frame = av.VideoFrame(width, height, pixel_format)
    for plane, rows in zip(frame.planes, planes, strict=True):
        samples: Any = plane  # some versions of PyAV declare its buffer, some do not
        memory = np.frombuffer(samples, np.uint8).reshape(-1, plane.line_size)
        data = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
        memory[: data.shape[0], : data.shape[1]] = data
    return frame


def flat_chroma(luma: np.ndarray, pixel_format: str = "yuv420p") -> list[av.VideoFrame]:
    """Frames with this luma, (frames, H, W), and grey chroma."""
    height, width = luma.shape[1:]
    planes = av.VideoFrame(width, height, pixel_format).planes[1:]
    chroma = [np.full((plane.height, plane.width), 128, luma.dtype) for plane in planes]
    return [video_frame(width, height, pixel_format, (picture, *chroma)) for picture in luma]


def moving_frames(count: int, height: int = 64, width: int = 96, noise: int = 16) -> list[av.VideoFrame]:
    """Each is much of the one before, moved, and a little of its own."""
    texture = clip(1, height, width + count)[0] // 2
    own = np.random.default_rng(5).integers(0, noise, (count, height, width), np.uint8)
    chroma = [np.full((height // 2, width // 2), value, np.uint8) for value in (100, 150)]
    return [
        video_frame(width, height, "yuv420p", [texture[:, number : number + width] + own[number], *chroma])
        for number in range(count)
    ]


@in_child
def encode_frames(
    path: Path,
    frames: Sequence[av.VideoFrame],
    codec: str,
    *,
    options: dict[str, str] | None = None,
    times: Sequence[float] | None = None,
    rate: int | Fraction = 25,
    rotation: int | None = None,
    muxer: dict[str, str] | None = None,
    **settings: Any,
) -> str:
    """Frames in a container, which the ending of the path says; `times` in seconds, else one frame every 1/rate."""
    options = dict(options or {})
    if codec == "libx265":
        options["x265-params"] = ":".join(filter(None, (_ONE_THREAD, options.get("x265-params"))))
    with av.open(str(path), "w", options=muxer or {}) as container:
        stream: Any = container.add_stream(codec, rate=rate, options=options)
        stream.width, stream.height, stream.pix_fmt = frames[0].width, frames[0].height, frames[0].format.name
        ticks = rate if times is None else 1000
        stream.time_base = stream.codec_context.time_base = Fraction(1, ticks)
        for name, value in settings.items():
            setattr(stream.codec_context, name, value)
        if rotation is not None:
            stream.set_display_rotation(rotation)
        for number, frame in enumerate(frames):
            frame.pts = number if times is None else round(ticks * times[number])
            frame.time_base = Fraction(1, ticks)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if stream.codec_context.options:  # PyAV leaves options there that FFmpeg does not know, without a message
            raise ValueError(f"the encoder {codec} has no option {', '.join(stream.codec_context.options)}")
    return str(path)


def encode_colours(
    path: Path, size: tuple[int, int], frames: int, pixel_format: str = "yuv420p", codec: str = "libx264", **options: str
) -> None:
    """Encode 4:2:0 of 8 or 10 bits, 25 frames a second; `size` is width and height, which need not be even for VP9."""
    noise = np.random.default_rng(3)
    frames_of = [colour_frame(luma, noise, pixel_format) for luma in clip(frames, *size[::-1])]
    encode_frames(path, frames_of, codec, options=options)


def colour_frame(luma: Picture, noise: np.random.Generator, pixel_format: str) -> av.VideoFrame:
    """A frame of 4:2:0: its Y from 8 bits of luma, Cb from them too, and Cr from their negative, with noise."""
    half = luma[::2, ::2].astype(np.int16)
    grain = noise.integers(-9, 10, (2, *half.shape))
    planes = luma, np.clip(half + grain[0], 0, 255), np.clip(255 - half + grain[1], 0, 255)
    high = pixel_format == "yuv420p10le"
    samples = [plane.astype(np.uint16) << 2 if high else plane.astype(np.uint8) for plane in planes]
    return video_frame(luma.shape[1], luma.shape[0], pixel_format, samples)
