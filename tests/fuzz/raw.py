"""Raw YUV of any size, depth and format: a file of any length, and a pipe."""

from __future__ import annotations

from typing import Any

from vkssim import PictureOptions, RawDescription, Selection, score_files

from .harness import Choices, refusals, scratch
from .pipes import pipe_of
from .y4m import FEATURE

SIDES = (12, 11, 16, 17, 33, 10, 1, 0, -1, 64, 4096, 32768, 32769, 10**9, 10**30)


def one_input(data: bytes) -> None:
    """A file against itself, and a pipe against the file."""
    choices = Choices(data)
    raw = RawDescription(
        choices.pick(SIDES),
        choices.pick(SIDES),
        choices.pick(["420", "422", "444", "400", "411", "444alpha", "", "nv12"]),
        choices.pick([8, 10, 16, 9, 12, 14, 0, 7, 17, 64]),
    )
    planes = choices.pick(["y", "yuv", "all", "u"])
    selection = choices.pick(
        [
            Selection(count=8),
            Selection(subsample=3, count=20),
            Selection(skip_reference=1, count=5),
            Selection(offset=-1, count=2),
        ]
    )
    pictures = choices.pick([PictureOptions(), PictureOptions(crop="auto"), PictureOptions(scale="15x13")])
    content = choices.rest() * choices.pick([1, 8])
    path = str(scratch("clip.yuv", content))
    how: dict[str, Any] = {"features": FEATURE, "raw": raw, "planes": planes, "selection": selection, "backend": "cpu"}
    with refusals():
        score_files(path, path, pictures=pictures, **how)
    with refusals(), pipe_of(content) as pipe:
        score_files(path, pipe, **how)
