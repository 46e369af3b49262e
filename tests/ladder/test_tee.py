"""One source for several readers."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from vkssim.errors import DeviceError, InputError
from vkssim.frames.info import VideoInfo
from vkssim.frames.pairing.tee import Tee
from vkssim.frames.source import FrameSource, ProcessedSource, SequentialSource
from vkssim.frames.transforms import Crop
from vkssim.types import ExternalFrame, ExternalPlane, Planes, Rows

from ..support.waiting import PATIENCE

FRAMES = 40


class Counted(SequentialSource):
    """Frames that say which they are; notes which were read."""

    def __init__(self, frames: int = FRAMES, failure: Exception | None = None) -> None:
        super().__init__()
        self.info = VideoInfo("counted", "made up", 4, 4, 8)
        self.read_numbers: list[int] = []
        self._frames = frames
        self._failure = failure

    def _next(self, target: Planes | None) -> bool:
        if self._position == self._frames:
            if self._failure is not None:
                raise self._failure
            self.problem = InputError("cut off in this test")
            return False
        if target is not None:
            target[0][:] = self._position
            self.read_numbers.append(self._position)
        return True

    def close(self) -> None:
        pass


def _read(
    reader: FrameSource, numbers: Sequence[int], then: Callable[[int], None] = lambda _: None, *, external: bool = False
) -> list[int]:
    """Read frame by frame until the end, into memory of the GPU if `external`; what the frames say."""
    found = []
    with reader:
        for number in numbers:
            target = np.empty((4, 4), np.uint8)
            surface = ExternalPlane(Rows(target.ctypes.data, 4), 4, 4)
            if not (reader.read_external([number], [(surface,)]) if external else reader.read([number], [(target,)])):
                break
            found.append(int(target[0, 0]))
            then(number)
    return found


_read_external = partial(_read, external=True)


def _each(source: FrameSource, *jobs: Callable[[FrameSource], list[int]]) -> list[tuple[FrameSource, Future[list[int]]]]:
    """The readers of a source, each with its job when all are done."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        return [(reader, pool.submit(job, reader)) for job, reader in zip(jobs, Tee(source, len(jobs)).readers, strict=True)]


def _together(source: FrameSource, *jobs: Callable[[FrameSource], list[int]]) -> list[list[int]]:
    return [future.result() for _, future in _each(source, *jobs)]


@pytest.mark.parametrize("step", [1, 3])
def test_all_get_every_frame_and_it_is_read_once(step: int) -> None:
    source = Counted()
    numbers = range(0, 2 * FRAMES, step)
    expected = list(range(0, FRAMES, step))
    assert _together(source, *[lambda reader: _read(reader, numbers)] * 4) == [expected] * 4
    assert source.read_numbers == expected


def test_one_that_leaves_holds_up_nobody() -> None:
    found = _together(Counted(), lambda reader: _read(reader, range(3)), lambda reader: _read(reader, range(FRAMES)))
    assert found == [[0, 1, 2], list(range(FRAMES))]


def test_a_problem_is_of_those_who_met_it() -> None:
    (early, first), (late, second) = _each(Counted(5), partial(_read, numbers=range(5)), partial(_read, numbers=range(9)))
    assert first.result() == second.result() == list(range(5))
    assert [reader.problem is None for reader in (early, late)] == [True, False]
    assert [reader.length for reader in (early, late)] == [None, 5]


@pytest.mark.parametrize("failure", [None, InputError("became shorter")])
def test_each_has_an_error_of_its_own(failure: InputError | None) -> None:
    """A run hangs its report on it; shared, all would have the report of whichever ended last."""
    found = _each(Counted(5, failure), *[partial(_read, numbers=range(9))] * 3)
    errors = [job.exception() or reader.problem for reader, job in found]
    assert {type(error) for error in errors} == {InputError}
    assert {str(error) for error in errors} == {"cut off in this test" if failure is None else "became shorter"}
    assert len(set(map(id, errors))) == 3


