"""The section `catalogue` of scripts/bench: many short pairs beside one long pair, and on one device beside several."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from coded import Codec, write_pair
from machine import folder_in_memory, own_cpu_seconds
from spreads import Row, compared, measured

from vkssim import score_many

_FEATURES = ["float_ms_ssim"]
_ROUNDS = 3

Pair = tuple[Path, Path]


def catalogue(
    codec: Codec, width: int, height: int, frames: int, pairs: int, devices: Sequence[str], rounds: int = _ROUNDS
) -> Iterator[Row]:
    """Yield pairs of frames a second of one pair and of many, in turns: every clip is a file of its own, in memory.

    The one pair has as many frames as the many of `frames` frames have together. They are scored in this process, on the first
    device, after a first call. If there are several devices, the many are also scored on all of them, with the start of
    their processes.
    """
    where: Row = {"section": "catalogue", "size": f"{width}x{height}", "codec": codec.name, "frames": frames}
    with folder_in_memory() as name:
        folder = Path(name)
        many = _copies(folder / "many", codec, (width, height), frames, pairs)
        (long,) = _copies(folder / "one", codec, (width, height), frames * pairs, 1)
        _rate(many[:1], devices[0])
        subjects: dict[str, tuple[list[Pair], str | list[str]]] = {
            "one pair": ([long], devices[0]),
            f"{pairs} pairs": (many, devices[0]),
        }
        if len(devices) > 1:
            subjects[f"{pairs} pairs, {len(devices)} devices"] = many, list(devices)
        rates: dict[str, list[float]] = {subject: [] for subject in subjects}
        seconds: dict[str, list[float]] = {subject: [] for subject in subjects}
        for _ in range(rounds):
            for subject, (clips, device) in subjects.items():
                rate, cpu = _rate(clips, device)
                rates[subject].append(rate)
                seconds[subject].append(cpu)
    rows = {subject: {**measured(rates[subject]), "unit": "frames/s"} for subject in subjects}
    one, several, *on_all = rows
    for subject, row in rows.items():
        yield {**where, "name": subject, **row}
    yield {**where, "name": f"{several} over {one}", **compared(rows[several], rows[one], "%", 100)}
    for subject in on_all:
        yield {**where, "name": f"{subject}, over one", **compared(rows[subject], rows[several], "times")}
    for subject in (one, several):
        yield {**where, "name": f"CPU time of {subject}", **measured(seconds[subject]), "unit": "s"}


def _copies(folder: Path, codec: Codec, size: tuple[int, int], frames: int, count: int) -> list[Pair]:
    folder.mkdir()
    pair = write_pair(folder, codec, *size, frames)
    copies = []
    for number in range(count):
        paths = folder / f"{number}r.mp4", folder / f"{number}d.mp4"
        for source, path in zip(pair, paths, strict=True):
            shutil.copy(source, path)
        copies.append(paths)
    return copies


def _rate(clips: Sequence[Pair], device: str | list[str]) -> tuple[float, float]:
    """Return the frames a second of a call, and the CPU seconds that it took of this process."""
    began, before = time.perf_counter(), own_cpu_seconds()
    frames = sum(len(pair.scores().frames) for pair in score_many(clips, features=_FEATURES, device=device))
    return frames / (time.perf_counter() - began), own_cpu_seconds() - before
