"""One source for several readers."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from vkssim.errors import DeviceError, InputError
from vkssim.frames.info import VideoInfo
from vkssim.frames.pairing.tee import Tee
from vkssim.frames.source import FrameSource, SequentialSource
from vkssim.types import ExternalFrame, ExternalPlane, Planes

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
            surface = ExternalPlane(target.ctypes.data, 4, 4, 4)
            if not (reader.read_external([number], [(surface,)]) if external else reader.read([number], [(target,)])):
                break
            found.append(int(target[0, 0]))
            then(number)
    return found


_read_external = partial(_read, external=True)


def _together(source: FrameSource, *jobs: Callable[[FrameSource], list[int]]) -> list[list[int]]:
    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(job, reader) for job, reader in zip(jobs, Tee(source, len(jobs)).readers, strict=True)]
        return [future.result(PATIENCE) for future in futures]


@pytest.mark.parametrize("step", [1, 3])
def test_all_get_every_frame_and_it_is_read_once(step: int) -> None:
    source = Counted()
    numbers = range(0, 2 * FRAMES, step)
    expected = list(range(0, FRAMES, step))
    assert _together(source, *[lambda reader: _read(reader, numbers)] * 4) == [expected] * 4
    assert source.read_numbers == expected


def test_the_quickest_waits_for_the_slowest() -> None:
    """The slow reader starts only when the quick one has to wait; from then on they are never more than eight frames apart."""
    source = Counted()
    tee = Tee(source, 2)
    quick, slow = tee.readers
    eight_read = threading.Event()
    ahead: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(_read, quick, range(FRAMES), lambda number: eight_read.set() if number == 7 else None)
        assert eight_read.wait(PATIENCE)
        assert _read(slow, range(FRAMES), lambda number: ahead.append(len(source.read_numbers) - number)) == list(range(FRAMES))
        assert future.result(PATIENCE) == list(range(FRAMES))
    assert max(ahead) <= 9


def test_one_that_leaves_holds_up_nobody() -> None:
    found = _together(Counted(), lambda reader: _read(reader, range(3)), lambda reader: _read(reader, range(FRAMES)))
    assert found == [[0, 1, 2], list(range(FRAMES))]


def test_a_problem_is_of_those_who_met_it() -> None:
    tee = Tee(Counted(5), 2)
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(_read, reader, range(stop)) for reader, stop in zip(tee.readers, (5, 9), strict=True)]
        assert [job.result(PATIENCE) for job in jobs] == [list(range(5))] * 2
    assert [reader.problem is None for reader in tee.readers] == [True, False]
    assert [reader.length for reader in tee.readers] == [None, 5]


@pytest.mark.parametrize("failure", [None, InputError("became shorter")])
def test_each_has_an_error_of_its_own(failure: InputError | None) -> None:
    """A run hangs its report on it; shared, all would have the report of whichever ended last."""
    tee = Tee(Counted(5, failure), 3)
    errors: list[BaseException | None] = []
    with ThreadPoolExecutor(3) as pool:
        for reader, job in [(reader, pool.submit(_read, reader, range(9))) for reader in tee.readers]:
            errors.append(job.exception(PATIENCE) or reader.problem)
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
        ctypes.memmove(target[0].address, self._samples.ctypes.data, self._samples.nbytes)

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


def test_a_slow_reader_holds_few_frames_of_the_decoder() -> None:
    """The slow reader starts only when the quick one has all the frames that it may have."""
    source = Lent()
    quick, slow = Tee(source, 2).readers
    four_read = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(_read_external, quick, range(FRAMES), lambda number: four_read.set() if number == 3 else None)
        assert four_read.wait(PATIENCE)
        assert _read_external(slow, range(FRAMES)) == list(range(FRAMES))
        assert future.result(PATIENCE) == list(range(FRAMES))
    assert source.most_lent == 4
    assert not source.lent


def test_a_copy_that_fails_is_of_its_reader_alone() -> None:
    source = Lent(fails_at=5)
    tee = Tee(source, 3)
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(_read_external, reader, range(99)) for reader in tee.readers]
        failures = [job.exception(PATIENCE) for job in jobs]
        found = [job.result() for job, failure in zip(jobs, failures, strict=True) if failure is None]
    assert [str(failure) for failure in failures if failure is not None] == ["the copy failed"]
    assert found == [list(range(FRAMES))] * 2
    assert source.read_numbers == list(range(FRAMES))


def test_a_reader_whose_copy_failed_gets_no_more() -> None:
    """Its next batch may be asked for before its run has ended, and the others still want the frames before that."""
    source = Lent(fails_at=2)
    failing, other = Tee(source, 2).readers
    memory = np.empty((32, 4, 4), np.uint8)
    targets = [(ExternalPlane(samples.ctypes.data, 4, 4, 4),) for samples in memory]
    with pytest.raises(DeviceError, match="the copy failed"):
        failing.read_external(range(16), targets[:16])
    assert failing.read_external(range(16, 32), targets[16:]) == 0
    assert other.read_external(range(32), targets) == 32
    assert memory[:, 0, 0].tolist() == source.read_numbers == list(range(32))
