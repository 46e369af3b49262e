"""The measurements of scripts/bench, one function a section.

Each returns rows: dicts with section, name, value, unit, and the facts that tell it apart.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from machine import folder_in_memory, own_cpu_seconds
from spreads import Row, measured

from vkssim import Scorer, ScoreReport, score_files
from vkssim.backends.vulkan import VulkanBackend
from vkssim.frames.options import RawDescription
from vkssim.metrics.plane_metrics import FrameMetrics
from vkssim.types import FrameFormat

Frames = list[npt.NDArray[Any]]

_DISTINCT = 8  # frames that files and feeds repeat, enough to leave every cache of a CPU
_WARM_UP = 3
_STARTS = 5
_NOT_KERNELS = ("upload", "readback")
_KINDS = ("by the clock", "CPU time")

Contender = tuple[int, Callable[[], object]]
"""How many frames a call computes, and the call."""


def parse_size(text: str) -> tuple[int, int]:
    """Return width and height of ``"1920x1080"``. Raises click.BadParameter for another form."""
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise click.BadParameter(f"{text!r} is not of the form WIDTHxHEIGHT")
    return int(width), int(height)


def in_turns(contenders: Mapping[str, Contender], rounds: int) -> dict[str, dict[str, Row]]:
    """Return the milliseconds a frame of each contender, as rows with `value`, `range` and `unit`, by kind and name.

    The kinds are the clock and the CPU time of all threads. Each contender has its turn in each round, so that a busy machine
    slows all of them alike. Call them once before, so that everything is opened and compiled.
    """
    times: dict[str, dict[str, list[float]]] = {kind: {name: [] for name in contenders} for kind in _KINDS}
    for _ in range(rounds):
        for name, (frames, run) in contenders.items():
            began = time.perf_counter(), own_cpu_seconds()
            run()
            ended = time.perf_counter(), own_cpu_seconds()
            for index, kind in enumerate(_KINDS):
                times[kind][name].append(1e3 * (ended[index] - began[index]) / frames)
    return {
        kind: {name: {**measured(values), "unit": "ms a frame"} for name, values in of_kind.items()}
        for kind, of_kind in times.items()
    }


def _textured_frames(width: int, height: int, bits: int) -> Frames:
    """Return frames with detail at every scale: noise added up over octaves."""
    random = np.random.default_rng(0)
    frames = []
    for _ in range(_DISTINCT):
        total = np.zeros((height, width), np.float32)
        for octave in range(6):
            step = 1 << octave
            coarse = random.normal(0, step, (-(-height // step), -(-width // step))).astype(np.float32)
            total += np.repeat(np.repeat(coarse, step, 0), step, 1)[:height, :width]
        scaled = np.clip(128 + total, 0, 255) * 2 ** (bits - 8)
        frames.append(scaled.astype(np.uint8 if bits == 8 else np.uint16))
    return frames


def pairs(width: int, height: int, bits: int) -> tuple[Frames, Frames]:
    """Return references and their distorted versions."""
    references = _textured_frames(width, height, bits)
    random = np.random.default_rng(1)
    peak = 2**bits - 1
    noise = 4 << (bits - 8)
    distorted = [
        np.clip(frame + random.integers(-noise, noise + 1, frame.shape), 0, peak).astype(frame.dtype) for frame in references
    ]
    return references, distorted


def kernels(width: int, height: int, bits: int, feature: str, batch: int | None, device: str | None) -> list[Row]:
    """Microseconds a frame of every stage, by timestamp queries: medians over submissions of full batches."""
    frame = FrameFormat.of_bits(width, height, bits)
    where = {"section": "kernels", "size": f"{width}x{height}", "bits": bits, "feature": feature}
    with VulkanBackend(FrameMetrics(feature, [frame]).planes, device=device, batch=batch, slots=1, profile=True) as backend:
        count = backend.batch_size
        current = backend.batches[0]
        for reference, distorted in zip(current.reference, current.distorted, strict=True):
            plane_height, plane_width = reference.shape[1:]
            for i, pair in zip(range(count), cycle(zip(*pairs(plane_width, plane_height, bits), strict=True)), strict=False):
                reference[i], distorted[i] = pair
        samples: list[dict[str, float]] = []
        spent: dict[str, float] = {}
        for _ in range(_WARM_UP + 15):
            backend.submit(current, count)
            backend.collect(current)
            now = backend.stage_seconds()
            samples.append({stage: now[stage] - spent.get(stage, 0.0) for stage in now})
            spent = dict(now)
        stages = {stage: statistics.median(sample[stage] for sample in samples[_WARM_UP:]) for stage in samples[0]}
        totals = [sum(value for stage, value in sample.items() if stage not in _NOT_KERNELS) for sample in samples[_WARM_UP:]]
        rows = [
            {**where, "name": stage, "batch": count, "value": seconds / count * 1e6, "unit": "us a frame"}
            for stage, seconds in stages.items()
        ]
        whole = [total / count * 1e6 for total in totals]
        rows.append({**where, "name": "all kernels", "batch": count, **measured(whole), "unit": "us a frame"})
        if not backend.device.unified:
            size = 2 * frame.row_bytes * height * count / 1e9
            rates = [size / sample["upload"] for sample in samples[_WARM_UP:]]
            rows.append({**where, "name": "upload limit", "batch": count, **measured(rates), "unit": "GB/s"})
    return rows


@contextmanager
def raw_clips(width: int, height: int, bits: int, frames: int) -> Iterator[tuple[Path, Path]]:
    """Write a pair of raw 4:2:0 files into `folder_in_memory`."""
    with folder_in_memory() as folder:
        paths = Path(folder, "reference.yuv"), Path(folder, "distorted.yuv")
        chroma = pairs((width + 1) // 2, (height + 1) // 2, bits)
        for path, luma, of_chroma in zip(paths, pairs(width, height, bits), chroma, strict=True):
            with path.open("wb") as file:
                for i in range(frames):
                    file.write(luma[i % _DISTINCT].tobytes())
                    file.write(of_chroma[i % _DISTINCT].tobytes() + of_chroma[(i + 1) % _DISTINCT].tobytes())
        yield paths


def files(width: int, height: int, bits: int, feature: str, frames: int, device: str | None) -> list[Row]:
    """Return frames a second from raw files in the page cache to scores: the median of five runs after one to warm up."""
    where = {"section": "files", "size": f"{width}x{height}", "bits": bits, "feature": feature, "frames": frames}
    raw = RawDescription(width, height, "420", bits)
    with raw_clips(width, height, bits, frames) as (reference, distorted):

        def run() -> ScoreReport:
            return score_files(reference, distorted, features=feature.split("+"), raw=raw, device=device)

        run()
        began = time.process_time()
        rates = [run().fps for _ in range(5)]
        cpu = (time.process_time() - began) / (5 * frames)
    luma = 2 * width * height * (1 if bits == 8 else 2)
    return [
        {**where, "name": "raw files to scores", **measured(rates), "unit": "frames/s"},
        {**where, "name": "the same", **measured([1e3 / fps for fps in rates]), "unit": "ms a frame"},
        {**where, "name": "luma brought to the device", **measured([fps * luma / 1e9 for fps in rates]), "unit": "GB/s"},
        {**where, "name": "CPU time, opening included", "value": cpu * 1e3, "unit": "ms a frame"},
    ]


def arrays(width: int, height: int, bits: int, feature: str, frames: int, device: str | None) -> list[Row]:
    """Return frames a second through `Scorer`, from NumPy arrays, one pair at a time, scores in order: the median of five."""
    references, distorted = pairs(width, height, bits)
    feed = [(references[i % _DISTINCT], distorted[i % _DISTINCT]) for i in range(frames)]
    rates = []
    with Scorer(width, height, bits=bits, features=[feature], device=device) as scorer:
        for _ in range(6):
            began = time.perf_counter()
            scored = sum(1 for _ in scorer.score(feed))
            rates.append(scored / (time.perf_counter() - began))
    return [
        {
            "section": "arrays",
            "size": f"{width}x{height}",
            "bits": bits,
            "feature": feature,
            "name": "arrays through Scorer",
            **measured(rates[1:]),
            "unit": "frames/s",
        }
    ]


class ChildError(Exception):
    """A process failed; the message has the last line that it wrote to standard error."""


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new Python process, and return its output as text. Raises ChildError if the process fails.

    Modules are found in the same places as by this process. `-P` leaves out the current folder: a checkout has a folder
    `vkssim` that is not the whole package.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    command = [sys.executable, "-P", "-c", code, *arguments]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        last = (process.stderr.strip() or "it wrote no message").splitlines()[-1]
        raise ChildError(f"a process ended with exit code {process.returncode}: {last}")
    return process


_FIRST_SCORE = """
import sys, time
from vkssim.cli import main
import vkssim.engine.run
original = vkssim.engine.run.rows
def first(*arguments):
    scored = original(*arguments)
    print("first score at", time.time(), file=sys.stderr)
    vkssim.engine.run.rows = original
    return scored
