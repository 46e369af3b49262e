"""What is expected of workers before it is known, and asked of them, as docs/scale.md has it."""

from __future__ import annotations

PIXELS_A_SECOND = {"gpu": 2e9, "software": 3e7, "cpu": 3e6}
"""Of the reference, scored against the distorted clip, by the kind of a worker: a slow GPU, two cores."""

DECODED_PIXELS_A_SECOND = 8e7
"""Of the reference, decoded with the distorted clip, by a core: H.264."""

SECONDS = 15.0
"""That a part should take: long beside what it costs to begin one and to hand it out, short beside what is lost with one."""
