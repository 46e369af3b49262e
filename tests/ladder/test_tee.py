"""One source for several readers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from vkssim.errors import InputError
from vkssim.frames.info import VideoInfo
from vkssim.frames.source import FrameSource, SequentialSource
from vkssim.frames.tee import Tee
from vkssim.types import Planes

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


def _read(reader: FrameSource, numbers: Sequence[int], then: Callable[[int], None] = lambda number: None) -> list[int]:
    """Read frame by frame until the end; what the frames say."""
    found = []
    with reader:
        for number in numbers:
            target = np.empty((4, 4), np.uint8)
            if not reader.read([number], [(target,)]):
                break
            found.append(int(target[0, 0]))
            then(number)
    return found


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


def test_an_error_reaches_all() -> None:
    tee = Tee(Counted(5, InputError("became shorter")), 3)
    with ThreadPoolExecutor(3) as pool:
        for job in [pool.submit(_read, reader, range(9)) for reader in tee.readers]:
            with pytest.raises(InputError, match="became shorter"):
                job.result(PATIENCE)


@pytest.mark.parametrize("failure", [None, InputError("became shorter")])
def test_each_has_an_error_of_its_own(failure: InputError | None) -> None:
    """A run hangs its report on it; shared, all would have the report of whichever ended last."""
    tee = Tee(Counted(5, failure), 3)
    errors: list[BaseException | None] = []
    with ThreadPoolExecutor(3) as pool:
        for reader, job in [(reader, pool.submit(_read, reader, range(9))) for reader in tee.readers]:
            errors.append(job.exception(PATIENCE) or reader.problem)
    assert all(isinstance(error, InputError) for error in errors)
    assert len(set(map(id, errors))) == 3
