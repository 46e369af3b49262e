"""A small report to write: two frames, one score missing, one infinite."""

from __future__ import annotations

import math

from vkssim.frames.info import ClipFacts
from vkssim.frames.options import RawDescription
from vkssim.metrics.options import OptionValue
from vkssim.report.record import FeatureFacts, ScoringRecord
from vkssim.report.results import FrameScores, ScoreReport
from vkssim.types import BackendInfo

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


def small_record(path: str = "dis.yuv") -> ScoringRecord:
    """How the small report was scored."""
    options: dict[str, OptionValue] = {"enable_lcs": False, "enable_db": False, "precision": "exact", "clip_db": False}
    return ScoringRecord(
        version="0.1.0",
        command=f"vkssim score -r 'ref & <original>.yuv' -d {path}",
        features=(
            FeatureFacts("float_ms_ssim", "y", {**options, "negative": "null"}, ()),
            FeatureFacts("float_ssim", "y", {**options, "scale": 1, "window": "gaussian11", "estimate": False}, ("scale",)),
        ),
        planes="y",
        sync="index",
        width=32,
        height=24,
        bits=10,
        raw=RawDescription(32, 24, "420", 10),
        reference=ClipFacts("ref & <original>.yuv", "raw", codec="rawvideo", decoder="raw", width=32, height=24, bits=10),
        distorted=ClipFacts(path, "raw", codec="rawvideo", decoder="raw", width=32, height=24, bits=10, fps=25.0),
    )
