"""Names of files and of sequences of pictures."""

from __future__ import annotations

import os

from vkssim import RawDescription
from vkssim.frames.open import open_source

from .harness import SCRATCH, Choices, refusals, scratch

NAMES = ("frame_1.png", "frame_2.png", "frame_{a,b}{a,b}.png", "frame_00003.png", "a%d.png", "[.png")


def one_input(data: bytes) -> None:
    """Open whatever a name stands for, in a folder with some files."""
    for name in NAMES:
        if not (SCRATCH / name).exists():
            scratch(name, b"no picture")
    path = Choices(data).text().replace("/", "∕")  # nothing beyond the folder
    with refusals():
        open_source(os.path.join(SCRATCH, path), RawDescription(16, 12, "420", 8)).close()
