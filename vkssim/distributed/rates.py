"""What a worker is expected to do in a second before it is known, as docs/scale.md has it."""

from __future__ import annotations

PIXELS_A_SECOND = {"gpu": 2e9, "software": 3e7, "cpu": 3e6}
"""Of the reference, scored against the distorted clip, by the kind of a worker: a slow GPU, two cores."""

DECODED_PIXELS_A_SECOND = 8e7
"""Of the reference, decoded with the distorted clip, by a core: H.264."""
