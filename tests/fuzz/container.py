"""Containers and pictures: real ones, damaged."""

from __future__ import annotations

from vkssim import PictureOptions, Selection, score_files
from vkssim.frames.open import open_source
from vkssim.frames.options import RawDescription

from .harness import Choices, refusals, scratch
from .y4m import FEATURE

ENDINGS = ("mkv", "mp4", "mov", "webm", "avi", "ts", "png", "jpg", "gif", "tif", "webp", "bmp", "ivf", "h264", "obu", "mpg", "")


def one_input(data: bytes) -> None:
    """A clip against itself, its first frames."""
    choices = Choices(data)
    name = f"clip.{choices.pick(ENDINGS)}"
    sync = choices.pick(["index", "pts"])
    pictures = choices.pick([PictureOptions(), PictureOptions(crop="auto"), PictureOptions(scale="20x14")])
    planes = choices.pick(["y", "all"])
    path = str(scratch(name, choices.rest()))
    with refusals():
        score_files(
            path,
            path,
            features=FEATURE,
            selection=Selection(count=6),
            sync=sync,
            pictures=pictures,
            planes=planes,
            backend="cpu",
        )
    with refusals(), open_source(path, RawDescription()) as source:
        source.packets()
