"""The assumed speed of workers until it is measured, and the target duration of a range; docs/scale.md has the measurements."""

from __future__ import annotations

PIXELS_A_SECOND = {"gpu": 2e9, "software": 3e7, "cpu": 3e6}
"""Pixels of the reference that a worker of each kind scores in a second: a slow GPU, or two cores."""

DECODED_PIXELS_A_SECOND = 8e7
"""Pixels of the reference that one core decodes in a second, together with the distorted clip, as H.264."""

SECONDS = 15.0
"""Target duration of one range, in seconds.

It is long compared with the cost of starting a range, and short compared with the work that is lost when a worker ends.
"""
