"""Reports and pictures to make a page of: two clips and a metric, their names hostile to HTML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkssim.page.pictures import STEPS, ClipView, FrameGroup, FrameView, Gallery, data_uri, encode
from vkssim.report.results import FrameScores, ScoreReport
from vkssim.types import BackendInfo

from ..report.reports import small_record

HOSTILE = ("<img src=x onerror=alert(1)>.mp4", "\"><svg onload=alert(2)>' & <!--.mp4")
METRICS = ("float_ms_ssim", "float_ssim", "</script><script>alert(3)</script>")
TERMS = tuple(f"float_ms_ssim_{term}_scale{scale}" for term in "lcs" for scale in range(5))
RATE = 25.0
NULL_FRAME = 4


def page_report(number: int = 0, frames: int = 12, names: Sequence[str] = METRICS) -> ScoreReport:
    """A report whose scores are all different; in its first metric, frame `NULL_FRAME` has none."""
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


def gallery(*indices: int, clips: Sequence[int] = (0,)) -> Gallery:
    """Plain pictures of frames in that order, each of another colour, in one group of clips."""
    pictures: list[str] = []

    def add(*colour: int) -> int:
        pictures.append(_plain(colour))
        return len(pictures) - 1

    frames = [
        FrameView(
            index,
            add(20 * index, 0, 100),
            tuple(ClipView(clip, add(20 * index, 80, 30 * clip), add(20 * index, 160, 30 * clip)) for clip in clips),
        )
        for index in indices
    ]
    return Gallery(tuple(pictures), (FrameGroup(tuple(clips), tuple(frames)),), _plain((0, 0, 0)), note="All <pictures> fit.")


def embedded(page: str) -> Any:
    """Return the data that a page has for its scripts."""
    return json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)[0])


def _plain(colour: Sequence[int]) -> str:
    return data_uri(encode(np.full((64, 96, 3), colour, np.uint8), *STEPS[0]))
