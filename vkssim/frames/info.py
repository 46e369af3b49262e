"""Facts about clips: a stream when it is opened, and the description of a clip that a report records."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from ..errors import InputError
from ..types import Planes, plane_shapes, size_problem
from ..utils.values import ComparisonRule, value


def check_size(width: int, height: int, path: str | None = None) -> None:
    """Raise InputError for a size that no frame of the clip `path` can have. Call it before memory is allocated."""
    if problem := size_problem(width, height):
        raise InputError(problem if path is None else f"{path}: {problem}")


@dataclass(frozen=True)
class VideoInfo:
    """The facts about a stream that are known when it is opened. A value is None if the stream does not state it."""

    path: str
    kind: str
    width: int
    height: int
    bits: int
    frames: int | None = None
    """The number of frames; None if only reading to the end can tell."""
    fps: Fraction | None = None
    """Frames per second; None if the stream has no constant rate."""
    chroma: str = "400"
    matrix: str | None = None
    range: str | None = None
    """Either "full" or "limited"; "full" for grey that states none."""
    notes: tuple[str, ...] = ()
    """The changes of its pictures."""
    crop: str | None = None
    """The rectangle to which the user had both clips cropped."""
    resampler: str | None = None
    """The method of scaling."""
    transfer: str | None = None
    field_order: str | None = None
    """One of "progressive", "top field first", "bottom field first", or "interlaced" if the first field is not known."""
    sample_aspect: Fraction | None = None
    """The displayed width of a sample divided by its height."""
    warnings: tuple[str, ...] = ()
    """The changes of its pictures that users must know about."""
    own_crop: str | None = None
    """The rectangle to which this clip alone was cropped before."""
    rotation: int = 0
    """The clockwise rotation in degrees that the clip states and its pictures have."""
    is_grey: bool = False
    scaling: tuple[Fraction, Fraction] = (Fraction(1), Fraction(1))
    """How many times as wide and as high its frames were made."""
    own_bits: int | None = None
    """The depth of its samples before they were brought to a larger one; None if they were not."""

    @property
    def own_size(self) -> tuple[int, int] | None:
        """Return the width and the height of its frames before they were scaled up; None if they were not."""
        across, down = self.scaling
        if min(across, down) < 1 or across == down == 1:
            return None
        return round(self.width / across), round(self.height / down)

    def new_planes(self, count: int = 3) -> Planes:
        """Return memory for the first `count` planes of a frame, uint8 for 8 bits and uint16 for more."""
        dtype = np.uint8 if self.bits == 8 else np.uint16
        return tuple(np.empty(shape, dtype) for shape in plane_shapes(self.width, self.height, self.chroma)[:count])


_FREE, _NOTED, _REFUSED = ComparisonRule.FREE, ComparisonRule.NOTED, ComparisonRule.REFUSED
_value = partial(value, default=None, differs=_FREE)
_colour = partial(_value, of_reference=_REFUSED, across=_FREE, optional=True)
"""A value that says what samples mean, which must be equal for one reference."""


@dataclass(frozen=True)
class ClipFacts:
    """The description of a clip in a report, before preprocessing. A value is None if it is not known.

    `container` and `codec` have FFmpeg's names. `decoder` is a name of FFmpeg, ``"raw"`` or ``"Y4M"``. `decoder_reason` names
    the hardware decoder that was preferred, and says why it did not decode the clip. `matrix` and `range` describe the samples
    that were scored: as the clip states them, or as its R'G'B' was converted. Grey that states no range is full. `transfer`
    and `field_order` are as the clip states them. `kbps` is the bit rate of the packets of the video stream; `VideoPackets`
    and docs/report.md say when it is known. `resampler` is the method of scaling, and `cropped_to` the rectangle that this
    clip alone was cropped to.

    Clips of one ladder differ by nature. Their reference must be one file, whose samples have one meaning.
    """

    path: str = _value("file", default="")
    container: str | None = _value("container")
    # Another stream of the same reference may show another picture.
    stream: int | None = _value("stream of the container", of_reference=ComparisonRule.WARNED, across=_FREE, optional=True)
    codec: str | None = _value("codec", column=True)
    decoder: str | None = _value("decoder")
    decoder_reason: str | None = _value("why not by hardware", sparse=True)
    decoder_version: str | None = _value("decoder version", differs=_NOTED, optional=True)
    width: int | None = _value("width", unit="samples", column=True)
    height: int | None = _value("height", unit="samples", column=True)
    bits: int | None = _value("depth", unit="bit")
    chroma: str | None = _value("chroma format")
    matrix: str | None = _colour("matrix")
    range: str | None = _colour("range")
    transfer: str | None = _colour("transfer")
    field_order: str | None = _colour("field order")
    fps: float | None = _value("frame rate", unit="frames/s", column=True)
    frames: int | None = _value("number of frames")
    duration: float | None = _value("duration", unit="s", column=True)
    kbps: float | None = _value("video bit rate", unit="kbit/s")
    file_bytes: int | None = _value("file size", of_reference=_REFUSED, across=_FREE, optional=True, unit="bytes", column=True)
    resampler: str | None = _value("resampler", differs=_REFUSED, optional=True)
    cropped_to: str | None = _value("cropped to", of_reference=_REFUSED, across=_FREE)


@dataclass(frozen=True)
class VideoPackets:
    """The totals of the packets of a video stream: their `bytes`, and the duration of their frames in `seconds`."""

    bytes: int
    seconds: float | None
