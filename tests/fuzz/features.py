"""Texts that name metrics and their options."""

from __future__ import annotations

from vkssim.features.plane_metrics import FrameMetrics
from vkssim.types import FrameFormat

from .harness import Choices, refusals


def one_input(data: bytes) -> None:
    """One feature a line."""
    choices = Choices(data)
    frame = FrameFormat.of_bits(*choices.pick([(176, 176), (64, 32), (1, 1), (4096, 4096)]), choices.pick([8, 10, 16]))
    with refusals():
        FrameMetrics(choices.text().split("\n"), (frame,) * choices.pick([1, 3]))
