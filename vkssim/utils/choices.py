"""List the words and numbers that options choose from, each list once, and the sections of the help.

The first entry of a list of words is the default.

The command line offers the entries of these lists, and the modules that act on them refuse everything else. This module imports
no declared options, so that the help of a command is printed without NumPy.
"""

from __future__ import annotations

from enum import StrEnum

BACKENDS = ("vulkan", "cpu")
"""The backends that compute scores: a Vulkan device, or NumPy."""

ENGINES = ("local", "ray")
"""The engines that run workers: this machine, or a Ray cluster."""

DECODERS = ("auto", "cpu", "cuda", "videotoolbox", "d3d11va", "vaapi", "qsv")
"""The decoders of containers: ``"auto"`` is the GPU that scores if it can decode, else the CPU; ``"cpu"`` is the
CPU; the others are FFmpeg's names of the APIs of hardware.
"""

PLANES = ("y", "yuv", "all")
"""The planes to score: the luma; all three planes; or these and their mean weighted by area, which FFmpeg calls All."""

SYNCS = ("index", "pts")
"""The ways to pair frames: by their number, or by their presentation time."""

RESAMPLERS = ("bicubic", "lanczos", "bilinear", "area", "spline", "gauss", "sinc", "point")
"""The resamplers, by libswscale's names."""

FILM_GRAIN = ("on", "off")
"""Whether decoders add the film grain that a stream describes."""

BIT_DEPTHS = (8, 9, 10, 12, 14, 16)
"""The depths of samples that can be read, in bits."""

FORMS = {"json": "JSON", "xml": "XML", "csv": "CSV", "sub": "MicroDVD subtitles"}
"""The forms of a report, with their titles. The name of a form is its flag and the ending of its files too."""


class Section(StrEnum):
    """The sections in which the help of a command lists its options, in the order of the help."""

    INPUTS = "Inputs"
    FRAMES = "Frames"
    PICTURES = "Pictures"
    METRICS = "Metrics"
    ENCODER = "Encoder"
    OUTPUTS = "Outputs"
    VERDICT = "Verdict"
    DEVICE = "Device"
    GENERAL = "General"
    LIBVMAF = "Flags of libvmaf's tool"
