"""What becomes of tasks whose workers fail, and of the workers: with seats whose outcomes are set by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

import pytest

from vkssim.distributed import scheduler as pool_module
from vkssim.distributed.scheduler import MOST_ATTEMPTS, Pool, TaskKey
from vkssim.distributed.task import Done, Task
from vkssim.distributed.worker_pool import Engine, Seat, WorkerDiedError
from vkssim.errors import (
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    DeviceTimeoutError,
    InputError,
    NoDeviceError,
    UnsuitableDeviceError,
    VkssimError,
    WorkerLostError,
)
from vkssim.scoring.options import Clips, ScoreOptions
from vkssim.scoring.ranges import Part, PartScores

Answer = Callable[[], Done]


def _done(seconds: float = 1.0, device: str = "") -> Done:
    scores = PartScores.__new__(PartScores)  # the pool does not look at them
    return Done(scores, [Part()], 1, 1, seconds, device)


class FakeSeat(Seat):
    """Does each task by `answer`, or leaves it undone where that is None. `tasks` are those it was given, by their names."""

    def __init__(self, label: str, answer: Answer | None = _done) -> None:
        self.label = label
        self.answer = answer
        self.tasks: list[str] = []
        self.waiting: list[Future[Done]] = []
        self.renewed = 0

    def submit(self, task: Task) -> Future[Done]:
        future: Future[Done] = Future()
        self.tasks.append(task.name)
        self.waiting.append(future)
        if self.answer is not None:
            self.settle(self.answer)
        return future

    def settle(self, answer: Answer) -> None:
        """Do the task it is at."""
        future = self.waiting.pop()
        try:
            future.set_result(answer())
        except Exception as error:
            future.set_exception(error)

    def renew(self) -> None:
        self.renewed += 1

    def close(self) -> None:
        pass


class FakeEngine(Engine):
    """`there` are the seats at the moment."""

    def __init__(self, *seats: FakeSeat) -> None:
        self.there: list[FakeSeat] = list(seats)

    def seats(self) -> Sequence[Seat]:
        return list(self.there)

    def close(self) -> None:
        pass


def _failing(error: Exception, times: int = 1000) -> Answer:
    """Raises an error so many times, and does what it is asked for from then on."""
    left = [error] * times

    def answer() -> Done:
        if left:
            raise left.pop()
        return _done()

    return answer


DIED = WorkerDiedError("gone")


class Impatient:
    """In place of the queue of what is finished: whoever waits for it gives up at once."""

    def __init__(self, pool: Pool) -> None:
        self.put = pool._finished.put

    def get(self, timeout: float) -> Future[Done]:
        raise TimeoutError(timeout)


def _pool(*seats: FakeSeat, tasks: int = 0) -> tuple[Pool, FakeEngine, list[str]]:
    told: list[str] = []
    engine = FakeEngine(*seats)
    pool = Pool(engine, told.append)
    for number in range(tasks):
        _put(pool, number)
    return pool, engine, told


def _put(pool: Pool, number: int, job: int = 0) -> None:
    clips = Clips("ref.mp4", f"{number}.mp4")
    pool.put(TaskKey(job, number), Task(clips, ScoreOptions(("float_ssim",)), name=f"{job}/{number}"))


def _places(pool: Pool, count: int) -> list[int]:
    """The places of the next tasks, all of which succeed."""
    places = []
    for _ in range(count):
        key, done = pool.take()
        assert isinstance(done, Done)
        places.append(key.place)
    return sorted(places)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_SECONDS_BETWEEN_LOOKS", 0.001)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What time it is, as its one entry."""
    now = [0.0]
    monkeypatch.setattr(pool_module.time, "monotonic", lambda: now[0])
    return now


def test_tasks_are_handed_out_in_their_order() -> None:
    seat = FakeSeat("a")
    pool, _, told = _pool(seat, tasks=4)
    assert [pool.take()[0].place for _ in range(4)] == [0, 1, 2, 3]
    assert (seat.tasks, told) == (["0/0", "0/1", "0/2", "0/3"], [])


def test_a_slow_worker_does_not_hold_up_the_others() -> None:
    slow, quick = FakeSeat("slow", None), FakeSeat("quick")
    pool, _, _ = _pool(slow, quick, tasks=5)
    assert _places(pool, 4) == [1, 2, 3, 4]
    slow.settle(_done)
    assert _places(pool, 1) == [0]


