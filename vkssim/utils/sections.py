"""Name the sections of the help, apart from what declares options, which the group of all commands does not load."""

from __future__ import annotations

from enum import StrEnum


class Section(StrEnum):
    """Name the sections that the help of a command lists its options in, in their order."""

    INPUTS = "Inputs"
    FRAMES = "Frames"
    PICTURES = "Pictures"
    METRICS = "Metrics"
    OUTPUTS = "Outputs"
    VERDICT = "Verdict"
    DEVICE = "Device"
    GENERAL = "General"
