"""Limit the time of the steps of a diagnosis in which drivers run, in seconds."""

from __future__ import annotations

TRIAL_SECONDS = 120
"""The default of the longest time of the trial of one device: its kernels are compiled, and all known results computed."""

SURVEY_SECONDS = 60.0
"""The longest time of loading the drivers and listing their devices."""

ENGINES_SECONDS = 30.0
"""The longest time in which NVIDIA's driver may answer which codecs it decodes."""
