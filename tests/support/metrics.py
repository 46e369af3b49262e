"""The metrics by kind, from the package's own table: a new metric is tested without being named here."""

from __future__ import annotations

from vkssim.metrics import FEATURES, make_metric
from vkssim.types import FrameFormat

SIMILARITIES = tuple(name for name in FEATURES if make_metric(name, FrameFormat.of_bits(576, 324, 8)).similarities)
"""The metrics that are 1 for identical frames, and whose number of all planes is the mean of the planes' numbers."""
