"""Estimate how much a batch will read, and how long it will take, before it runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from ..clips import ClipFacts, pair_frames
from ..engine.options import ScoreOptions
from ..engine.ranges import DECODED_PIXELS_A_SECOND, PIXELS_A_SECOND
from ..errors import VkssimError
from ..types import plane_shapes
from .manifest import Pair

MAX_OPENED = 1000
"""The number of pairs that are opened; larger batches are estimated from these."""

_RAW = "raw"  # the decoder of raw files, as reports name it


@dataclass(frozen=True)
class Forecast:
    """The estimate for the pairs of a batch."""

    pairs: int
    opened: int
    """The number of pairs that were opened; the estimate follows from them."""
    failed: tuple[str, ...]
    """The errors of those that cannot be scored."""
    frames: int
    tasks: int
    bytes: int
    """The bytes to read."""
    seconds: float
    """The time on one worker of the first kind."""
    elapsed: float
    """The time on all workers together."""


def forecast(pairs: Sequence[Pair], options: ScoreOptions, kinds: Sequence[str], cores: int, task_seconds: float) -> Forecast:
    """Return the estimate for pairs on workers of these `kinds` (`WorkerSpec.kind`), which share `cores` cores.

    Clips are opened, but nothing is scored. The speeds come from `ranges`, so the time is right within a factor, not within
    percents.
    """
    chosen = pairs if len(pairs) <= MAX_OPENED else [pairs[len(pairs) * n // MAX_OPENED] for n in range(MAX_OPENED)]

    def look(pair: Pair) -> tuple[int, int, float] | str:
        try:
            return _expected(pair, pair.options(options), kinds[0], cores / len(kinds))
        except (VkssimError, OSError) as error:
            return str(error)

    with ThreadPoolExecutor(min(32, 4 * (os.cpu_count() or 1))) as pool:
        estimates = list(pool.map(look, chosen))

    readable = [estimate for estimate in estimates if not isinstance(estimate, str)]
    scale = len(pairs) / len(chosen)
    seconds = scale * sum(seconds for _, _, seconds in readable)
    return Forecast(
        pairs=len(pairs),
        opened=len(chosen),
        failed=tuple(estimate for estimate in estimates if isinstance(estimate, str)),
        frames=round(scale * sum(frames for frames, _, _ in readable)),
        tasks=round(scale * sum(max(1, round(seconds / task_seconds)) for _, _, seconds in readable)),
        bytes=round(scale * sum(read for _, read, _ in readable)),
        seconds=seconds,
        elapsed=seconds / sum(PIXELS_A_SECOND[kind] / PIXELS_A_SECOND[kinds[0]] for kind in kinds),
    )


def _expected(pair: Pair, options: ScoreOptions, kind: str, cores: float) -> tuple[int, int, float]:
    """Return the frames, the bytes to read and the seconds of a pair."""
    selection, raw = options.selection, pair.clips.raw
    # the search for black bars would take longer than everything else here
    pictures = replace(options.pictures, crop=None)
    pairs = pair_frames(
        *pair.clips.paths, raw=raw, selection=selection, sync=options.sync, pictures=pictures, chroma=options.chroma
    )
    frames, clips = pairs.count or 0, (pairs.reference, pairs.distorted)

    pixels = frames * (pairs.reference.width or 0) * (pairs.reference.height or 0)
    compressed = any(clip.stream is not None for clip in clips)  # only containers have streams
    decoding = pixels * selection.subsample / DECODED_PIXELS_A_SECOND / cores if compressed else 0.0
    scoring = pixels / PIXELS_A_SECOND[kind]
    read = sum(_bytes(clip, frames * selection.subsample, options.planes) for clip in clips)
    return frames, read, max(scoring, decoding) if kind == "gpu" else scoring + decoding


def _bytes(clip: ClipFacts, frames: int, planes: str) -> int:
    """Return the bytes that will be read of a clip for its first frames: of raw files only the planes that are scored."""
    if clip.decoder == _RAW:
        shapes = plane_shapes(clip.width or 0, clip.height or 0, clip.chroma or "400")
        samples = sum(height * width for height, width in shapes[: 1 if planes == "y" else 3])
        return frames * samples * (1 if clip.bits == 8 else 2)
    share = min(1.0, frames / clip.frames) if clip.frames else 1.0
    return round((clip.file_bytes or 0) * share)
