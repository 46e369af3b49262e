"""The scorer: opened once for a size, fed frames, gives scores in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from .backends.base import Backend, BackendInfo, Batch
from .errors import FrameError, OptionError
from .features import make_scorer
from .features.base import Doubles, FrameScorer
from .formats import FrameFormat
from .types import Samples

BACKENDS = ("vulkan", "cpu")

_LARGE_FRAME_BYTES = 1 << 19
_CORES_TO_SPARE = 4


@dataclass(frozen=True, slots=True)
class FrameScores:
    """The scores of one frame: its number, counted from 0, and a float for each metric, NaN where there is none.

    `time` is when the reference shows it, in seconds from its first frame; None where the clip does not tell.
    """

    index: int
    metrics: Mapping[str, float]
    time: float | None = None


def open_backend(
    name: str,
    frame: FrameFormat,
    scorers: Sequence[FrameScorer],
    *,
    device: str | int | None = None,
    batch: int | None = None,
    slots: int = 4,
    profile: bool = False,
) -> Backend:
    """The backend of that name, with `slots` batches; only the one asked for, never another.

    Raises OptionError for an unknown name.
    """
    if name == "vulkan":
        from .backends.vulkan import VulkanBackend

        return VulkanBackend(frame, scorers, device=device, batch=batch, slots=slots, profile=profile)
    if name == "cpu":
        from .backends.cpu import CpuBackend

        if device is not None:
            raise OptionError(f"device {device!r} is for the vulkan backend; the cpu backend has no devices")
        return CpuBackend(frame, scorers, slots)
    raise OptionError(f"unknown backend {name!r}; there are {', '.join(BACKENDS)}")


def make_scorers(features: Sequence[str] | str, frame: FrameFormat) -> list[FrameScorer]:
    """The metrics asked for. Raises OptionError where there is none or one is asked for twice, and as `make_scorer`."""
    texts = [features] if isinstance(features, str) else list(features)
    if not texts:
        raise OptionError("no feature asked for")
    scorers = [make_scorer(text, frame) for text in texts]
    names = [scorer.names[0] for scorer in scorers]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"feature {name} is asked for twice")
    return scorers


def finish(scorers: Sequence[FrameScorer], means: Sequence[Doubles]) -> dict[str, Doubles]:
    """Scores by name, each (frames,), from the means of each metric."""
    columns: dict[str, Doubles] = {}
    for scorer, terms in zip(scorers, means, strict=True):
        columns.update(scorer.finish(terms))
    return {name: columns[name] for scorer in scorers for name in scorer.names}


def rows(columns: Mapping[str, Doubles], numbers: Iterable[int]) -> list[FrameScores]:
    """One FrameScores a frame from columns of scores."""
    names = tuple(columns)
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [FrameScores(number, dict(zip(names, row, strict=True))) for number, row in zip(numbers, values, strict=True)]


class Scorer:
    """Scores pairs of frames of one size, in order; use with `with`.

    A bounded number of frames is in flight; scores come as soon as their batch is done, and all of them after `flush`.

    Parameters
    ----------
    width, height
        Size of the frames in samples.
    bits
        Depth of integer samples, 8 to 16, each sample divided by 2^(bits-8) as libvmaf does. Without it `dtype` and
        `data_range` say what the samples are.
    dtype
        uint8, uint16, float32 or float64 (computed in float32).
    data_range
        The largest sample there can be; by default that of the integer type. Floats have no default.
    features
        Metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``.
    backend
        ``"vulkan"`` or ``"cpu"``. Never another than the one asked for.
    device
        Index, part of the name, or UUID of the Vulkan device; by default the environment variable VKSSIM_DEVICE, then the
        first real GPU, then software.
    batch
        Frames of a submission; by default chosen by size and device. 1 gives each score as early as can be.

    Raises
    ------
    FrameError
        The frames are too small for a metric, or their type or range is not possible.
    OptionError
        Unknown feature, option or backend.
    DeviceError
        No device can be used.

    Examples
    --------
    >>> with Scorer(1920, 1080, bits=8, features=["float_ssim"]) as scorer:
    ...     for scores in scorer.score(pairs):
    ...         print(scores.index, scores.metrics["float_ssim"])

    """

    def __init__(
        self,
        width: int,
        height: int,
        *,
        bits: int | None = None,
        dtype: npt.DTypeLike | None = None,
        data_range: float | None = None,
        features: Sequence[str] | str = ("float_ms_ssim",),
        backend: str = "vulkan",
        device: str | int | None = None,
        batch: int | None = None,
    ) -> None:
        if batch is not None and batch < 1:
            raise OptionError(f"batch is {batch}; it must be 1 or more")
        if bits is not None and dtype is None and data_range is None:
            self._format = FrameFormat.of_bits(width, height, bits)
        elif dtype is not None and bits is None:
            self._format = FrameFormat.of_array(width, height, dtype, data_range)
        else:
            raise OptionError("say either bits or dtype of the samples; data_range goes with dtype")
        self._scorers = make_scorers(features, self._format)
        self._backend = open_backend(backend, self._format, self._scorers, device=device, batch=batch)
        self._copier = self._make_copier()
        self._free = list(reversed(self._backend.batches))
        self._filling: Batch | None = None
        self._filled = 0
        self._in_flight: deque[Batch] = deque()
        self._ready: list[FrameScores] = []
        self._next_index = 0
        self._reserved = False
        self._closed = False

    @property
    def info(self) -> BackendInfo:
        """Backend, device and driver in use."""
        return self._backend.info

    @property
    def names(self) -> tuple[str, ...]:
        """The scores that each frame gets."""
        return tuple(name for scorer in self._scorers for name in scorer.names)

    def reserve(self) -> tuple[Samples, Samples]:
        """Where the next reference and distorted frame go: two (H, W) arrays to be written, then `commit`.

        They are the memory that the device reads, so filling them is the only copy. Rows may be padded.
        """
        if self._closed:
            raise FrameError("the scorer is closed")
        if self._filling is None:
            if not self._free:
                self._collect_oldest()
            self._filling = self._free.pop()
        self._reserved = True
        return self._filling.reference[self._filled], self._filling.distorted[self._filled]

    def commit(self) -> list[FrameScores]:
        """Take the frames written to what `reserve` gave; returns the scores that have become ready, in order."""
        if not self._reserved:
            raise FrameError("nothing was reserved; call reserve() and fill both frames first")
        self._reserved = False
        self._filled += 1
        if self._filled == self._backend.batch_size:
            self._submit()
        return self._take_ready()

    def feed(self, reference: npt.NDArray[Any], distorted: npt.NDArray[Any]) -> list[FrameScores]:
        """Take a pair of (H, W) frames, any strides; returns the scores that have become ready, in order, often none.

        Raises FrameError where shape or type is not what the scorer was opened for.
        """
        reference, distorted = np.asarray(reference), np.asarray(distorted)
        for name, plane in (("reference", reference), ("distorted", distorted)):
            self._check(name, plane)
        target_reference, target_distorted = self.reserve()
        other = self._copier.submit(np.copyto, target_distorted, distorted, "same_kind") if self._copier else None
        np.copyto(target_reference, reference, "same_kind")
        if other is None:
            np.copyto(target_distorted, distorted, "same_kind")
        else:
            other.result()
        return self.commit()

    def flush(self) -> list[FrameScores]:
        """Wait for everything fed so far; returns the scores not yet given."""
        if self._filled:
            self._submit()
        while self._in_flight:
            self._collect_oldest()
        ready, self._ready = self._ready, []
        return ready

    def score(self, pairs: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> Iterator[FrameScores]:
        """Scores of (reference, distorted) pairs, in order, as they become ready."""
        for reference, distorted in pairs:
            yield from self.feed(reference, distorted)
        yield from self.flush()

    def _check(self, name: str, plane: npt.NDArray[Any]) -> None:
        expected = (self._format.height, self._format.width)
        if plane.shape != expected:
            raise FrameError(f"the {name} frame has shape {plane.shape}, the scorer was opened for (H, W) = {expected}")
        kind = self._format.dtype.kind
        casting: Literal["same_kind", "safe"] = "same_kind" if kind == "f" else "safe"  # integers never wrap
        if plane.dtype.kind != kind or not np.can_cast(plane.dtype, self._format.dtype, casting):
            raise FrameError(f"the {name} frame has {plane.dtype} samples, the scorer was opened for {self._format.dtype}")

    def _make_copier(self) -> ThreadPoolExecutor | None:
        """A second thread to copy the other frame of a pair, where frames are large and the device does not need the cores."""
        large = self._format.row_bytes * self._format.height >= _LARGE_FRAME_BYTES
        spare = (os.cpu_count() or 1) >= _CORES_TO_SPARE
        return ThreadPoolExecutor(1, thread_name_prefix="vkssim-copy") if large and spare else None

    def _submit(self) -> None:
        batch, frames = self._filling, self._filled
        assert batch is not None
        self._filling, self._filled = None, 0
        self._backend.submit(batch, frames)
        self._in_flight.append(batch)

    def _collect_oldest(self) -> None:
        batch = self._in_flight.popleft()
        columns = finish(self._scorers, self._backend.collect(batch))
        frames = len(next(iter(columns.values())))
        self._ready += rows(columns, range(self._next_index, self._next_index + frames))
        self._next_index += frames
        self._free.append(batch)

    def _take_ready(self) -> list[FrameScores]:
        while self._in_flight and self._backend.is_done(self._in_flight[0]):
            self._collect_oldest()
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> None:
        """Let go of the device; frames not yet scored are dropped. A second call does nothing."""
        self._closed, self._reserved = True, False
        self._filling, self._filled = None, 0  # their memory goes with the device
        self._in_flight.clear()
        if self._copier is not None:
            self._copier.shutdown()
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
