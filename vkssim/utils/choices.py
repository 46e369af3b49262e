"""The words and numbers that options choose from, each list once, and the options of several packages that choose from them.

The first entry of a list of words is the default. The command line makes its flags of these declarations, the modules that act
on them check their arguments with them, and reports record them. This module does not load NumPy, because the help of every
command comes from it.
"""

from __future__ import annotations

from .values import Section, Value

BACKENDS = ("vulkan", "cpu")
"""The backends that compute scores: a Vulkan device, or NumPy."""

ENGINES = ("local", "ray")
"""The engines that run workers: this machine, or a Ray cluster."""

TASK_SECONDS = 15.0
"""The target duration of one range of frames: long compared with the cost of starting a range, and short compared with the work
that is lost when a worker ends; docs/notes/2026-11-29-cost-of-a-catalogue.md has the measurements.
"""

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


def _choice(name: str, section: Section, help: str, choices: tuple[str, ...]) -> Value:  # `help` as click calls it
    return Value(
        title=name,
        flags=(f"--{name}",),
        help=help,
        section=section,
        shows_default=True,
        choices=choices,
        name=name,
        hint=str,
        default=choices[0],
    )


BACKEND = _choice(
    "backend", Section.DEVICE, "Compute on a Vulkan device, or with NumPy (cpu), which is slow and exact.", BACKENDS
)
ENGINE = _choice("engine", Section.DEVICE, "Score on this machine, or on the GPUs of a Ray cluster.", ENGINES)
DECODE = _choice(
    "decode",
    Section.DEVICE,
    "Decode containers with the GPU that scores where it can, else the CPU (auto); with the CPU (cpu); or with"
    " that hardware, or fail; cuda is the GPU that scores. The samples are the same.",
    DECODERS,
)
PLANE_CHOICE = _choice(
    "planes",
    Section.METRICS,
    "Score the luma; or Y, Cb and Cr, as NAME_y, NAME_cb and NAME_cr; or these and NAME_all, their mean by area.",
    PLANES,
)
SYNC = _choice("sync", Section.FRAMES, "Pair frames by number, or by presentation time.", SYNCS)
