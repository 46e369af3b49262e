"""The section `workers` of scripts/bench: several devices against one, and how fast the machine reads for them."""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from measure import raw_clips
from spreads import Row, compared, measured

from vkssim.engine.engine import Engine, Job, RunSettings
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.pools import spec_of
from vkssim.engine.processes import handles_of
from vkssim.engine.task import FixedPool, WorkerPool
from vkssim.frames.options import RawDescription
from vkssim.frames.raw import PlanarLayout, RawFile
from vkssim.host.devices import DeviceInfo

_ROUNDS = 5
_JOBS = 4  # pairs of clips in a run, so that all workers have something to do until its end
_READERS = 4  # threads for each clip, as scoring has them
_BATCH = 8  # frames read at a time


def workers(width: int, height: int, bits: int, feature: str, frames: int, devices: list[DeviceInfo]) -> list[Row]:
    """Return frames a second of one device, of two, and so on, from raw files in the page cache; and of reading by itself.

    Rates are medians of rounds, in each of which every number of devices has its turn; workers are open and warm.
    """
    raw = RawDescription(width, height, "420", bits)
    where = {"section": "workers", "size": f"{width}x{height}", "bits": bits, "feature": feature, "frames": _JOBS * frames}
    counts = sorted({1 << power for power in range(len(devices).bit_length())} | {len(devices)})
    with raw_clips(width, height, bits, frames) as clips, ExitStack() as stack:
        engines = {
            n: stack.enter_context(FixedPool([worker for device in devices[:n] for worker in handles_of(spec_of(device))]))
            for n in counts
        }
        options = ScoreOptions((feature,))
        rates: dict[int, list[float]] = {n: [] for n in counts}
        for engine in engines.values():
            _score(engine, clips, raw, options)
        for _ in range(_ROUNDS):
            for n, engine in engines.items():
                began = time.perf_counter()
                _score(engine, clips, raw, options)
                rates[n].append(_JOBS * frames / (time.perf_counter() - began))
        reading = {n: _reading(clips, PlanarLayout(width, height, "420", bits), frames, n) for n in counts}
    scored = {n: {**where, "name": f"workers: {n}", **measured(rates[n]), "unit": "frames/s"} for n in counts}
    rows = []
    for n, row in scored.items():
        limit = {**where, "name": f"reading alone, processes: {n}", **measured(reading[n]), "unit": "frames/s"}
        rows += [row, limit, {**where, "name": f"share of the reading limit: {n}", **compared(row, limit, "%", 100)}]
        if n > 1:
            rows.append({**where, "name": f"workers: {n}", **compared(row, scored[1], "times one")})
    return rows


def _score(engine: WorkerPool, clips: tuple[Path, Path], raw: RawDescription, options: ScoreOptions) -> None:
    jobs = [Job(str(number), Clips(str(clips[0]), str(clips[1]), raw)) for number in range(_JOBS)]
    for _, outcome in Engine(engine, options, RunSettings(warn=print)).score(jobs):
        if isinstance(outcome, Exception):
            raise outcome


def _reading(clips: tuple[Path, Path], layout: PlanarLayout, frames: int, processes: int) -> list[float]:
    """Return how many frames a second so many processes read the luma of, both clips, without scoring: of each round."""
    rates = []
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        shares = [(number, clips, layout, frames // processes) for number in range(processes)]
        list(pool.map(_read, shares))
        for _ in range(_ROUNDS):
            began = time.perf_counter()
            list(pool.map(_read, shares))
            rates.append(frames // processes * processes / (time.perf_counter() - began))
    return rates


def _read(share: tuple[int, tuple[Path, Path], PlanarLayout, int]) -> None:
    number, clips, layout, frames = share
    with ExitStack() as stack:
        sources = [stack.enter_context(RawFile(str(clip), layout)) for clip in clips]
        threads = stack.enter_context(ThreadPoolExecutor(len(sources) * min(_READERS, os.cpu_count() or 1)))
        blank = (layout.height, layout.width), np.uint8 if layout.bits == 8 else np.uint16
        targets = [[[(np.empty(*blank),) for _ in range(_BATCH)] for _ in range(_READERS)] for _ in sources]
        first = number * frames
        for start in range(first, first + frames, _BATCH * _READERS):
            reads = []
            for source, parts in zip(sources, targets, strict=True):
                for at, planes in zip(range(start, first + frames, _BATCH), parts, strict=False):
                    numbers = range(at, min(at + _BATCH, first + frames))
                    reads.append(threads.submit(source.read, numbers, planes[: len(numbers)]))
            for read in reads:
                read.result()