def test_hungry_as_long_as_there_is_less_to_do_than_workers() -> None:
    pool, _, _ = _pool(FakeSeat("a", None), FakeSeat("b", None))
    pool.look()
    assert pool.seats == 2
    for number in range(2):
        assert pool.hungry
        _put(pool, number)
    assert not pool.hungry


# -- workers that fail ------------------------------------------------------------------------------------------------


def test_the_task_of_a_dead_worker_goes_to_another() -> None:
    dying, sound = FakeSeat("dying", _failing(DIED, 1)), FakeSeat("sound")
    pool, _, told = _pool(dying, sound, tasks=2)
    assert _places(pool, 2) == [0, 1]
    assert sound.tasks == ["0/1", "0/0"]
    assert dying.renewed == 1
    assert len(told) == 1
    assert told[0].startswith("a worker on dying ended without a word (gone); what it scored goes to another")


def test_a_new_worker_on_the_only_seat_tries_again() -> None:
    seat = FakeSeat("a", _failing(DIED, MOST_ATTEMPTS - 1))
    pool, _, told = _pool(seat, tasks=1)
    assert _places(pool, 1) == [0]
    assert (len(seat.tasks), seat.renewed, len(told)) == (MOST_ATTEMPTS, MOST_ATTEMPTS - 1, MOST_ATTEMPTS - 1)


@pytest.mark.parametrize("error", [DeviceLostError("lost"), DeviceTimeoutError("late")])
def test_a_lost_device_keeps_its_worker(error: DeviceError) -> None:
    failing, sound = FakeSeat("failing", _failing(error, 1)), FakeSeat("sound")
    pool, _, told = _pool(failing, sound, tasks=3)
    assert _places(pool, 3) == [0, 1, 2]
    assert "0/0" in sound.tasks
    assert (failing.renewed, told) == (0, [f"{error}; what it scored goes to another one"])


def test_a_task_that_ends_every_worker_is_given_up_and_the_others_go_on() -> None:
    seats = [FakeSeat(str(number)) for number in range(2)]
    for seat in seats:
        seat.answer = lambda seat=seat: _raise(DIED) if seat.tasks[-1] == "0/1" else _done()  # type: ignore[misc]
    pool, _, _ = _pool(*seats, tasks=6)
    outcomes = dict(pool.take() for _ in range(6))
    lost = outcomes.pop(TaskKey(0, 1))
    assert isinstance(lost, WorkerLostError)
    assert str(lost).startswith(f"1.mp4 was tried {MOST_ATTEMPTS} times and given up: a worker on ")
    assert all(isinstance(done, Done) for done in outcomes.values())
    tried = [seat.tasks.count("0/1") for seat in seats]
    assert sum(tried) == MOST_ATTEMPTS
    assert min(tried) == 1, "nobody tries again what it failed at as long as another one has not"


def _raise(error: Exception) -> Done:
    raise error


def test_a_worker_that_fails_at_everything_is_used_no_more() -> None:
    failing, sound = FakeSeat("failing", _failing(DeviceLostError("lost"))), FakeSeat("sound")
    pool, _, told = _pool(failing, sound, tasks=30)
    assert _places(pool, 30) == list(range(30))
    assert len(failing.tasks) == MOST_ATTEMPTS
    assert told[-1] == "failing is used no more: lost"
    assert pool.seats == 1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nothing_is_believed_when_every_worker_always_dies(count: int) -> None:
    """Some tasks are given up, then the run: not each task of a hundred is tried three times."""
    seats = [FakeSeat(str(number), _failing(DIED)) for number in range(count)]
    pool, _, _ = _pool(*seats, tasks=100)
    with pytest.raises(VkssimError) as raised:
        _given_up_one_after_the_other(pool)
    assert isinstance(raised.value, WorkerLostError | DeviceError)
    assert sum(len(seat.tasks) for seat in seats) <= MOST_ATTEMPTS * (MOST_ATTEMPTS + count)


def _given_up_one_after_the_other(pool: Pool) -> None:
    while True:
        assert isinstance(pool.take()[1], WorkerLostError)


