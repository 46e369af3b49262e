"""Reports and pictures to make a page of: two clips and a metric, their names hostile to HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vkssim.backends.base import BackendInfo
from vkssim.report.page.pictures import FrameView, Gallery, encode
from vkssim.results import ScoreReport
from vkssim.scorer import FrameScores

from .reports import small_record

HOSTILE = ("<img src=x onerror=alert(1)>.mp4", "\"><svg onload=alert(2)>' & <!--.mp4")
METRICS = ("float_ms_ssim", "float_ssim", "</script><script>alert(3)</script>")
TERMS = tuple(f"float_ms_ssim_{term}_scale{scale}" for term in "lcs" for scale in range(5))
RATE = 25.0
NULL_FRAME = 4


def page_report(number: int = 0, frames: int = 12, names: Sequence[str] = METRICS) -> ScoreReport:
    """A report of which every score is another one; in its first metric frame `NULL_FRAME` has none."""
    rows = [
        {name: 0.9 - 0.1 * number - 0.01 * place - 0.001 * (index * 7 % frames) for place, name in enumerate(names)}
        for index in range(frames)
    ]
    if frames > NULL_FRAME:
        rows[NULL_FRAME][names[0]] = math.nan
    return ScoreReport(
        reference="clips/ref <b>.mp4",
        distorted=f"clips/{HOSTILE[number]}",
        width=96,
        height=64,
        bits=8,
        names=tuple(names),
        backend=BackendInfo("vulkan", "Made Up <9000>", "driver 1.2"),
        frames=[FrameScores(index, row, index / RATE) for index, row in enumerate(rows)],
        warnings=[f"{names[0]} is null in 1 frame: {HOSTILE[number]}"],
        notes=["distorted scaled"],
        rate=RATE,
        scoring=small_record(f"clips/{HOSTILE[number]}"),
    )


def gallery(*indices: int) -> Gallery:
    """Plain pictures, each of another colour."""
    views = [
        FrameView(index, *(_plain((20 * index, 80 * place, 100)) for place in range(3)))  # type: ignore[misc]
        for index in indices
    ]
    return Gallery(tuple(views), _plain((0, 0, 0)))


def _plain(colour: tuple[int, int, int]) -> str:
    return encode(np.full((64, 96, 3), colour, np.uint8))
