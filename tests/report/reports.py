"""A small report to write: two frames, one score missing, one infinite."""

from __future__ import annotations

import math

from vkssim.backends.base import BackendInfo
from vkssim.results import ScoreReport
from vkssim.scorer import FrameScores

NAMES = ("float_ms_ssim", "float_ssim")


def small_report() -> ScoreReport:
    """Frames 0 and 5, as a subsample of 5 leaves them."""
    return ScoreReport(
        reference="ref & <original>.yuv",
        distorted="dis.yuv",
        width=32,
        height=24,
        bits=10,
        names=NAMES,
        backend=BackendInfo("vulkan", "Made Up 9000", "driver 1.2"),
        frames=[
            FrameScores(0, {"float_ms_ssim": 0.9999999, "float_ssim": 1 / 3}),
            FrameScores(5, {"float_ms_ssim": math.nan, "float_ssim": math.inf}),
        ],
        warnings=["a warning"],
        seconds=0.5,
    )
