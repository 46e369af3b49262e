"""Estimate how much a batch will read, and how long it will take, before it runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ..engine.options import ScoreOptions
from ..engine.ranges import DECODED_PIXELS_A_SECOND, PIXELS_A_SECOND
from ..errors import VkssimError
from ..frames.decode.container import ContainerFile
from ..frames.open import check_reopens, open_file
from ..frames.pairing.preprocessing import match_pair
from ..frames.pairing.schedule import schedule_pairs
from ..frames.source import FrameSource
from ..storage.location import is_url
from ..storage.urls import size as remote_size
from .manifest import Pair

MAX_OPENED = 1000
"""The number of pairs that are opened; larger batches are estimated from these."""


@dataclass(frozen=True)
class Forecast:
    """The estimate for `pairs` pairs: `seconds` on one worker of the first kind, and `elapsed` on all workers together."""

    pairs: int
    opened: int
    failed: tuple[str, ...]
    frames: int
    tasks: int
    bytes: int
    seconds: float
    elapsed: float


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
        looks = list(pool.map(look, chosen))
    opened = [entry for entry in looks if not isinstance(entry, str)]
    scale = len(pairs) / len(chosen)
    seconds = scale * sum(seconds for _, _, seconds in opened)
    return Forecast(
        len(pairs),
        len(chosen),
        tuple(entry for entry in looks if isinstance(entry, str)),
        round(scale * sum(frames for frames, _, _ in opened)),
        round(scale * sum(max(1, round(seconds / task_seconds)) for _, _, seconds in opened)),
        round(scale * sum(read for _, read, _ in opened)),
        seconds,
        seconds / sum(PIXELS_A_SECOND[kind] / PIXELS_A_SECOND[kinds[0]] for kind in kinds),
    )


def _expected(pair: Pair, options: ScoreOptions, kind: str, cores: float) -> tuple[int, int, float]:
    """Return the frames, the bytes to read and the seconds of a pair."""
    pictures = replace(options.pictures, crop=None)  # the search for black bars would take longer than everything else here
    with ExitStack() as stack:
        clips = zip(pair.clips.paths, options.selection.streams, strict=True)
        check_reopens(*pair.clips.paths)
        files = [stack.enter_context(open_file(path, pair.clips.raw, stream)) for path, stream in clips]
        reference, distorted = files
        sources = match_pair(reference, distorted, pair.clips.raw, pictures, options.chroma)
        schedule = schedule_pairs(options.selection, *sources, options.sync)
        frames = schedule.pairs or 0
        info = reference.info
        pixels = frames * info.width * info.height
        compressed = any(isinstance(source, ContainerFile) for source in files)
        decoding = pixels * options.selection.subsample / DECODED_PIXELS_A_SECOND / cores if compressed else 0.0
        read = sum(_bytes(source, frames * options.selection.subsample, options.planes) for source in files)
    scoring = pixels / PIXELS_A_SECOND[kind]
    return frames, read, max(scoring, decoding) if kind == "gpu" else scoring + decoding


def _bytes(source: FrameSource, frames: int, planes: str) -> int:
    """Return the bytes that will be read of a file: the planes of raw frames, or the proportional share of another file."""
    info = source.info
    if source.concurrent:
        return frames * sum(plane.nbytes for plane in info.new_planes(1 if planes == "y" else 3))
    path = info.path
    size = remote_size(path) if is_url(path) else os.stat(path).st_size if os.path.exists(path) else 0
    return round(size * min(1.0, frames / source.expected)) if source.expected else size
