"""What becomes of tasks whose workers fail, and of the workers: with workers whose outcomes are set by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest

from vkssim.engine import scheduler as pool_module
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.ranges import RangeBegun
from vkssim.engine.scheduler import MAX_ATTEMPTS, Scheduler, TaskKey
from vkssim.engine.task import ClipsOpened, Part, Task, TaskResult, Tell, WorkerDiedError, WorkerHandle, WorkerPool
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
from vkssim.report.results import ScoreReport
from vkssim.types import BackendInfo

Answer = Callable[[], TaskResult]


def _done(frames: int = 1) -> TaskResult:
    return TaskResult(frames, seconds=1.0)


def _name(clips: Clips) -> str:
    return f"{clips.reference}/{Path(clips.distorted).stem}"


class FakeHandle(WorkerHandle):
    """Does each task by `answer`, or leaves it undone if that is None.

    `tasks` are those it was given, by their names, `then` the clips that it was to open meanwhile, and `opened` those of tasks
    that were being divided.
    """

    def __init__(self, label: str, answer: Answer | None = _done) -> None:
        self.label = label
        self.answer = answer
        self.tasks: list[str] = []
        self.then: list[str | None] = []
        self.rests = 0
        self.opened: list[str] = []
        self.waiting: list[Future[TaskResult]] = []

    def submit(self, task: Task, tell: Tell) -> Future[TaskResult]:
        future: Future[TaskResult] = Future()
        self.tasks.append(_name(task.clips))
        self.then.append(None if task.then is None else _name(task.then[0]))
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

    def open_ahead(self, task: Task) -> None:
        self.opened.append(_name(task.clips))

    def rest(self) -> None:
        self.rests += 1

    def close(self) -> None:
        pass


class FakePool(WorkerPool):
    """`there` are the workers at the moment."""

    def __init__(self, *workers: FakeHandle) -> None:
        self.there: list[FakeHandle] = list(workers)

    def workers(self) -> Sequence[WorkerHandle]:
        return list(self.there)

    def close(self, *, failed: bool = False) -> None:
        pass


def _failing(error: Exception, times: int = 1000) -> Answer:
    """Raises an error so many times, and does what it is asked for from then on."""
    left = [error] * times

    def answer() -> TaskResult:
        if left:
            raise left.pop()
        return _done()

    return answer


DIED = WorkerDiedError("gone")


class Impatient:
    """In place of the queue of what is finished: nobody waits for what is not there yet."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._queue = scheduler._finished
        self.put = self._queue.put

    def get(self, timeout: float) -> object:
        if self._queue.empty():
            raise TimeoutError(timeout)
        return self._queue.get()


def _find_none_finished(scheduler: Scheduler) -> None:
    """Have tasks handed out while nothing is finished."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "_finished", Impatient(scheduler))
        with pytest.raises(TimeoutError):
            scheduler.take()


def _scheduler(*workers: FakeHandle, tasks: int = 0) -> tuple[Scheduler, FakePool, list[str]]:
    warned: list[str] = []
    pool = FakePool(*workers)
    scheduler = Scheduler(pool, warned.append)
    for number in range(tasks):
        _put(scheduler, number)
    return scheduler, pool, warned


def _put(scheduler: Scheduler, number: int, job: int = 0) -> None:
    part = Part(job, Clips(f"{job}", f"{number}.mp4"))
    scheduler.put(TaskKey(job, number), lambda _batch: Task((part,), ScoreOptions(("float_ssim",))))


def _indices(scheduler: Scheduler, count: int) -> list[int]:
    """The indices of the next tasks, all of which succeed."""
    indices = []
    for _ in range(count):
        key, done = scheduler.take()
        assert isinstance(done, TaskResult)
        indices.append(key.index)
    return sorted(indices)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_POLL_INTERVAL_S", 0.001)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What time it is, as its one entry."""
    now = [0.0]
    monkeypatch.setattr("vkssim.engine.scheduler.time.monotonic", lambda: now[0])
    return now


