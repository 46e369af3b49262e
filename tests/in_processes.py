"""What the processes of test_threads do. Each of them imports this module, so it imports no more than they need."""

from __future__ import annotations

from vkssim import Scorer

from .support.pictures import clip

FEATURE = "float_ssim=scale=1:window=uniform8"


def score(size: tuple[int, int], frames: int = 25) -> list[str]:
    """Scores of a clip of that size, as hexadecimal floats."""
    width, height = size
    reference = clip(frames, height, width)
    with Scorer(width, height, bits=8, features=FEATURE, batch=3) as scorer:
        scores = list(scorer.score(zip(reference, reference[::-1], strict=True)))
    return [frame.metrics["float_ssim"].hex() for frame in scores]