@pytest.mark.parametrize("error", [UnsuitableDeviceError("not that one"), NoDeviceError("none")])
def test_a_device_that_cannot_be_used_is_not_the_tasks_fault(error: DeviceError) -> None:
    """Its task is tried elsewhere as if nothing had been: however many devices fail."""
    failing = [FakeSeat(f"failing {number}", _failing(error)) for number in range(MOST_ATTEMPTS + 1)]
    sound = FakeSeat("sound", None)
    pool, engine, told = _pool(*failing, tasks=1)
    engine.there.append(sound)
    sound.answer = _done
    assert _places(pool, 1) == [0]
    assert [len(seat.tasks) for seat in failing] == [1] * len(failing)
    assert told == [f"{seat.label} is used no more: {error}" for seat in failing]


def test_no_worker_left_is_the_last_ones_error() -> None:
    error = UnsuitableDeviceError("not that one")
    pool, _, _ = _pool(FakeSeat("a", _failing(error)), FakeSeat("b", _failing(error)), tasks=2)
    with pytest.raises(UnsuitableDeviceError, match="not that one"):
        pool.take()


def test_no_worker_at_all() -> None:
    pool, _, _ = _pool(tasks=1)
    with pytest.raises(NoDeviceError, match="no worker is left"):
        pool.take()


@pytest.mark.parametrize("error", [InputError("no video"), DeviceMemoryError("not a frame fits"), ValueError("a bug")])
def test_what_is_wrong_with_clips_is_not_tried_again(error: Exception) -> None:
    seats = [FakeSeat("a", _failing(error, 1)), FakeSeat("b", _failing(error, 1))]
    pool, _, told = _pool(*seats, tasks=4)
    outcomes = [pool.take()[1] for _ in range(4)]
    assert outcomes.count(error) == 2
    assert sum(len(seat.tasks) for seat in seats) == 4
    assert told == []


def test_failures_count_only_one_after_the_other() -> None:
    """A worker that gets something done in between is kept."""
    seat = FakeSeat("a")
    seat.answer = lambda: _raise(DIED) if len(seat.tasks) % 2 else _done()
    pool, _, told = _pool(seat, tasks=8)
    assert _places(pool, 8) == list(range(8))
    assert not any("no more" in sentence for sentence in told)


# -- late tasks -------------------------------------------------------------------------------------------------------


def _late(clock: list[float]) -> tuple[Pool, FakeSeat, FakeSeat]:
    """Three tasks are done in a second each, a fourth is late with its worker, and another worker has it as well."""
    slow, quick = FakeSeat("slow", None), FakeSeat("quick")
    pool, _, _ = _pool(slow, quick, tasks=4)
    assert _places(pool, 3) == [1, 2, 3]
    quick.answer = None
    clock[0] = 1.9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_finished", Impatient(pool))
        with pytest.raises(TimeoutError):
            pool.take()
        assert quick.tasks == ["0/1", "0/2", "0/3"], "it is not late yet"
        clock[0] = 2.1
        with pytest.raises(TimeoutError):
            pool.take()
    assert (slow.tasks, quick.tasks[3:]) == (["0/0"], ["0/0"])
    return pool, slow, quick


