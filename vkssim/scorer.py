"""Score frames: a Scorer is opened for one size, takes pairs of frames, and returns their scores in order."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .backends.base import Batch
from .backends.open import open_backend, open_with_warnings
from .errors import DeviceError, FrameError, OptionError, VkssimError
from .metrics import files_of, for_clips
from .metrics.plane_metrics import FrameMetrics, FrameSequence, feature_texts, plane_formats
from .report.results import FrameScores, rows
from .shaders.interface import SampleCode
from .types import BackendInfo, DepthCheck, Doubles, FrameFormat, Samples, check_not_masked
from .utils.float_range import SampleRows, warn_of_range
from .utils.limits import integer
from .utils.thread_pool import Closable

Picture = npt.NDArray[Any] | Sequence[npt.NDArray[Any]]
"""A frame: its luma, (H, W), or its planes Y, Cb and Cr if all planes are scored."""

_LARGE_FRAME_BYTES = 1 << 19
_CORES_TO_SPARE = 4
_OWN_REFERENCES = 2  # references to the base of a lent array: that of the array, and that of the code that counts

_scorers: weakref.WeakSet[Scorer] = weakref.WeakSet()


def _in_child() -> None:
    """Reset the scorers in a forked child, which lacks the thread that was in a scorer and the thread that copied frames."""
    for scorer in _scorers:
        scorer._in_use, scorer._copier = threading.RLock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Scorer(Closable):
    """Score pairs of frames of one size, in order; use it with `with`.

    A bounded number of frames is in flight. Scores come as soon as their batch is done, and `flush` returns all of them.

    Each thread may have its own scorer, also on the same device, or threads may take turns with one. A call while another
    thread is in the same scorer raises FrameError; `close` waits for that thread.

    If the device fails, for example with DeviceLostError, the message names the frames that were not scored. The scorer drops
    these frames and accepts no others. `flush` then returns the scores that were ready and not yet returned. To continue, open
    a new Scorer, which counts from 0 again, and feed it the named frames. The same holds if an integer sample is larger than
    the depth or `data_range` allows: a FrameError names the frame and the value as soon as its batch is scored.

    If no sample that was fed exceeds a quarter of the range of `bits`, or of uint16 without `data_range`, `close` issues a
    DepthWarning: the samples may have a smaller depth. If the first floats that are not all 0 lie far outside of the range, or
    take a small part of it, `feed` issues a DataRangeWarning. Frames that are written to reserved memory are not looked at.

    Parameters
    ----------
    width, height : int
        Size of the frames in samples.
    bits : int, optional
        Depth of integer samples, 8 to 16: uint8 for 8 bits and uint16 for more. Each sample is divided by 2^(bits-8) as libvmaf
        does. Without it, `dtype` and `data_range` describe the samples.
    dtype : dtype_like, optional
        The type of the samples: uint8, uint16, float32 or float64, which is computed in float32.
    data_range : float, optional
        The largest possible sample; the default is the largest of the integer type. Floats have no default.
    features : str or sequence of str
        Metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``.
    planes : {"y", "yuv", "all"}
        The planes of a frame: with ``"y"`` its luma, or (Y, Cb, Cr) if a metric reads chroma, as VMAF's models of version 1
        do. With ``"yuv"`` a frame is (Y, Cb, Cr), and each score exists for every plane, as ``float_ssim_y``, ``_cb`` and
        ``_cr``. With ``"all"`` there is also ``float_ssim_all``, their mean weighted by area, like All in FFmpeg.
    chroma : {"420", "422", "444", "440", "411", "410"}
        The subsampling of chroma, if it is scored or read.
    backend : {"vulkan", "cpu"}
        The backend that computes the scores. No other backend ever replaces it.
    device : str or int, optional
        Index, part of the name, or UUID of the Vulkan device. The default is the environment variable VKSSIM_DEVICE, then the
        first hardware GPU, then a software device.
    batch : int, optional
        The most frames of a submission, 1 or more; the default depends on size and device. With 1, each score comes as early as
        possible. If the device has too little memory, batches are smaller, with a SmallerBatchWarning.

    Raises
    ------
    FrameError
        The frames are too small for a metric, or their type or range is not supported.
    OptionError
        A feature, an option or a backend is unknown.
    DeviceError
        No device can be used, or the device fails later.

    Examples
    --------
    >>> import numpy as np, vkssim
    >>> frames = np.random.default_rng(0).integers(0, 256, (2, 64, 64), np.uint8)
    >>> with vkssim.Scorer(64, 64, bits=8, features="float_ssim") as scorer:
    ...     for scores in scorer.score(zip(frames, frames)):
    ...         print(scores.index, scores.metrics["float_ssim"])
    0 1.0
    1 1.0

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
        planes: str = "y",
        chroma: str = "420",
        backend: str = "vulkan",
        device: str | int | None = None,
        batch: int | None = None,
    ) -> None:
        width, height = integer("width", width), integer("height", height)
        bits = None if bits is None else integer("bits", bits)
        batch = None if batch is None else integer("batch", batch)
        if batch is not None and batch < 1:
            raise OptionError(f"batch is {batch}; it must be 1 or more")
        if bits is not None and dtype is None and data_range is None:
            luma = FrameFormat.of_bits(width, height, bits)
        elif dtype is not None and bits is None:
            luma = FrameFormat.of_array(width, height, dtype, data_range)
        else:
            raise OptionError("give either bits or dtype; data_range goes with dtype")
        self._in_use = threading.RLock()
        self._depth_cure: Literal["bits", "data_range"] = "data_range" if bits is None else "bits"
        depth_is_checked = luma.code is SampleCode.UINT16 and data_range is None
        self._depth_checks = [DepthCheck(luma.peak) for _ in range(2)] if depth_is_checked else []
        self._float_range = luma.peak if luma.code is SampleCode.FLOAT32 else None  # None if it needs no more looks
        self._metrics = FrameMetrics(features, plane_formats(luma, planes, chroma), total=planes == "all", chroma=chroma)
        self._formats = tuple(plane.format for plane in self._metrics.planes)
        opened = open_backend(backend, self._metrics.planes, device=device, batch=batch, keep=False)
        self._backend = open_with_warnings(opened)
        is_large = luma.row_bytes * luma.height >= _LARGE_FRAME_BYTES
        cores_are_free = (os.cpu_count() or 1) >= _CORES_TO_SPARE  # the device may need them
        # A second thread that copies the other frame of a pair.
        self._copier = ThreadPoolExecutor(1, thread_name_prefix="vkssim-copy") if is_large and cores_are_free else None
        self._free = list(reversed(self._backend.batches))
        self._filling: Batch | None = None
        self._filled = 0
        self._in_flight: deque[Batch] = deque()
        self._before: Batch | None = None  # with the frames before the next ones, if they belong to one clip
        self._sequence = FrameSequence(self._metrics)
        self._ready: list[FrameScores] = []
        self._next_index = 0
        self._fed = 0
        self._failure: VkssimError | None = None
        self._reserved = False
        self._lending = Lending()
        self._closed = False
        _scorers.add(self)

    @property
    def info(self) -> BackendInfo:
        """Return the backend that computes the scores, with its device and driver."""
        return self._backend.info

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the scores of each frame."""
        return self._metrics.names

    @staticmethod
    def files_of(features: Sequence[str]) -> list[str]:
        """Return the paths of the files that the scores of features depend on, such as a model of VMAF."""
        return files_of(features)

    @staticmethod
    def features_for(
        features: Sequence[str] | str,
        *,
        fps: Fraction | float | None = None,
        encoded_size: tuple[int, int] | None = None,
        encoded_bits: int | None = None,
    ) -> list[str]:
        """Return features with the facts about clips that VMAF's model v1 takes, which `score_files` reads from the files.

        `fps` is the frame rate: from 45 on, v1 is v1_hfr. `encoded_size` is the width and height of the distorted clip before
        it was scaled up, and `encoded_bits` its depth before it was brought to a larger one.
        """
        return for_clips(feature_texts(features), fps, encoded_size, encoded_bits)

    @property
    def planes_per_frame(self) -> int:
        """Return 3 if a frame is (Y, Cb, Cr), and 1 if it is its luma alone."""
        return len(self._formats)

    @property
    def frames_before(self) -> int:
        """Return the number of frames before a frame on which its scores depend."""
        return self._metrics.frames_before

    @property
    def frames_after(self) -> int:
        """Return the number of frames after a frame on which its scores depend."""
        return self._metrics.frames_after

    @property
    def similarities(self) -> tuple[str, ...]:
        """Return the entries of `names` that are metrics themselves and not in dB: they are 1 for identical frames."""
        return self._metrics.similarities

    def reserve(self) -> tuple[Any, Any]:
        """Return the memory of the next pair, to be written before `commit`.

        The device reads this memory, so writing to it is the only copy. `commit` makes the arrays read-only, and you may keep
        them: the memory, and with it the device, stays until the last view of it is gone. The scorer cannot see the views of
        other libraries, such as memoryviews and tensors: do not write to them after `commit`.

        Returns
        -------
        (array, array), or tuple of two tuples of three arrays
            The reference and the distorted frame as (H, W) arrays of the scorer's sample type, or their planes Y, Cb and Cr if
            all are scored. Rows may be padded.

        Raises
        ------
        FrameError
            The scorer is closed, or has failed before.

        """
        with self._alone():
            planes = self._lending.lend(tuple(chain(*self._reserve())))
        half = len(self._formats)
        return (planes[:half], planes[half:]) if half > 1 else (planes[0], planes[1])

    def _reserve(self) -> tuple[tuple[Samples, ...], tuple[Samples, ...]]:
        if self._closed:
            raise FrameError("the scorer is closed")
        self._backend.check_process()
        self._check_working()
        if self._filling is None:
            if not self._free:
                self._collect_oldest()
            self._filling = self._free.pop()
        self._reserved = True
        batch, number = self._filling, self._filled
        return tuple(plane[number] for plane in batch.reference), tuple(plane[number] for plane in batch.distorted)

    def commit(self) -> list[FrameScores]:
        """Submit the frames that were written to the arrays of `reserve`.

        Returns
        -------
        list of FrameScores
            The scores that have become ready, in order; often none.

        Raises
        ------
        FrameError
            `reserve` was not called, or an array made from a reserved one still exists, which could still change the frame.

        """
        with self._alone():
            if not self._reserved:
                raise FrameError("no memory is reserved; call reserve() and fill both frames first")
            self._lending.take_back()
            self._reserved = False
            self._check_working()
            self._filled += 1
            self._fed += 1
            if self._filled == self._backend.batch_size:
                self._submit()
            while self._in_flight and self._is_done(self._in_flight[0]):
                self._collect_oldest()
            return self._take_ready()

    def feed(self, reference: Picture, distorted: Picture) -> list[FrameScores]:
        """Submit a copy of a pair of frames.

        Parameters
        ----------
        reference, distorted : (H, W) array, or sequence of three arrays
            The luma of a frame, or its planes Y, Cb and Cr if all are scored. The arrays may have any strides.

        Returns
        -------
        list of FrameScores
            The scores that have become ready, in order; often none.

        Raises
        ------
        FrameError
            The number, shape or type of the planes differs from the scorer's, or an array is masked.

        """
        with self._alone():
            sources = self._planes_of("reference", reference), self._planes_of("distorted", distorted)
            for check, planes in zip(self._depth_checks, sources, strict=False):
                check.look(planes[0])
            if self._float_range is not None:
                self._look_at_range(sources[0][0], sources[1][0])
            targets = self._reserve()
            other = self._copier.submit(_copy, targets[1], sources[1]) if self._copier else None
            _copy(targets[0], sources[0])
            if other is None:
                _copy(targets[1], sources[1])
            else:
                other.result()
            return self.commit()

    def flush(self) -> list[FrameScores]:
        """Wait for all frames that were submitted.

        For metrics that compare neighbouring frames, such as vmaf, the clip ends here: the next frame begins a new clip.

        Returns
        -------
        list of FrameScores
            The scores not yet returned, in order. After the device has failed, they are the scores that were ready before.

        """
        with self._alone():
            if self._filled and self._failure is None:
                self._submit()
            while self._in_flight and self._failure is None:
                self._collect_oldest()
            if self._failure is None:
                self._end_clip()
            return self._take_ready()

    def score(self, pairs: Iterable[tuple[Picture, Picture]]) -> Iterator[FrameScores]:
        """Score pairs of frames as they come, and end the clip. If the iteration is left early, `flush` ends it.

        Parameters
        ----------
        pairs : iterable of (array, array)
            The reference and the distorted frame of each pair, as for `feed`.

        Yields
        ------
        FrameScores
            The scores of each pair, in order, as they become ready.

        Raises
        ------
        FrameError
            A frame does not match the scorer.

        """
        for reference, distorted in pairs:
            yield from self.feed(reference, distorted)
        yield from self.flush()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out: a concurrent call from one of them is refused before it changes anything."""
        if not self._in_use.acquire(blocking=False):
            raise FrameError(
                "another thread is using this scorer; give each thread its own scorer, or let the threads take turns"
            )
        try:
            yield
        finally:
            self._in_use.release()

    def _begin_stack(self) -> None:
        """Give the next frame the number 0. No frame is in flight, and the caller has looked at the range of the samples."""
        self._next_index = self._fed = 0
        self._float_range = None
        self._before, self._sequence = None, FrameSequence(self._metrics)

    def _planes_of(self, name: str, picture: Picture) -> list[Samples]:
        planes = []
        if len(self._formats) > 1 and getattr(picture, "ndim", None) == 2:
            raise FrameError(f"the {name} frame is one plane; the features and planes of this scorer need (Y, Cb, Cr)")
        for plane in picture if len(self._formats) > 1 else (picture,):
            check_not_masked(f"the {name} frame", plane)
            planes.append(np.asarray(plane))
        if len(planes) != len(self._formats):
            raise FrameError(f"the {name} frame has {len(planes)} planes; the scorer was opened for {len(self._formats)}")
        for plane, expected in zip(planes, self._formats, strict=True):
            _check(name, plane, expected)
        return planes

    def _look_at_range(self, reference: Samples, distorted: Samples) -> None:
        """Issue a DataRangeWarning if the first frames that are not black do not fit the range."""
        assert self._float_range is not None
        first, second = SampleRows.of(reference), SampleRows.of(distorted)
        if not (first.are_black and second.are_black):
            data_range, self._float_range = self._float_range, None
            warn_of_range(data_range, first, second)

    def _submit(self) -> None:
        batch, frames = self._filling, self._filled
        assert batch is not None
        self._filling, self._filled = None, 0
        with self._failing():
            self._backend.submit(batch, frames, self._before)
        self._before = batch
        self._in_flight.append(batch)

    def _collect_oldest(self) -> None:
        batch = self._in_flight.popleft()
        with self._failing():
            means = self._backend.collect(batch)
        out_of_range = batch.out_of_range
        if out_of_range is not None:
            means = [[terms[: out_of_range.frame] for terms in plane] for plane in means]
        if out_of_range is None or out_of_range.frame:
            self._add_ready(self._sequence.add(means))
        self._free.append(batch)
        if out_of_range is not None:
            self._end_clip()
            error = out_of_range.error(self._next_index)
            self._failure = FrameError(f"{error}; frames from {self._next_index} on are not scored")
            raise self._failure

    def _add_ready(self, columns: Mapping[str, Doubles]) -> None:
        frames = len(next(iter(columns.values()), ()))
        self._ready += rows(columns, range(self._next_index, self._next_index + frames))
        self._next_index += frames

    def _end_clip(self) -> None:
        """Settle the scores of the frames that wait for the frame after them."""
        self._add_ready(self._sequence.end())
        self._before = None

    def _take_ready(self) -> list[FrameScores]:
        ready, self._ready = self._ready, []
        return ready

    def _is_done(self, batch: Batch) -> bool:
        with self._failing():
            return self._backend.is_done(batch)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Remember that the device failed or that the user interrupted the call, and name the affected frames."""
        try:
            yield
        except DeviceError as error:
            first, last = self._next_index, self._fed - 1
            frames = f"frame {first} was" if first == last else f"frames {first} to {last} were"
            self._failure = type(error)(f"{error}; {frames} not scored. Score them with a new Scorer")
            raise self._failure from error
        except BaseException:  # after Ctrl-C, the batch is lost, and the next scores would get its numbers
            self._failure = FrameError(
                f"the scorer was interrupted; frames from {self._next_index} on are not scored. Score them with a new Scorer"
            )
            raise

    def _check_working(self) -> None:
        if self._failure is not None:
            raise type(self._failure)(*self._failure.args)

    def close(self) -> None:
        """Free the memory on the device, and drop frames that are not yet scored. A second call does nothing."""
        with self._in_use:
            if self._closed:
                return
            self._closed, self._reserved = True, False
            self._filling, self._filled = None, 0  # closing the device frees their memory
            self._in_flight.clear()
            if self._copier is not None:
                self._copier.shutdown()
            self._lending.close(self._backend.close)
            for name, check in zip(
                ("reference", "distorted"), self._depth_checks if self._failure is None else (), strict=False
            ):
                check.warn(f"the {name} frames", self._depth_cure)


def _check(name: str, plane: Samples, expected: FrameFormat) -> None:
    shape = (expected.height, expected.width)
    if plane.shape != shape:
        raise FrameError(f"the {name} frame has shape {plane.shape}; the scorer was opened for (H, W) = {shape}")
    if expected.dtype.kind == "f":
        is_right = np.can_cast(plane.dtype, expected.dtype, "same_kind") and plane.dtype.kind == "f"
    else:  # another size is another depth; the order of the bytes is converted
        is_right = np.can_cast(plane.dtype, expected.dtype, "equiv")
    if not is_right:
        raise FrameError(f"the {name} frame has {plane.dtype} samples; the scorer was opened for {expected.dtype}")


def _copy(targets: Sequence[Samples], sources: Sequence[Samples]) -> None:
    for target, source in zip(targets, sources, strict=True):
        np.copyto(target, source, "same_kind")


# -- memory that is lent to the caller ---------------------------------------------------------------------------------


class _Owner:
    """The owner of the memory of several leases. The memory is freed when the last lease ends."""


class _Lease:
    """The memory of one lent array. NumPy keeps it alive as long as a view of the array exists."""

    def __init__(self, memory: Samples, owner: _Owner) -> None:
        self._memory, self._owner = memory, owner
        self.__array_interface__ = memory.__array_interface__


class Lending:
    """Arrays over staging memory that are lent until they are taken back. The memory exists as long as a view of it."""

    def __init__(self) -> None:
        self._owner = _Owner()
        self._lent: tuple[Samples, ...] = ()

    def lend(self, memory: Sequence[Samples]) -> tuple[Samples, ...]:
        """Return writable arrays over `memory`; further calls return the same arrays until they are taken back."""
        self._lent = self._lent or tuple(map(self._array, memory))
        return self._lent

    def _array(self, memory: Samples) -> Samples:
        # This is a view, so that it has its own base. All other views of the memory have the same base and can be counted.
        view: Samples = np.asarray(_Lease(memory, self._owner))[:]
        return view

    def take_back(self) -> None:
        """Make the arrays read-only.

        Raises FrameError if an array that was made from one of them still exists, because NumPy would still allow writing to
        it.
        """
        if any(sys.getrefcount(array.base) > _OWN_REFERENCES for array in self._lent):
            raise FrameError(
                "another array still shares the memory of a reserved frame, and writing to it would change the score: delete"
                " arrays that you made from the reserved ones, such as slices, before commit()"
            )
        for array in self._lent:
            array.flags.writeable = False
        self._lent = ()

    def close(self, free: Callable[[], None]) -> None:
        """Call `free`, which releases the memory: at once, or when the last view of the memory is gone."""
        self._lent = ()
        owner, self._owner = weakref.ref(self._owner), _Owner()
        still_lent = owner()
        if still_lent is None:
            free()
        else:
            weakref.finalize(still_lent, free).atexit = False
