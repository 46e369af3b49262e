"""The encoders' names and the defaults of a search, for its Python function and its command alike."""

from __future__ import annotations

ENCODER_NAMES = ("libx264", "libx265", "libsvtav1", "libvpx-vp9", "h264_nvenc", "hevc_nvenc", "av1_nvenc")
"""The encoders that a search can drive, by FFmpeg's names."""

ENCODER = "libx264"
"""The encoder of a search that names none: the one whose streams every player reads."""

TARGET = "float_ms_ssim=0.98"
"""The target of a search that names none: docs/good-score.md says what it looks like."""

SURE = 0.9
"""The least probability that the whole clip meets the targets with the answer of a search."""

STEP = 1.0
"""The distance of two values of a parameter."""

MIN_SECONDS = 40.0
"""The length of all samples together; those of a long clip are 1 % of it."""

MAX_TRIALS = 12
"""The most trials of samples. Few searches need more than four."""

RESAMPLER = "bicubic"
"""The filter of libswscale with which renditions are made, and scaled back: the default of ``vkssim score --scale``."""

LADDER_TRIALS = 60
"""The most trials of a ladder, of all sizes together."""

MIN_BITRATE, MAX_BITRATE = 145.0, 7800.0
"""The bit rates between which a ladder has rungs, in kbit/s: the lowest and the highest of APPLE_H264."""

TOP_SIMILARITY, TOP_VMAF = 0.995, 95.0
"""The score that the first rung of a ladder without a target needs no more than, of a similarity and of VMAF:
docs/good-score.md says what they look like."""

RATE_FACTOR = 1.8
"""The bit rate of a rung over that of the next lower one, at most. Apple's specification asks for 1.5 to 2."""

APPLE_H264 = "234:145,360:365,432:730,432:1100,540:2000,720:3000,720:4500,1080:6000,1080:7800"
"""The ladder of H.264 in Apple's "HLS Authoring Specification for Apple Devices", as HEIGHT:KBPS."""
