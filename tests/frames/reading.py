"""Reads sources to their end, as a run would."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from vkssim.frames.open import open_file, oriented
from vkssim.frames.options import RawDescription
from vkssim.frames.pairing.preprocessing import check_description
from vkssim.frames.source import FrameSource
from vkssim.types import Planes

from ..support.pictures import Picture

NOTHING_SAID = RawDescription()


def describe(luma: Picture, pixel_format: str = "420", bits: int = 8) -> RawDescription:
    """The description of a raw clip that a caller would give."""
    return RawDescription(luma.shape[2], luma.shape[1], pixel_format, bits)


def open_source(path: str, raw: RawDescription = NOTHING_SAID, stream: int | None = None) -> FrameSource:
    """Open one clip as a pair of clips is opened."""
    with ExitStack() as stack:
        opened = stack.enter_context(open_file(path, raw, stream))
        check_description(raw, opened.info)
        stack.pop_all()
    return oriented(opened)


def read(source: FrameSource, numbers: range | None = None) -> Picture:
    """The luma of the frames with these numbers, by default of the first hundred; fewer if the source ends before."""
    numbers = range(100) if numbers is None else numbers
    info = source.info
    frames = np.zeros((len(numbers), info.height, info.width), np.uint8 if info.bits == 8 else np.uint16)
    return frames[: source.read(numbers, [(frame,) for frame in frames])]


def read_with_notes(path: str, stream: int | None = None) -> tuple[Picture, tuple[str, ...]]:
    """The luma of a clip, and the notes on it."""
    with open_source(path, stream=stream) as source:
        return read(source), source.info.notes


def read_file(path: str, raw: RawDescription = NOTHING_SAID) -> Picture:
    """All frames of a file that must be sound."""
    with open_source(path, raw) as source:
        frames = read(source)
        assert source.problem is None
    return frames


def read_planes(source: FrameSource, numbers: Sequence[int], count: int) -> list[Planes]:
    """The first `count` planes of the frames of these numbers."""
    targets = [source.info.new_planes(count) for _ in numbers]
    return targets[: source.read(numbers, targets)]


def assert_frames(found: Sequence[Planes], expected: Sequence[Planes]) -> None:
    """Frames are equal, plane by plane."""
    for planes, others in zip(found, expected, strict=True):
        for plane, other in zip(planes, others, strict=True):
            np.testing.assert_array_equal(plane, other)
