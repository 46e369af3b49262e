"""List the words and numbers that options choose from, each list once; the first entry of a list of words is the default.

The command line offers what these lists have, and the modules that act on them refuse everything else. This module imports
nothing, so that the help of a command is printed without NumPy.
"""

from __future__ import annotations

BACKENDS = ("vulkan", "cpu")
"""Where scores are computed: on a Vulkan device, or with NumPy."""

ENGINES = ("local", "ray")
"""Where workers run: on this machine, or on a Ray cluster."""

DECODERS = ("cpu", "cuda", "videotoolbox", "d3d11va", "vaapi", "qsv")
"""What decodes containers: the processor, or hardware by FFmpeg's name of its API."""

PLANES = ("y", "yuv", "all")
"""Luma; all three planes; those and what FFmpeg calls All, their mean weighted by area."""

SYNCS = ("index", "pts")
"""How frames are paired: by their number, or by their presentation time."""

RESAMPLERS = ("bicubic", "lanczos", "bilinear", "area", "spline", "gauss", "sinc", "point")
"""The resamplers of libswscale, by its names."""

BIT_DEPTHS = (8, 9, 10, 12, 14, 16)
"""The depths of samples that are read, in bits."""
