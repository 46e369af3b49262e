"""The section `decoding` of scripts/bench: containers to scores by every decoder of the machine, beside the decoders alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import av
from coded import Codec, write_pair
from costs import FRAMES_A_MINUTE
from machine import cores, folder_in_memory, own_cpu_seconds
from sections import reason
from spreads import Row, compared, measured

from vkssim import ScoreReport, score_files, score_many
from vkssim.backends.decoding import hardware_decoder, sessions
from vkssim.frames.decode.hardware import HardwareDecoder, offered

_FEATURES = ["float_ms_ssim"]
_ROUNDS = 5
_PAIRS = 4  # pairs of clips of a batch
_FEWEST = 192  # frames that a stream decodes of a clip, if the clip has so many
_STREAMS_AN_ENGINE = 2  # a video engine waits for its next frame if it has only one stream

Clips = tuple[Path, Path]


class DifferingScoresError(Exception):
    """Decoders of the same clips gave different scores."""


@dataclass(frozen=True)
class Streams:
    """Decoders that work without scoring: streams at a time, each a thread, and whether each has FFmpeg's threads.

    `hardware` is the hardware decoder, whose frames stay on the device if they do so in a score. None is the CPU.
    """

    count: int
    threads: bool = False
    hardware: HardwareDecoder | None = None

    @property
    def name(self) -> str:
        """Return the name of the row."""
        return f"decoders alone, streams: {self.count}" + (", FFmpeg's threads" if self.threads else "")

    def rate(self, clips: Clips, frames: int) -> float:
        """Decode both clips in every stream, one after the other, and return frames a second in total.

        The time does not include opening the files. Hardware decoders take up to 0.3 s to start, so they have decoded one frame
        of each clip before. With many streams each one decodes a part of the clips, so that a round does not take too long.
        """
        part = min(frames - 1, max(_FEWEST, 2 * frames // self.count))
        with ExitStack() as stack:
            streams = []
            for number in range(self.count):
                order = clips if number % 2 == 0 else clips[::-1]
                streams.append([self._frames(stack, path) for path in order])
            if self.hardware is not None:
                for frames_of_clip in (clip for stream in streams for clip in stream):
                    next(frames_of_clip)
            began = time.perf_counter()
            with ThreadPoolExecutor(self.count) as pool:
                decoded = sum(pool.map(partial(_count, part), streams))
            return decoded / (time.perf_counter() - began)

    def _frames(self, stack: ExitStack, path: Path) -> Iterator[Any]:
        request = None if self.hardware is None else self.hardware.request()
        container = stack.enter_context(av.open(str(path), hwaccel=request))
        stream = container.streams.video[0]
        if self.threads:
            stream.thread_type = "AUTO"
        elif self.hardware is None:
            stream.thread_type, stream.codec_context.thread_count = "NONE", 1
        return container.decode(stream)


def _count(part: int, clips: Sequence[Iterator[Any]]) -> int:
    return sum(1 for frames in clips for _ in islice(frames, part))


@dataclass
class Contender:
    """A decoder that takes part: its name as in `decode=`, its streams without scoring, and the figures of all rounds.

    `alone` are frames a second. `scored` are pairs a second by the number of pairs of clips, and `opened` the same of one pair
    from its first frame on. `cpu` are CPU seconds of a minute by the number of pairs of clips. `failed` says why streams
    failed.
    """

    decode: str
    streams: Sequence[Streams]
    alone: dict[Streams, list[float]] = field(default_factory=dict)
    scored: dict[int, list[float]] = field(default_factory=dict)
    opened: list[float] = field(default_factory=list)
    cpu: dict[int, list[float]] = field(default_factory=dict)
    failed: dict[Streams, str] = field(default_factory=dict)
    remarks: set[str] = field(default_factory=set)

    def decode_alone(self, clips: Clips, frames: int) -> None:
        """Take a round without scoring. Numbers of streams that fail are left out from then on: drivers have limits."""
        for streams in self.streams:
            if streams in self.failed:
                continue
            try:
                self.alone.setdefault(streams, []).append(streams.rate(clips, frames))
            except Exception as error:  # each driver fails in ways of its own
                self.failed[streams] = reason(error)

    def score(self, pairs: int, run: Callable[[str], list[ScoreReport]]) -> list[ScoreReport]:
        """Take a round with scoring of so many pairs of clips, and return the reports."""
        began, cpu = time.perf_counter(), own_cpu_seconds()
        reports = run(self.decode)
        seconds, cpu = time.perf_counter() - began, own_cpu_seconds() - cpu
        count = sum(len(report.frames) for report in reports)
        self.scored.setdefault(pairs, []).append(count / seconds)
        self.cpu.setdefault(pairs, []).append(cpu / count * FRAMES_A_MINUTE)
        if pairs == 1:
            self.opened.append(reports[0].fps)
        self.remarks.update(warning for report in reports for warning in report.warnings)
        return reports

    def rows(self, where: Row) -> Iterator[Row]:
        """Yield the rows of all rounds so far; `where` has what they have in common."""
        alone = [
            {**where, "name": streams.name, **measured(rates), "unit": "frames/s"}
            for streams, rates in self.alone.items()
            if rates
        ]
        yield from alone
        for streams, why in self.failed.items():
            yield {**where, "name": f"{streams.name}, failed", "text": why}
        limit = max(alone, key=lambda row: float(row["value"]), default=None)
        several = {pairs: "" if pairs == 1 else f", {pairs} pairs of clips" for pairs in self.scored}
        scored = {several[pairs]: rates for pairs, rates in self.scored.items()}
        if self.opened:
            scored[", opened"] = self.opened
        for suffix, rates in scored.items():
            yield {**where, "name": f"containers to scores{suffix}", **measured(rates), "unit": "pairs/s"}
            if limit is not None:
                decoded = {**measured([2 * rate for rate in rates]), "unit": "frames/s"}
                yield {**where, "name": f"share of the decoders alone{suffix}", **compared(decoded, limit, "%", 100)}
        for pairs, seconds in self.cpu.items():
            unit = f"s for {FRAMES_A_MINUTE} pairs"
            yield {**where, "name": f"CPU time of a minute{several[pairs]}", **measured(seconds), "unit": unit}
        for remark in sorted(self.remarks):
            yield {**where, "name": "warning of the report", "text": remark}


def decoding(
    codec: Codec, width: int, height: int, frames: int, device: str | None, rounds: int = _ROUNDS, batch: int = _PAIRS
) -> Iterator[Row]:
    """Yield figures of a pair of clips that is made for it, of at least `frames` frames, by each decoder that works here.

    Every decoder has its turn in each round, alone and with scoring. Raises DifferingScoresError, after the last row, if
    the scores of two decoders are not equal bit for bit.
    """
    where: Row = {"section": "decoding", "size": f"{width}x{height}", "codec": codec.name}
    with folder_in_memory() as folder:
        clips = write_pair(Path(folder), codec, width, height, frames)
        runs: dict[int, Callable[[str], list[ScoreReport]]] = {
            1: lambda decode: [_score(clips, decode, device)],
            batch: lambda decode: _score_batch(clips, decode, device, batch),
        }
        expected = _scores(_score(clips, "cpu", device))
        found = [Contender("cpu", _on_cpu())]
        differing: list[str] = []
        for kind in sorted(offered()):
            try:
                scores = _scores(_score(clips, kind, device))
                found.append(Contender(kind, _on_hardware(kind, device)))
            except Exception as error:  # each driver fails in ways of its own
                why = reason(error).replace(str(clips[0]), "the clip")
                yield {**where, "decoder": kind, "name": "not measured", "text": why}
                continue
            differing += _difference(kind, expected, scores)
        failure: Exception | None = None
        try:
            for _ in range(rounds):
                for one in found:
                    one.decode_alone(clips, len(expected))
                    for pairs, run in runs.items():
                        for report in one.score(pairs, run):
                            differing += _difference(one.decode, expected, _scores(report))
        except Exception as error:
            failure = error
    where["frames"] = len(expected)
    for one in found:
        yield from one.rows({**where, "decoder": one.decode})
    if failure is not None:
        raise failure
    if differing:
        raise DifferingScoresError(differing[0])


def _on_cpu() -> list[Streams]:
    return [Streams(count, threads) for threads in (False, True) for count in _counts(cores())]


def _on_hardware(kind: str, device: str | None) -> list[Streams]:
    hardware = hardware_decoder(kind, "vulkan", device)
    assert hardware is not None
    return [Streams(count, hardware=hardware) for count in _counts(_STREAMS_AN_ENGINE * sessions(hardware))]


def _counts(most: int) -> list[int]:
    """Return 1, 2, 4 and so on, up to that number and with it."""
    return sorted({1 << power for power in range(most.bit_length())} | {most})


def _score(clips: Clips, decode: str, device: str | None) -> ScoreReport:
    return score_files(*clips, features=_FEATURES, device=device, decode=decode)


def _score_batch(clips: Clips, decode: str, device: str | None, pairs: int) -> list[ScoreReport]:
    return [result.scores() for result in score_many([clips] * pairs, features=_FEATURES, device=device, decode=decode)]


def _scores(report: ScoreReport) -> list[str]:
    """Return the scores of each frame as text that is equal if every bit is."""
    return [" ".join(f"{name} {value.hex()}" for name, value in frame.metrics.items()) for frame in report.frames]


def _difference(decode: str, expected: Sequence[str], found: Sequence[str]) -> Iterable[str]:
    """Return a sentence if scores differ from the scores by the CPU's decoder, else nothing."""
    if list(expected) == list(found):
        return []
    if len(expected) != len(found):
        return [f"decode={decode} gives {len(found)} frames, decode=cpu {len(expected)}"]
    frames = [number for number, (ours, theirs) in enumerate(zip(expected, found, strict=True)) if ours != theirs]
    first = frames[0]
    return [
        f"decode={decode} gives other scores than decode=cpu in {len(frames)} of {len(expected)} frames; frame {first}:"
        f" {found[first]}, by the CPU {expected[first]}"
    ]