class Lent(Counted):
    """Frames that a decoder lends: it notes how many are lent at a time. Writing frame `fails_at` fails once."""

    external = True

    def __init__(self, fails_at: int | None = None) -> None:
        super().__init__()
        self.lent: weakref.WeakSet[LentFrame] = weakref.WeakSet()
        self.most_lent = 0
        self.fails_at = fails_at

    def decoded_frame(self, number: int) -> Any:
        target = np.empty((4, 4), np.uint8)
        if not self.read([number], [(target,)]):
            return None
        frame = LentFrame(self, target)
        self.lent.add(frame)
        self.most_lent = max(self.most_lent, len(self.lent))
        return frame


class LentFrame:
    """A frame with the methods of `DecodedFrame`; addresses stand for memory of the GPU."""

    def __init__(self, source: Lent, samples: np.ndarray) -> None:
        self._source = source
        self._samples = samples
        self.copied = 0

    def write(self, target: ExternalFrame) -> None:
        if self._source.fails_at == self._samples[0, 0]:
            self._source.fails_at = None
            raise DeviceError("the copy failed")
        ctypes.memmove(target[0].rows.address, self._samples.ctypes.data, self._samples.nbytes)

    def copy(self, target: Planes) -> None:
        self.copied += 1
        assert self.copied == 1, "the readers on the host share a copy"
        target[0][:] = self._samples


def test_readers_on_the_gpu_and_on_the_host() -> None:
    """Each frame is decoded once, and copied to the host once."""
    source = Lent()
    found = _together(
        source, *[lambda reader: _read_external(reader, range(99))] * 2, *[lambda reader: _read(reader, range(99))] * 2
    )
    assert found == [list(range(FRAMES))] * 4
    assert source.read_numbers == list(range(FRAMES))
    assert source.most_lent <= 4
    assert not source.lent


def test_a_step_of_each_reader_leaves_the_source_to_one_of_them() -> None:
    """A step asks for frames of any size, also if all have one size."""
    source = Counted()
    crop = Crop(4, 4)
    jobs = [lambda reader: _read(ProcessedSource(reader, crop), range(99))] * 3
    assert [job.result() for _, job in _each(source, *jobs)] == [list(range(FRAMES))] * 3
    assert source.read_numbers == list(range(FRAMES))


@pytest.mark.parametrize(("kind", "most"), [(Counted, 8), (Lent, 4)])
def test_the_quickest_waits_for_the_slowest(kind: type[Counted], most: int) -> None:
    """The slow reader starts only when the quick one has all the frames that it may have; a decoder lends fewer frames."""
    source, external = kind(), kind is Lent
    quick, slow = Tee(source, 2).readers
    all_read = threading.Event()
    ahead: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        read = partial(_read, numbers=range(FRAMES), external=external)
        future = pool.submit(read, quick, then=lambda number: all_read.set() if number == most - 1 else None)
        assert all_read.wait(PATIENCE)
        assert read(slow, then=lambda number: ahead.append(len(source.read_numbers) - number)) == list(range(FRAMES))
        assert future.result(PATIENCE) == list(range(FRAMES))
    assert max(ahead) <= most + 1
    if isinstance(source, Lent):
        assert (source.most_lent, len(source.lent)) == (most, 0)


def test_a_copy_that_fails_is_of_its_reader_alone() -> None:
    source = Lent(fails_at=5)
    jobs = [job for _, job in _each(source, *[partial(_read_external, numbers=range(99))] * 3)]
    assert [str(failure) for job in jobs if (failure := job.exception()) is not None] == ["the copy failed"]
    assert [job.result() for job in jobs if job.exception() is None] == [list(range(FRAMES))] * 2
    assert source.read_numbers == list(range(FRAMES))


def test_a_reader_whose_copy_failed_gets_no_more() -> None:
    """Its next batch may be asked for before its run has ended, and the others still want the frames before that."""
    source = Lent(fails_at=2)
    failing, other = Tee(source, 2).readers
    memory = np.empty((32, 4, 4), np.uint8)
    targets = [(ExternalPlane(Rows(samples.ctypes.data, 4), 4, 4),) for samples in memory]
    with pytest.raises(DeviceError, match="the copy failed"):
        failing.read_external(range(16), targets[:16])
    assert failing.read_external(range(16, 32), targets[16:]) == 0
    assert other.read_external(range(32), targets) == 32
    assert memory[:, 0, 0].tolist() == source.read_numbers == list(range(32))
