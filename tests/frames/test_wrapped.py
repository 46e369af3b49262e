"""A wrapper has all attributes of its source, except for those that it changes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vkssim.frames.info import VideoInfo
from vkssim.frames.pairing.tee import Tee
from vkssim.frames.source import ATTRIBUTES, FrameSource, ProcessedSource, WrappedSource
from vkssim.frames.source_pictures import Deinterlaced
from vkssim.frames.transforms import Crop

INFO = VideoInfo("clip.yuv", "raw", 64, 48, 8, 10)

OF_STEPS = {"info", "read", "read_any_size", "sample", "read_external", "decoded_frame", "external", "aperture", "orientation"}
OF_READERS = {
    "read", "read_any_size", "read_external", "close", "problem", "length",
    "at_start", "seek_index", "seek", "verify_boundary", "sample", "decoded_frame", "give_up",
}  # fmt: skip
OF_DEINTERLACED = {
    "info", "read", "read_any_size", "sample", "read_external", "decoded_frame", "external", "concurrent", "seek_index", "seek"
}  # fmt: skip
"""The attributes that a wrapper does not take from its source."""


def _processed(source: Any) -> FrameSource:
    return ProcessedSource(source, Crop(32, 32))


def _reader(source: Any) -> FrameSource:
    return Tee(source, 1).readers[0]


WRAPPERS: dict[str, tuple[set[str], Callable[[Any], FrameSource]]] = {
    "cropped": (OF_STEPS, _processed),
    "in step": (OF_READERS, _reader),
    "deinterlaced": (OF_DEINTERLACED, Deinterlaced),
}
"""The wrappers of a source, each with the attributes that are not those of the source."""


def _source(**values: Any) -> Any:
    """A source that has only these values, in place of methods too."""
    return SimpleNamespace(**{"info": INFO, "external": False, **values})


def _classes(of: type[FrameSource]) -> set[type[FrameSource]]:
    return {of}.union(*map(_classes, of.__subclasses__()))


def test_these_are_all_wrappers() -> None:
    wrapped = {type(wrap(_source(**dict.fromkeys(ATTRIBUTES - {"info"})))) for _, wrap in WRAPPERS.values()}
    assert _classes(WrappedSource) - {WrappedSource} == wrapped


@pytest.mark.parametrize("kind", WRAPPERS)
def test_every_attribute_is_that_of_the_source(kind: str) -> None:
    """The attributes of a source are listed by its class, so that none that is added there can be forgotten here."""
    assert {"hidden_frames", "packets", "info", "file_bytes"} <= ATTRIBUTES
    own, wrap = WRAPPERS[kind]
    source = _source(**dict.fromkeys(ATTRIBUTES - {"info"}, object()))
    wrapper = wrap(source)
    for name in own:
        assert getattr(wrapper, name) is not getattr(source, name), name
    of_source = ATTRIBUTES - own - {"close"}
    for name in of_source:
        setattr(source, name, f"the {name} that it learned after it was wrapped")
    assert [name for name in of_source if getattr(wrapper, name) is not getattr(source, name)] == []


@pytest.mark.parametrize("kind", [kind for kind, (own, _) in WRAPPERS.items() if "close" not in own])
def test_closing_closes_the_source(kind: str) -> None:
    closed: list[bool] = []
    wrapper = WRAPPERS[kind][1](_source(**dict.fromkeys(ATTRIBUTES - {"info", "close"}), close=lambda: closed.append(True)))
    wrapper.close()
    assert closed == [True]


def test_the_note_of_a_step_goes_with_later_notes_of_the_source() -> None:
    source = _source()
    wrapper = _processed(source)
    source.info = VideoInfo("clip.yuv", "raw", 64, 48, 8, 10, notes=("decoded on the CPU",))
    assert wrapper.info.notes[0] == "decoded on the CPU"
    assert (wrapper.info.width, wrapper.info.height, len(wrapper.info.notes)) == (32, 32, 2)


def test_a_sample_beyond_the_range_is_the_problem_before_one_of_the_source() -> None:
    def read(_number: int, memory: Any) -> Any:
        memory[0][:] = 1023
        memory[0][5, 5] = 1024
        return memory

    source = _source(info=VideoInfo("clip.yuv", "raw", 64, 48, 10, 10), problem=None, read_any_size=read)
    wrapper = _processed(source)
    assert wrapper.problem is None
    assert wrapper.read([7], [(np.empty((32, 32), np.uint16),)]) == 0
    assert "frame 7 has a sample of 1024" in str(wrapper.problem)