def test_a_worker_goes_on_with_its_group_then_with_one_that_nobody_has() -> None:
    """So that it opens few clips."""
    first, second = FakeHandle("a", None), FakeHandle("b", None)
    scheduler, _, _ = _scheduler(first, second)
    for number, group in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)]:
        _put(scheduler, number, group)
    scheduler.update_workers()
    scheduler._hand_out()
    assert (first.tasks, second.tasks) == (["0/0"], ["1/2"])
    second.settle(_done)
    assert scheduler.take()[0] == TaskKey(1, 2)
    scheduler._hand_out()
    assert second.tasks[1:] == ["1/3"]
    second.settle(_done)
    scheduler.take()
    scheduler._hand_out()
    assert second.tasks[2:] == ["2/4"], "a group of its own comes before that of the first worker"
    second.settle(_done)
    scheduler.take()
    scheduler._hand_out()
    assert second.tasks[3:] == ["0/1"]


def test_hungry_until_there_is_one_more_task_than_workers() -> None:
    """Its clips are opened while the others are scored."""
    scheduler, _, _ = _scheduler(FakeHandle("a", None), FakeHandle("b", None))
    scheduler.update_workers()
    assert scheduler.workers == 2
    for number in range(3):
        assert scheduler.needs_work
        _put(scheduler, number)
    assert not scheduler.needs_work


def test_the_clips_of_the_next_pair_are_named_with_the_last_range_of_a_pair() -> None:
    worker = FakeHandle("a")
    scheduler, _, _ = _scheduler(worker, tasks=2)
    _put(scheduler, 2, job=1)
    _put(scheduler, 3, job=2)
    assert _indices(scheduler, 4) == [0, 1, 2, 3]
    assert (worker.tasks, worker.then) == (["0/0", "0/1", "1/2", "2/3"], [None, "1/2", "2/3", None])


def test_a_worker_opens_no_clips_that_another_one_has_begun() -> None:
    slow, quick = FakeHandle("slow", None), FakeHandle("quick", None)
    scheduler, _, _ = _scheduler(slow, quick, tasks=1)
    _put(scheduler, 1, job=1)
    _put(scheduler, 2, job=0)
    _find_none_finished(scheduler)
    assert (slow.then, quick.then) == ([None], ["0/2"])


def test_a_worker_without_more_work_closes_its_clips_while_the_others_work() -> None:
    slow, quick = FakeHandle("slow", None), FakeHandle("quick")
    scheduler, _, _ = _scheduler(slow, quick, tasks=2)
    assert _indices(scheduler, 1) == [1]
    _find_none_finished(scheduler)
    assert (slow.rests, quick.rests) == (0, 1)


def _opened(scheduler: Scheduler, dividing: FakeHandle) -> None:
    """The worker has opened the clips of its task, and begins to divide them."""
    pending, _ = scheduler._running[dividing.waiting[0]]
    scheduler._pass_on(pending, 0, ClipsOpened(pending.make(None)))


def _dividing(workers: int) -> tuple[Scheduler, list[FakeHandle]]:
    """Workers of which the first two divide a pair each."""
    handles = [FakeHandle(str(number), None) for number in range(workers)]
    scheduler, _, _ = _scheduler(*handles)
    for job in range(2):
        _put(scheduler, 0, job)
    _find_none_finished(scheduler)
    assert not any(handle.opened for handle in handles)
    for handle in handles[:2]:
        _opened(scheduler, handle)
    return scheduler, handles


def test_idle_workers_open_the_clips_that_are_divided() -> None:
    """They get the ranges of these clips, and those of the others once there are no more."""
    scheduler, handles = _dividing(5)
    for _ in range(2):
        _find_none_finished(scheduler)
        assert [handle.opened for handle in handles] == [[], [], ["0/0"], ["1/0"], ["0/0"]]
    handles[0].settle(_done)
    for number in range(1, 6):
        _put(scheduler, number, job=0)
    assert _indices(scheduler, 1) == [0]
    _find_none_finished(scheduler)
    assert [handle.tasks[-1:] for handle in handles] == [["0/1"], ["1/0"], ["0/2"], [], ["0/3"]]
    handles[1].settle(_done)
    assert _indices(scheduler, 1) == [0]
    _find_none_finished(scheduler)
    assert [handles[number].tasks[-1] for number in (1, 3)] == ["0/4", "0/5"], "there are no ranges of the other pair"