@pytest.mark.parametrize("host", ["", "another"])
def test_before_durations_are_known_another_machine_helps_out(clock: list[float], host: str) -> None:
    """A worker of the same machine would take its cores from the first."""
    slow, idle = FakeSeat("slow", None), FakeSeat("idle", None)
    idle.host = host
    pool, _, _ = _pool(slow, idle, tasks=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_finished", Impatient(pool))
        for clock[0] in (0.0, 59.0, 61.0):
            with pytest.raises(TimeoutError):
                pool.take()
            assert idle.tasks == (["0/0"] if host and clock[0] > 60 else [])


@pytest.mark.parametrize("winner", ["slow", "quick"])
def test_of_two_that_are_at_a_late_task_the_first_counts(clock: list[float], winner: str) -> None:
    pool, slow, quick = _late(clock)
    first, second = (slow, quick) if winner == "slow" else (quick, slow)
    first.settle(lambda: _done(device=winner))
    key, done = pool.take()
    assert isinstance(done, Done)
    assert (key.place, done.device) == (0, winner)
    _put(pool, 7)
    first.answer = _done
    second.settle(_done)
    assert _places(pool, 1) == [7], "the loser's outcome is nobody's"


def test_a_late_task_survives_either_worker(clock: list[float]) -> None:
    pool, slow, quick = _late(clock)
    quick.settle(_failing(DIED))
    slow.settle(_done)
    assert _places(pool, 1) == [0]


def test_a_late_task_that_fails_at_both_is_tried_again(clock: list[float]) -> None:
    pool, slow, quick = _late(clock)
    slow.settle(_failing(DeviceLostError("lost")))
    quick.settle(_failing(DIED))
    slow.answer = quick.answer = _done
    assert _places(pool, 1) == [0]
    assert len(slow.tasks) + len(quick.tasks) == 2 + 3 + 1


def test_a_late_task_is_tried_twice_at_most(clock: list[float]) -> None:
    seats = [FakeSeat(str(number), None) for number in range(2)]
    pool, slow, quick = _late(clock)
    engine = pool._engine
    assert isinstance(engine, FakeEngine)
    engine.there += seats
    clock[0] = 100.0
    slow.settle(_done)
    assert _places(pool, 1) == [0]
    assert [seat.tasks for seat in seats] == [[], []]
    assert len(quick.tasks) == 4


def test_a_late_task_goes_back_to_a_worker_that_died_of_it(clock: list[float]) -> None:
    """Where all have tried it, one that hangs would else be waited for while another one idles."""

    class HungSeat(FakeSeat):
        def submit(self, task: Task) -> Future[Done]:
            clock[0] += 10.0  # much longer than a task takes
            return super().submit(task)

    quick, hung = FakeSeat("quick"), HungSeat("hung", None)
    pool, engine, _ = _pool(quick, tasks=3)
    assert len(_places(pool, 3)) == 3
    engine.there.append(hung)
    quick.answer = _failing(DIED, times=1)
    _put(pool, 3)
    assert _places(pool, 1) == [3]
    assert (quick.tasks[3:], hung.tasks) == (["0/3", "0/3"], ["0/3"])


# -- what is wanted no more, and workers that come and go -------------------------------------------------------------


def test_what_is_dropped_is_neither_done_nor_told() -> None:
    seat = FakeSeat("a", None)
    pool, _, told = _pool(seat)
    for number in range(3):
        _put(pool, number, job=1)
    _put(pool, 0, job=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_finished", Impatient(pool))
        with pytest.raises(TimeoutError):
            pool.take()
    pool.drop(1)
    seat.answer = _done
    seat.settle(_failing(DIED))
    key, _ = pool.take()
    assert key == TaskKey(2, 0)
    assert (seat.tasks, seat.renewed, told) == (["1/0", "2/0"], 1, [])


def test_seats_that_come_later_work_as_well() -> None:
    first, second = FakeSeat("first", None), FakeSeat("second")
    pool, engine, _ = _pool(first, tasks=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_finished", Impatient(pool))
        with pytest.raises(TimeoutError):
            pool.take()
    engine.there.append(second)
    assert _places(pool, 2) == [1, 2]
    assert second.tasks == ["0/1", "0/2"]


def test_the_task_of_a_seat_that_went_goes_to_another() -> None:
    going, staying = FakeSeat("going", None), FakeSeat("staying", None)
    pool, engine, _ = _pool(going, staying, tasks=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_finished", Impatient(pool))
        with pytest.raises(TimeoutError):
            pool.take()
    engine.there.remove(going)
    going.settle(_failing(DIED))
    staying.settle(_done)
    staying.answer = _done
    assert _places(pool, 2) == [0, 1]
    assert staying.tasks == ["0/1", "0/0"]


# -- clips that cannot be read ----------------------------------------------------------------------------------------

UNREADABLE = InputError("1.mp4 cannot be read: No such file or directory")


def test_clips_that_a_node_cannot_read_are_tried_on_another() -> None:
    first, second = FakeSeat("a", _failing(UNREADABLE)), FakeSeat("b")
    first.host, second.host = "one", "two"
    pool, _, told = _pool(first, second, tasks=4)
    outcomes = dict(pool.take() for _ in range(4))
    assert all(isinstance(outcome, Done) for outcome in outcomes.values())
    assert told == []


def test_clips_that_no_node_can_read_are_an_error() -> None:
    seats = [FakeSeat(name, _failing(UNREADABLE)) for name in "ab"]
    for seat in seats:
        seat.host = seat.label
    pool, _, _ = _pool(*seats, tasks=1)
    assert pool.take()[1] is UNREADABLE
    assert sum(len(seat.tasks) for seat in seats) == 2


def test_on_one_machine_nothing_is_read_twice() -> None:
    seats = [FakeSeat(name, _failing(UNREADABLE)) for name in "ab"]
    pool, _, _ = _pool(*seats, tasks=1)
    assert pool.take()[1] is UNREADABLE
    assert sum(len(seat.tasks) for seat in seats) == 1
