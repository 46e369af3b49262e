"""The first video stream of a container file, decoded by PyAV (FFmpeg), without scaling or conversion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import InputError
from ..types import Samples
from .source import SequentialSource, VideoInfo

_PLANAR = re.compile(r"(?:yuvj?|yuva)4(?:20|22|44|11|10|40)p(?:(\d+)le)?$|gray(?:(\d+)le)?$|nv(?:12|16|21|24)$")


class ContainerFile(SequentialSource):
    """Decodes ahead on FFmpeg's own threads. Raises InputError where there is no video that can be compared."""

    def __init__(self, path: str) -> None:
        super().__init__()
        import av  # here, since it is not quick and only containers need it

        self._av_error: type[Exception] = av.FFmpegError
        try:
            self._container = av.open(path)
        except (av.FFmpegError, OSError) as error:
            raise InputError(f"{path}: FFmpeg cannot open it ({error})") from None
        try:
            self._open_stream(path)
        except BaseException:
            self._container.close()
            raise

    def _open_stream(self, path: str) -> None:
        if not self._container.streams.video:
            raise InputError(f"{path}: no video stream in it")
        stream = self._container.streams.video[0]
        stream.thread_type = "AUTO"
        pixel_format = stream.codec_context.pix_fmt or ""
        if not _PLANAR.match(pixel_format):
            raise InputError(
                f"{path}: its pixel format {pixel_format or 'unknown'} has no luma plane of its own; convert it, for instance"
                " with `ffmpeg -i IN -pix_fmt yuv420p OUT.y4m`"
            )
        bits = next((int(group) for group in _PLANAR.match(pixel_format).groups() if group), 8)  # type: ignore[union-attr]
        context = stream.codec_context
        frames = stream.frames or None
        self.info = VideoInfo(path, context.name, context.width, context.height, bits, frames, stream.average_rate)
        self._pixel_format = pixel_format
        self._frames: Iterator[Any] = self._container.decode(stream)

    def _next(self, target: Samples | None) -> bool:
        if self.problem is not None:
            return False
        try:
            frame = next(self._frames, None)
        except self._av_error as error:
            self.problem = InputError(f"{self.info.path}: frame {self._position} cannot be decoded ({error})")
            return False
        if frame is None:
            return False
        size = (frame.width, frame.height, frame.format.name)
        if size != (self.info.width, self.info.height, self._pixel_format):
            self.problem = InputError(
                f"{self.info.path}: frame {self._position} is {size[0]}x{size[1]} {size[2]}, the first one"
                f" {self.info.width}x{self.info.height} {self._pixel_format}; a change within a stream cannot be scored"
            )
            return False
        if target is not None:
            plane = frame.planes[0]
            rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: self.info.height]
            target[:] = rows[:, : self.info.width * target.itemsize].view(target.dtype)
        return True

    def close(self) -> None:
        """Close the container."""
        self._container.close()