def test_a_worker_keeps_its_clips_while_others_are_divided() -> None:
    scheduler, handles = _dividing(3)
    _find_none_finished(scheduler)
    assert handles[2].rests == 0
    for number in (0, 1):
        handles[number].settle(_done)
    assert _indices(scheduler, 2) == [0, 0]
    _find_none_finished(scheduler)
    assert handles[2].rests == 1, "no range came of the division"


def test_workers_do_not_wait_for_ranges_of_clips_that_one_worker_scores() -> None:
    scheduler, handles = _dividing(3)
    _find_none_finished(scheduler)
    _put(scheduler, 3, job=3)
    _find_none_finished(scheduler)
    assert handles[2].tasks == []
    report = ScoreReport("a", "b", 1, 1, 8, (), BackendInfo("", "", ""))
    scheduler._pass_on(scheduler._running[handles[0].waiting[0]][0], 0, RangeBegun(report, 1))
    _find_none_finished(scheduler)
    assert handles[2].tasks == ["3/3"]


# -- workers that fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DIED, "a worker on failing ended unexpectedly (gone)"),
        (DeviceLostError("lost"), "lost"),
        (DeviceTimeoutError("late"), "late"),
    ],
)
def test_the_task_of_a_worker_that_fails_goes_to_another(error: Exception, said: str) -> None:
    failing, sound = FakeHandle("failing", _failing(error, 1)), FakeHandle("sound")
    scheduler, _, warned = _scheduler(failing, sound, tasks=3)
    assert _indices(scheduler, 3) == [0, 1, 2]
    assert "0/0" in sound.tasks
    assert warned == [f"{said}; its task is tried again"]
    assert scheduler.workers == 2


def test_a_task_that_ends_every_worker_is_given_up_and_the_others_go_on() -> None:
    workers = [FakeHandle(str(number)) for number in range(2)]
    for worker in workers:
        worker.answer = lambda worker=worker: _raise(DIED) if worker.tasks[-1] == "0/1" else _done()
    scheduler, _, _ = _scheduler(*workers, tasks=6)
    outcomes = dict(scheduler.take() for _ in range(6))
    lost = outcomes.pop(TaskKey(0, 1))
    assert isinstance(lost, WorkerLostError)
    assert str(lost).startswith(f"1.mp4 was tried {MAX_ATTEMPTS} times and given up: a worker on ")
    assert all(isinstance(done, TaskResult) for done in outcomes.values())
    tried = [worker.tasks.count("0/1") for worker in workers]
    assert sum(tried) == MAX_ATTEMPTS
    assert min(tried) == 1, "nobody tries again what it failed at as long as another one has not"


def _raise(error: Exception) -> TaskResult:
    raise error


def test_a_worker_that_fails_at_everything_is_used_no_more() -> None:
    failing, sound = FakeHandle("failing", _failing(DeviceLostError("lost"))), FakeHandle("sound")
    scheduler, _, warned = _scheduler(failing, sound, tasks=30)
    assert _indices(scheduler, 30) == list(range(30))
    assert len(failing.tasks) == MAX_ATTEMPTS
    assert warned[-1] == "failing is no longer used: lost"
    assert scheduler.workers == 1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nothing_is_believed_when_every_worker_always_dies(count: int) -> None:
    """Some tasks are given up, then the run: not each task of a hundred is tried three times."""
    workers = [FakeHandle(str(number), _failing(DIED)) for number in range(count)]
    scheduler, _, _ = _scheduler(*workers, tasks=100)
    with pytest.raises(VkssimError) as raised:
        _given_up_one_after_the_other(scheduler)
    assert isinstance(raised.value, WorkerLostError | DeviceError)
    assert sum(len(worker.tasks) for worker in workers) <= MAX_ATTEMPTS * (MAX_ATTEMPTS + count)


