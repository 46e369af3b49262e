"""Runs tasks as a worker of a cluster does, ranges of frames of two clips on a device that stays open, and takes their time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import machine
import measure

from vkssim.backends.decoding import hardware_decoder
from vkssim.backends.open import open_backend
from vkssim.engine.options import Clips as PairClips
from vkssim.engine.options import ScoreOptions
from vkssim.engine.run import score_range
from vkssim.engine.source_cache import open_sources
from vkssim.frames.options import RawDescription, Selection
from vkssim.host.devices import DeviceInfo
from vkssim.metrics.plane_metrics import feature_texts

_FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
_RATE = 24
_GROUP = 2 * _RATE  # frames from a key frame to the next
_BITS_A_PIXEL = {"reference": 0.4, "distorted": 0.1}  # 20 and 5 Mbit/s at 1080p
_NOT_KERNELS = ("read", "upload", "readback", "host")


@dataclass(frozen=True)
class TaskTime:
    """The time of a task: seconds of the clock, of all threads on the CPU, of kernels on the device; bytes that were read.

    `gpu_seconds` and `upload_seconds` are there if the task was profiled, which makes uploads and kernels wait for each
    other: its `seconds` are no measure then. In the `first` task a worker opens the device.
    """

    kind: str
    width: int
    height: int
    start: int
    frames: int
    seconds: float
    cpu_seconds: float
    gpu_seconds: float | None
    upload_seconds: float | None
    bytes: int
    first: bool
    device: str
    device_kind: str
    cores: int


@dataclass(frozen=True)
class Clips:
    """A pair of clips of 8-bit 4:2:0."""

    kind: str
    width: int
    height: int
    frames: int
    reference: Path
    distorted: Path

    @property
    def raw(self) -> RawDescription:
        """Return the description of raw files."""
        return RawDescription(self.width, self.height, "420", 8) if self.kind == "raw" else RawDescription()

    @property
    def lengths(self) -> list[int]:
        """Return the lengths of the ranges that are scored: all of the clip, half of it and so on."""
        return [self.frames >> shift for shift in range(4)]

    def ranges(self, length: int) -> Iterator[int]:
        """Yield the first frames of ranges of that many frames, over and over.

        In H.264 that is the first frame, a key frame, so that no frame is decoded which is not scored.
        """
        return cycle(range(0, self.frames - length + 1, length) if self.kind == "raw" else (0,))


class Worker:
    """A worker whose device, pipelines and buffers stay from task to task."""

    def __init__(self, features: Sequence[str], info: DeviceInfo, profile: bool) -> None:
        self._features, self._info, self._profile = features, info, profile
        self._open_backend = partial(open_backend, "vulkan", device=str(info.uuid), profile=profile)
        self._decoder = hardware_decoder("auto", "vulkan", str(info.uuid))
        self._first = True

    def do(self, clips: Clips, start: int, frames: int) -> TaskTime:
        """Score a range of frames."""
        bytes_before, cpu_before, began = _bytes_read(), time.process_time(), time.perf_counter()
        with ExitStack() as stack:
            pair = PairClips(str(clips.reference), str(clips.distorted), clips.raw)
            selection = Selection(start=start, end=start + frames)
            options = ScoreOptions(feature_texts(self._features), selection=selection, decoder=self._decoder)
            sources = open_sources(stack, pair, options)
            report = score_range(sources, pair, self._open_backend, options, profile=self._profile).report
        seconds, cpu, read = time.perf_counter() - began, time.process_time() - cpu_before, _bytes_read() - bytes_before
        assert len(report.frames) == frames
        kernels, upload = self._device_seconds(report.stage_seconds)
        first, self._first = self._first, False
        return TaskTime(
            clips.kind,
            clips.width,
            clips.height,
            start,
            frames,
            seconds,
            cpu,
            kernels,
            upload,
            read,
            first,
            self._info.name,
            self._info.kind.name,
            machine.cores(),
        )

    def _device_seconds(self, stages: Mapping[str, float]) -> tuple[float | None, float | None]:
        """Return the seconds of kernels and of uploads of a task."""
        if not self._profile:
            return None, None
        return sum(seconds for stage, seconds in stages.items() if stage not in _NOT_KERNELS), stages.get("upload", 0.0)


@contextmanager
def clips_of_all_kinds(width: int, height: int, frames: int) -> Iterator[list[Clips]]:
    """Write a pair of clips raw and in H.264, in memory if the system has such a place."""
    with measure.raw_clips(width, height, 8, frames) as (reference, distorted):
        folder = reference.parent
        encoded = []
        for name, bits in _BITS_A_PIXEL.items():
            encoded.append(folder / f"{name}.mp4")
            _encode(encoded[-1], width, height, frames, round(bits * width * height * _RATE))
        yield [
            Clips("raw", width, height, frames, reference, distorted),
            Clips("h264", width, height, frames, *encoded),
        ]


def measured(pairs: Sequence[Clips], features: Sequence[str], info: DeviceInfo, seconds: float) -> Iterator[TaskTime]:
    """Tasks of clips of one size, an eighth of them to the whole long, in turns until the time is up, one round at least.

    Each round has a profiled task of each pair as well.
    """
    starts = {(pair, length): pair.ranges(length) for pair in pairs for length in pair.lengths}
    began = time.perf_counter()
    worker, profiled = (Worker(features, info, profile) for profile in (False, True))
    while True:
        for (pair, length), places in starts.items():
            yield worker.do(pair, next(places), length)
        for pair in pairs:
            yield profiled.do(pair, 0, pair.lengths[1])
        if time.perf_counter() - began > seconds:
            break


def _encode(path: Path, width: int, height: int, frames: int, bit_rate: int) -> None:
    """Write the bundled clip, enlarged, forwards and backwards in turns until there are enough frames."""
    import av

    with av.open(str(_FIXTURES / "bbb_576x324_ref.mp4")) as source:
        pictures = [
            frame.reformat(width, height, "yuv420p", interpolation="LANCZOS").to_ndarray() for frame in source.decode(video=0)
        ]
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(_RATE), options={"preset": "fast", "g": str(_GROUP)})
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = width, height, "yuv420p", bit_rate
        for picture in islice(cycle(chain(pictures, reversed(pictures))), frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="yuv420p")))
        container.mux(stream.encode())


def _bytes_read() -> int:
    """By all threads of the process, out of files of any kind; Linux only."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])
