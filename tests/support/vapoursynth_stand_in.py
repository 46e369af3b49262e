"""As much of VapourSynth's documented Python interface (API 4) as `vkssim.vapoursynth` uses, where its wheel is not installed.

Names, argument names and behaviour are those of its Python reference and of std.ModifyFrame: planes are read as 2-D memoryviews
with padded rows, frames are read-only until they are copied, the selector gets a list of frames if there are several clips.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

_PADDING = 32


class ColorFamily(enum.IntEnum):
    UNDEFINED = 0
    GRAY = 1
    RGB = 2
    YUV = 3


class SampleType(enum.IntEnum):
    INTEGER = 0
    FLOAT = 1


@dataclass(frozen=True)
class VideoFormat:
    name: str
    color_family: ColorFamily
    sample_type: SampleType
    bits_per_sample: int


FORMATS = {
    "GRAY8": VideoFormat("Gray8", ColorFamily.GRAY, SampleType.INTEGER, 8),
    "YUV420P8": VideoFormat("YUV420P8", ColorFamily.YUV, SampleType.INTEGER, 8),
    "YUV420P10": VideoFormat("YUV420P10", ColorFamily.YUV, SampleType.INTEGER, 10),
    "GRAY16": VideoFormat("Gray16", ColorFamily.GRAY, SampleType.INTEGER, 16),
    "GRAYS": VideoFormat("GrayS", ColorFamily.GRAY, SampleType.FLOAT, 32),
    "GRAYH": VideoFormat("GrayH", ColorFamily.GRAY, SampleType.FLOAT, 16),
    "RGB24": VideoFormat("RGB24", ColorFamily.RGB, SampleType.INTEGER, 8),
}


class Error(Exception):
    """The error of a request for a frame whose filter fails."""


class FrameProps(dict[str, Any]):
    def __init__(self, values: dict[str, Any], readonly: bool) -> None:
        super().__init__(values)
        self._readonly = readonly

    def update(self, *args: Any, **values: Any) -> None:
        if self._readonly:
            raise Error("Cannot modify frame properties of a read-only frame")
        super().update(*args, **values)


@dataclass
class VideoFrame:
    planes: list[np.ndarray]
    readonly: bool = True
    props: FrameProps = field(default_factory=lambda: FrameProps({}, readonly=True))

    def __getitem__(self, plane: int) -> memoryview:
        view = self.planes[plane].data
        return view.toreadonly() if self.readonly else view

    def copy(self) -> VideoFrame:
        return VideoFrame(self.planes, readonly=False, props=FrameProps(dict(self.props), readonly=False))


class VideoNode:
    def __init__(self, form: VideoFormat, width: int, height: int, num_frames: int, make: Callable[[int], VideoFrame]) -> None:
        self.format, self.width, self.height, self.num_frames = form, width, height, num_frames
        self._make = make
        self.std = SimpleNamespace(ModifyFrame=self._modify_frame)

    def get_frame(self, n: int) -> VideoFrame:
        return self._make(n)

    def __getitem__(self, which: int | slice) -> VideoNode:
        """Some frames, at least one, as a clip."""
        numbers = range(self.num_frames)[which]
        of_clip = [numbers] if isinstance(numbers, int) else numbers
        if not of_clip:
            raise Error("a clip has one frame at least")
        return VideoNode(self.format, self.width, self.height, len(of_clip), lambda n: self.get_frame(of_clip[n]))

    def __add__(self, other: VideoNode) -> VideoNode:
        """This clip, and then another one."""

        def make(n: int) -> VideoFrame:
            return self.get_frame(n) if n < self.num_frames else other.get_frame(n - self.num_frames)

        return VideoNode(self.format, self.width, self.height, self.num_frames + other.num_frames, make)

    def _modify_frame(self, clips: Sequence[VideoNode], selector: Callable[[int, Any], VideoFrame]) -> VideoNode:
        def make(n: int) -> VideoFrame:
            frames = [clip.get_frame(n) for clip in clips]
            try:
                return selector(n, frames[0] if len(frames) == 1 else frames)
            except Exception as error:
                raise Error(str(error)) from error

        return VideoNode(self.format, self.width, self.height, self.num_frames, make)


def clip_of(name: str, luma: np.ndarray, **props: int) -> VideoNode:
    """A clip of a format, whose frames have this luma, (frames, H, W), grey chroma if the format has any, and `props`."""
    form = FORMATS[name]
    height, width = luma.shape[1:]

    def make(n: int) -> VideoFrame:
        padded = np.zeros((height, width + _PADDING), luma.dtype)
        padded[:, :width] = luma[n]
        planes = [padded[:, :width], *[np.zeros_like(luma[n])] * (2 * (form.color_family is ColorFamily.YUV))]
        return VideoFrame(planes, props=FrameProps(props, readonly=True))

    return VideoNode(form, width, height, len(luma), make)