def _given_up_one_after_the_other(scheduler: Scheduler) -> None:
    while True:
        assert isinstance(scheduler.take()[1], WorkerLostError)


@pytest.mark.parametrize("error", [UnsuitableDeviceError("not that one"), NoDeviceError("none")])
def test_a_device_that_cannot_be_used_is_not_the_tasks_fault(error: DeviceError) -> None:
    """Its task is tried elsewhere as if nothing had been: however many devices fail."""
    failing = [FakeHandle(f"failing {number}", _failing(error)) for number in range(MAX_ATTEMPTS + 1)]
    sound = FakeHandle("sound", None)
    scheduler, pool, warned = _scheduler(*failing, tasks=1)
    pool.there.append(sound)
    sound.answer = _done
    assert _indices(scheduler, 1) == [0]
    assert [len(worker.tasks) for worker in failing] == [1] * len(failing)
    assert warned == [f"{worker.label} is no longer used: {error}" for worker in failing]


@pytest.mark.parametrize(
    ("workers", "error"), [("ab", UnsuitableDeviceError("not that one")), ("", NoDeviceError("no worker is left"))]
)
def test_no_worker_left_is_the_last_ones_error(workers: str, error: DeviceError) -> None:
    scheduler, _, _ = _scheduler(*(FakeHandle(name, _failing(error)) for name in workers), tasks=2)
    with pytest.raises(type(error), match=str(error)):
        scheduler.take()


@pytest.mark.parametrize("error", [InputError("no video"), DeviceMemoryError("not a frame fits"), ValueError("a bug")])
def test_what_is_wrong_with_clips_is_not_tried_again(error: Exception) -> None:
    workers = [FakeHandle("a", _failing(error, 1)), FakeHandle("b", _failing(error, 1))]
    scheduler, _, warned = _scheduler(*workers, tasks=4)
    outcomes = [scheduler.take()[1] for _ in range(4)]
    assert outcomes.count(error) == 2
    assert sum(len(worker.tasks) for worker in workers) == 4
    assert warned == []


@pytest.mark.parametrize("again", [True, False])
def test_the_only_worker_opens_a_lost_device_once(again: bool) -> None:
    """Unless the clips cannot be read a second time. Whoever makes the task knows what is left to do."""
    worker = FakeHandle("a", _failing(DeviceLostError("lost"), 2))
    retried: list[TaskKey] = []
    made: list[int | None] = []
    scheduler = Scheduler(FakePool(worker), pytest.fail, on_retry=lambda key, _error, _batch: retried.append(key))

    def make(batch: int | None) -> Task:
        made.append(batch)
        return Task((Part(0, Clips("r", "d")),), ScoreOptions(("float_ssim",)))

    scheduler.put(TaskKey(3, 0), make, again=again)
    assert isinstance(scheduler.take()[1], DeviceLostError)
    assert (retried, made) == (([TaskKey(3, 0)], [None] * 2) if again else ([], [None]))


def test_batches_are_halved_while_memory_runs_out() -> None:
    """Whatever the number of workers: the size is that of the batches that were in use."""
    report = ScoreReport("r", "d", 1, 1, 8, (), BackendInfo("", "", ""))

    class SmallHandle(FakeHandle):
        def submit(self, task: Task, tell: Tell) -> Future[TaskResult]:
            batches.append(task.batch)
            tell(0, RangeBegun(report, 8 if task.batch is None else task.batch))
            return super().submit(task, tell)

    batches: list[int | None] = []
    workers = [SmallHandle(name, _failing(DeviceMemoryError("full"), 2)) for name in "ab"]
    scheduler = Scheduler(FakePool(*workers), pytest.fail)
    scheduler.put(TaskKey(0, 0), lambda batch: Task((Part(0, Clips("r", "d")),), ScoreOptions(()), batch=batch))
    assert isinstance(scheduler.take()[1], TaskResult)
    assert batches == [None, 4, 2]


