"""What a batch will read and take, before anything of it runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ..distributed.rates import DECODED_PIXELS_A_SECOND, PIXELS_A_SECOND
from ..errors import VkssimError
from ..frames.container import ContainerFile
from ..frames.open import open_regular
from ..frames.preprocessing import match_pair
from ..frames.source import FrameSource
from ..scoring.options import ScoreOptions
from ..storage.remote import is_url
from ..storage.remote import size as remote_size
from .manifest import Pair

MOST_OPENED = 1000
"""Pairs that are looked at; more are estimated by these."""


@dataclass(frozen=True)
class Forecast:
    """What is expected of `pairs` pairs, `opened` of which were looked at; `failed` of those cannot be scored.

    `bytes` are read in `tasks` tasks, which take `seconds` of one of the first kind of workers, `elapsed` of all of them.
    """

    pairs: int
    opened: int
    failed: tuple[str, ...]
    frames: int
    tasks: int
    bytes: int
    seconds: float
    elapsed: float


@dataclass(frozen=True)
class _Expected:
    frames: int
    bytes: int
    seconds: float


def forecast(pairs: Sequence[Pair], options: ScoreOptions, kinds: Sequence[str], cores: int, task_seconds: float) -> Forecast:
    """Return what scoring pairs takes on workers of these `kinds` (`WorkerSpec.kind`), which share that many `cores`.

    Clips are opened, and nothing is scored. Rates are `rates`, so that the time is right within a factor, not a percent.
    """
    chosen = pairs if len(pairs) <= MOST_OPENED else [pairs[len(pairs) * n // MOST_OPENED] for n in range(MOST_OPENED)]

    def look(pair: Pair) -> _Expected | str:
        try:
            return _expected(pair, options, kinds[0], cores / len(kinds))
        except (VkssimError, OSError) as error:
            return str(error)

    with ThreadPoolExecutor(min(32, 4 * (os.cpu_count() or 1))) as pool:
        found = list(pool.map(look, chosen))
    known = [entry for entry in found if isinstance(entry, _Expected)]
    scale = len(pairs) / len(chosen)
    seconds = scale * sum(entry.seconds for entry in known)
    return Forecast(
        len(pairs),
        len(chosen),
        tuple(entry for entry in found if isinstance(entry, str)),
        round(scale * sum(entry.frames for entry in known)),
        round(scale * sum(max(1, round(entry.seconds / task_seconds)) for entry in known)),
        round(scale * sum(entry.bytes for entry in known)),
        seconds,
        seconds / sum(PIXELS_A_SECOND[kind] / PIXELS_A_SECOND[kinds[0]] for kind in kinds),
    )


def _expected(pair: Pair, options: ScoreOptions, kind: str, cores: float) -> _Expected:
    pictures = replace(options.pictures, crop=None)  # looking for bars takes longer than anything else here
    with ExitStack() as stack:
        clips = zip((pair.reference_path, pair.distorted_path), options.selection.streams, strict=True)
        files = [stack.enter_context(open_regular(path, pair.raw, stream)) for path, stream in clips]
        reference, distorted = files
        sources = match_pair(reference, distorted, pair.raw, pictures, options.chroma)
        schedule = options.selection.schedule(*sources, options.sync)
        frames = schedule.pairs or 0
        info = reference.info
        pixels = frames * info.width * info.height
        compressed = any(isinstance(source, ContainerFile) for source in files)
        decoding = pixels * options.selection.subsample / DECODED_PIXELS_A_SECOND / cores if compressed else 0.0
        read = sum(_bytes(source, frames * options.selection.subsample, options.planes) for source in files)
    scoring = pixels / PIXELS_A_SECOND[kind]
    return _Expected(frames, read, max(scoring, decoding) if kind == "gpu" else scoring + decoding)


def _bytes(source: FrameSource, frames: int, planes: str) -> int:
    """Return the bytes that are read of a file: those of the planes where every frame has its place, else the frames' share."""
    info = source.info
    if source.concurrent:
        return frames * sum(plane.nbytes for plane in info.new_planes(1 if planes == "y" else 3))
    path = info.path
    size = remote_size(path) if is_url(path) else os.stat(path).st_size if os.path.exists(path) else 0
    return round(size * min(1.0, frames / source.expected)) if source.expected else size