vkssim.engine.run.rows = first
main(sys.argv[1:])
"""


def start(reference: Path, distorted: Path, device: str | None) -> list[Row]:
    """Return seconds from the start of the process: to the first score of a clip, and for the bare import. Medians of five."""
    options = ["score", "-r", str(reference), "-d", str(distorted), "--feature", "float_ms_ssim", "-q"]
    options += ["--device", device] if device else []

    def first_score() -> float:
        began = time.time()
        lines = run_python(_FIRST_SCORE, *options).stderr.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith("first score at")) - began

    def run(code: str) -> float:
        began = time.time()
        run_python(code)
        return time.time() - began

    timed: dict[str, Callable[[], float]] = {
        "start to first score": first_score,
        "import vkssim": lambda: run("import vkssim"),
        "import vkssim, Scorer": lambda: run("from vkssim import Scorer"),
        "import numpy": lambda: run("import numpy"),
        "bare interpreter": lambda: run("pass"),
    }
    first_score()
    return [
        {"section": "start", "name": name, **measured([once() for _ in range(_STARTS)]), "unit": "s"}
        for name, once in timed.items()
    ]


_PEAK = """
import sys
from vkssim import score_files
from vkssim.frames.options import RawDescription
reference, distorted, width, height, bits, device = sys.argv[1:]
score_files(reference, distorted, features=["float_ms_ssim"], device=device or None,
            raw=RawDescription(int(width), int(height), "420", int(bits)))
print(*(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def memory(width: int, height: int, bits: int, frames: int, device: str | None) -> list[Row]:
    """Peak host memory of a process that scores a clip, and of one that scores a clip four times as long.

    Read from Linux's own account of the process: getrusage of a child includes its parent's memory.
    """
    rows = []
    for length in (frames, 4 * frames):
        with raw_clips(width, height, bits, length) as clips:
            words = run_python(_PEAK, *map(str, clips), str(width), str(height), str(bits), device or "").stdout.split()
        if not words:
            raise ChildError("the system does not say the peak of a process's memory: /proc/self/status has no line VmHWM")
        peak = float(words[0])
        name = f"peak host memory, {length} frames"
        rows.append({"section": "memory", "size": f"{width}x{height}", "bits": bits, "name": name, "value": peak, "unit": "MB"})
    return rows