def test_failures_count_only_one_after_the_other() -> None:
    """A worker that gets something done in between is kept."""
    worker = FakeHandle("a")
    worker.answer = lambda: _raise(DIED) if len(worker.tasks) % 2 else _done()
    scheduler, _, warned = _scheduler(worker, tasks=8)
    assert _indices(scheduler, 8) == list(range(8))
    assert not any("no longer" in sentence for sentence in warned)


# -- late tasks -------------------------------------------------------------------------------------------------------


def _late(clock: list[float]) -> tuple[Scheduler, FakeHandle, FakeHandle]:
    """Three tasks are done in a second each, a fourth is late with its worker, and another worker has it as well."""
    slow, quick = FakeHandle("slow", None), FakeHandle("quick")
    scheduler, _, _ = _scheduler(slow, quick, tasks=4)
    assert _indices(scheduler, 3) == [1, 2, 3]
    quick.answer = None
    clock[0] = 1.9
    _find_none_finished(scheduler)
    assert quick.tasks == ["0/1", "0/2", "0/3"], "it is not late yet"
    clock[0] = 2.1
    _find_none_finished(scheduler)
    assert (slow.tasks, quick.tasks[3:]) == (["0/0"], ["0/0"])
    return scheduler, slow, quick


@pytest.mark.parametrize("host", ["", "another"])
def test_before_durations_are_known_another_machine_helps_out(clock: list[float], host: str) -> None:
    """A worker of the same machine would take its cores from the first."""
    slow, idle = FakeHandle("slow", None), FakeHandle("idle", None)
    idle.host = host
    scheduler, _, _ = _scheduler(slow, idle, tasks=1)
    for clock[0] in (0.0, 59.0, 61.0):
        _find_none_finished(scheduler)
        assert idle.tasks == (["0/0"] if host and clock[0] > 60 else [])


def test_a_worker_of_the_same_gpu_does_not_try_a_late_task(clock: list[float]) -> None:
    slow, idle = FakeHandle("slow", None), FakeHandle("idle")
    slow.shares_decoder = idle.shares_decoder = True
    scheduler, _, _ = _scheduler(slow, idle, tasks=4)
    assert _indices(scheduler, 3) == [1, 2, 3]
    clock[0] = 100.0
    _find_none_finished(scheduler)
    assert idle.tasks == ["0/1", "0/2", "0/3"]


@pytest.mark.parametrize("winner", ["slow", "quick"])
def test_of_two_that_are_at_a_late_task_the_first_counts(clock: list[float], winner: str) -> None:
    scheduler, slow, quick = _late(clock)
    first, second = (slow, quick) if winner == "slow" else (quick, slow)
    first.settle(lambda: _done(frames=7))
    key, done = scheduler.take()
    assert isinstance(done, TaskResult)
    assert (key.index, done.frames) == (0, 7)
    _put(scheduler, 7)
    first.answer = _done
    second.settle(_done)
    assert _indices(scheduler, 1) == [7], "the loser's outcome is nobody's"


def test_a_late_task_that_fails_at_both_is_tried_again(clock: list[float]) -> None:
    scheduler, slow, quick = _late(clock)
    slow.settle(_failing(DeviceLostError("lost")))
    quick.settle(_failing(DIED))
    slow.answer = quick.answer = _done
    assert _indices(scheduler, 1) == [0]
    assert len(slow.tasks) + len(quick.tasks) == 2 + 3 + 1


def test_a_late_task_is_tried_twice_at_most(clock: list[float]) -> None:
    workers = [FakeHandle(str(number), None) for number in range(2)]
    scheduler, slow, quick = _late(clock)
    pool = scheduler._pool
    assert isinstance(pool, FakePool)
    pool.there += workers
    clock[0] = 100.0
    slow.settle(_done)
    assert _indices(scheduler, 1) == [0]
    assert [worker.tasks for worker in workers] == [[], []]
    assert len(quick.tasks) == 4


