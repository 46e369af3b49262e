"""Begin to decode a clip by hardware: its first frame has to be the same as the processor's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...errors import DecoderBusyError, DeviceError, InputError
from ..picture.pixels import pixel_format, plane_rows
from ..picture.surfaces import SurfaceReader, format_name
from .clip_decoder import ClipDecoder
from .decoder import UndecodableError, reason
from .description import ClipDescription, stated_colours
from .hardware import FORMATS, CodedVideo, HardwareDecoder


class HardwareStart(NamedTuple):
    """The first frame that a hardware decoder returned, and the reader of its surfaces, if frames stay on the GPU."""

    frame: Any
    surfaces: SurfaceReader | None


def start_by_hardware(clip: ClipDecoder, facts: ClipDescription, first: Any, hardware: HardwareDecoder) -> HardwareStart | str:
    """Decode the first frame of a clip again by hardware; return the reason if hardware cannot decode the clip.

    `first` is the processor's first frame, and `facts` belong to it. Raises DecoderBusyError.
    """
    refusal = hardware.refuses(_coded_video(clip, facts), facts.pixels, facts.format_name)
    if refusal is not None:
        return refusal
    begin = clip.decoder.begin
    try:
        surfaces = None if hardware.surfaces is None else SurfaceReader(hardware.surfaces)
        clip.start(threads=False, begin=begin, hardware=hardware)
        start = HardwareStart(clip.decoder.next(), surfaces)
        return _difference(clip, facts, first, start, hardware) or start
    except RuntimeError:  # of PyAV, for a codec without such a decoder
        return f"FFmpeg has none for {facts.codec.canonical_name}"
    except (*clip.failures, ValueError, UndecodableError, InputError, DeviceError) as error:
        problem = f"its driver or its device refuses ({reason(error)})"
        if hardware.shared:
            raise DecoderBusyError(f"the {hardware.kind} decoder decodes fewer clips in parallel: {problem}") from None
        return problem


def _coded_video(clip: ClipDecoder, facts: ClipDescription) -> CodedVideo:
    """Return the stream for a driver. The size before cropping is not known for each codec, but is never smaller."""
    codec = clip.stream.codec_context
    width, height = max(codec.coded_width, facts.size[0]), max(codec.coded_height, facts.size[1])
    return CodedVideo(facts.codec.canonical_name, facts.pixels.chroma, facts.pixels.bits, width, height)


def _difference(
    clip: ClipDecoder, facts: ClipDescription, first: Any, start: HardwareStart, hardware: HardwareDecoder
) -> str | None:
    """Return how the first frame of hardware differs from the processor's; None if all samples are equal."""
    frame = start.frame
    if frame is None or clip.decoder.doubtful:
        return "it returns no frame, or sees damage in the first one"
    expected, name = FORMATS[facts.pixels.bits], format_name(frame)
    if (name, frame.pts) != (expected, first.pts) or not hardware.has_size(frame, *facts.size):
        return f"its first frame is {frame.width}x{frame.height} {name} at {frame.pts}"
    planes, others = facts.info.new_planes(), facts.info.new_planes()
    facts.pixels.copy(first, planes)
    rows_of = plane_rows if start.surfaces is None else start.surfaces.rows
    pixel_format(clip.path, expected).copy(frame, others, rows_of)
    alike = all(np.array_equal(plane, other) for plane, other in zip(planes, others, strict=True))
    return None if alike and stated_colours(frame) == stated_colours(first) else "its first frame has other samples"
