"""The sections of the help, in a module of their own, because the top-level command does not load the declared options."""

from __future__ import annotations

from enum import StrEnum


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