def test_a_late_task_ends_an_idle_worker_a_few_times_at_most(clock: list[float]) -> None:
    """The first worker may hang for ever: nothing but its outcome counts then."""
    scheduler, slow, quick = _late(clock)

    def die() -> TaskResult:
        clock[0] += 10.0  # much longer than a task takes
        if quick.tasks.count("0/0") > MAX_ATTEMPTS:
            pytest.fail("it is tried for ever")
        raise DIED

    quick.settle(die)
    quick.answer = die
    _find_none_finished(scheduler)
    assert quick.tasks.count("0/0") == MAX_ATTEMPTS - 1
    slow.settle(_done)
    assert _indices(scheduler, 1) == [0]


def test_a_late_task_goes_back_to_a_worker_that_died_of_it(clock: list[float]) -> None:
    """Where all have tried it, one that hangs would else be waited for while another one idles."""

    class HungHandle(FakeHandle):
        def submit(self, task: Task, tell: Tell) -> Future[TaskResult]:
            clock[0] += 10.0  # much longer than a task takes
            return super().submit(task, tell)

    quick, hung = FakeHandle("quick"), HungHandle("hung", None)
    scheduler, pool, _ = _scheduler(quick, tasks=3)
    assert len(_indices(scheduler, 3)) == 3
    pool.there.append(hung)
    quick.answer = _failing(DIED, times=1)
    _put(scheduler, 3)
    assert _indices(scheduler, 1) == [3]
    assert (quick.tasks[3:], hung.tasks) == (["0/3", "0/3"], ["0/3"])


# -- what is wanted no more, and workers that come and go -------------------------------------------------------------


def test_what_is_dropped_is_neither_done_nor_reported() -> None:
    worker = FakeHandle("a", None)
    scheduler, _, warned = _scheduler(worker)
    for number in range(3):
        _put(scheduler, number, job=1)
    _put(scheduler, 0, job=2)
    _find_none_finished(scheduler)
    scheduler.drop(1)
    worker.answer = _done
    worker.settle(_failing(DIED))
    key, _ = scheduler.take()
    assert key == TaskKey(2, 0)
    assert (worker.tasks, warned) == (["1/0", "2/0"], [])


def test_workers_that_come_later_work_as_well() -> None:
    first, second = FakeHandle("first", None), FakeHandle("second")
    scheduler, pool, _ = _scheduler(first, tasks=3)
    _find_none_finished(scheduler)
    pool.there.append(second)
    assert _indices(scheduler, 2) == [1, 2]
    assert second.tasks == ["0/1", "0/2"]


def test_the_task_of_a_worker_that_left_goes_to_another() -> None:
    going, staying = FakeHandle("going", None), FakeHandle("staying", None)
    scheduler, pool, _ = _scheduler(going, staying, tasks=2)
    _find_none_finished(scheduler)
    pool.there.remove(going)
    going.settle(_failing(DIED))
    staying.settle(_done)
    staying.answer = _done
    assert _indices(scheduler, 2) == [0, 1]
    assert staying.tasks == ["0/1", "0/0"]


# -- clips that cannot be read ----------------------------------------------------------------------------------------

UNREADABLE = InputError("1.mp4 cannot be read: No such file or directory")


@pytest.mark.parametrize(("hosts", "unread", "tries"), [("ab", 1, 2), ("ab", 2, 2), ("aa", 2, 1)])
def test_clips_that_a_node_cannot_read_are_tried_on_another(hosts: str, unread: int, tries: int) -> None:
    """On one machine nothing is read twice."""
    workers = [FakeHandle(host, _failing(UNREADABLE, times=int(place < unread))) for place, host in enumerate(hosts)]
    for worker in workers:
        worker.host = worker.label
    scheduler, _, warned = _scheduler(*workers, tasks=1)
    outcome = scheduler.take()[1]
    assert isinstance(outcome, TaskResult) if unread == 1 else outcome is UNREADABLE
    assert (sum(len(worker.tasks) for worker in workers), warned) == (tries, [])
