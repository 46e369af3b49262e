"""What becomes of tasks whose workers fail, and of the workers: with workers whose outcomes are set by hand."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest

from vkssim.engine import scheduler as pool_module
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.ranges import RangeBegun
from vkssim.engine.scheduler import MAX_ATTEMPTS, Scheduler, TaskKey
from vkssim.engine.task import OnEvent, Part, Task, TaskResult, WorkerDiedError, WorkerHandle, WorkerPool
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
    return TaskResult(frames)


def _name(clips: Clips) -> str:
    return f"{clips.reference}/{Path(clips.distorted).stem}"


class FakeHandle(WorkerHandle):
    """Does each task by `answer`, or leaves it undone if that is None.

    `tasks` are those it was given, by their names, and `next_clips` the clips that it was to open meanwhile.
    """

    def __init__(self, label: str, answer: Answer | None = _done) -> None:
        self.label = label
        self.answer = answer
        self.tasks: list[str] = []
        self.next_clips: list[str | None] = []
        self.closings = 0
        self.waiting: list[Future[TaskResult]] = []

    def submit(self, task: Task, on_event: OnEvent) -> Future[TaskResult]:
        future: Future[TaskResult] = Future()
        self.tasks.append(_name(task.clips))
        self.next_clips.append(None if task.next_clips is None else _name(task.next_clips[0]))
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

    def close_idle_clips(self) -> None:
        self.closings += 1

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
        self._queue = scheduler._steps
        self.put = self._queue.put

    def get(self, timeout: float) -> object:
        if self._queue.empty():
            raise TimeoutError(timeout)
        return self._queue.get()


def _find_none_finished(scheduler: Scheduler) -> None:
    """Have tasks handed out while nothing is finished."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "_steps", Impatient(scheduler))
        with pytest.raises(TimeoutError):
            scheduler.next_outcome()


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
        key, done = scheduler.next_outcome()
        assert isinstance(done, TaskResult)
        indices.append(key.index)
    return sorted(indices)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_POLL_INTERVAL_S", 0.001)


def test_a_worker_goes_on_with_its_group_then_with_one_that_nobody_has() -> None:
    """So that it opens few clips."""
    first, second = FakeHandle("a", None), FakeHandle("b", None)
    scheduler, _, _ = _scheduler(first, second)
    for number, group in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)]:
        _put(scheduler, number, group)
    _find_none_finished(scheduler)
    assert (first.tasks, second.tasks) == (["0/0"], ["1/2"])
    second.settle(_done)
    assert scheduler.next_outcome()[0] == TaskKey(1, 2)
    _find_none_finished(scheduler)
    assert second.tasks[1:] == ["1/3"]
    second.settle(_done)
    scheduler.next_outcome()
    _find_none_finished(scheduler)
    assert second.tasks[2:] == ["2/4"], "a group of its own comes before that of the first worker"
    second.settle(_done)
    scheduler.next_outcome()
    _find_none_finished(scheduler)
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
    assert (worker.tasks, worker.next_clips) == (["0/0", "0/1", "1/2", "2/3"], [None, "1/2", "2/3", None])


def test_a_worker_opens_no_clips_that_another_one_has_begun() -> None:
    slow, quick = FakeHandle("slow", None), FakeHandle("quick", None)
    scheduler, _, _ = _scheduler(slow, quick, tasks=1)
    _put(scheduler, 1, job=1)
    _put(scheduler, 2, job=0)
    _find_none_finished(scheduler)
    assert (slow.next_clips, quick.next_clips) == ([None], ["0/2"])


def test_a_worker_without_more_work_closes_its_clips_while_the_others_work() -> None:
    slow, quick = FakeHandle("slow", None), FakeHandle("quick")
    scheduler, _, _ = _scheduler(slow, quick, tasks=2)
    assert _indices(scheduler, 1) == [1]
    _find_none_finished(scheduler)
    assert (slow.closings, quick.closings) == (0, 1)


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
    outcomes = dict(scheduler.next_outcome() for _ in range(6))
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
        assert isinstance(scheduler.next_outcome()[1], WorkerLostError)


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
        scheduler.next_outcome()


@pytest.mark.parametrize("error", [InputError("no video"), DeviceMemoryError("not a frame fits"), ValueError("a bug")])
def test_what_is_wrong_with_clips_is_not_tried_again(error: Exception) -> None:
    workers = [FakeHandle("a", _failing(error, 1)), FakeHandle("b", _failing(error, 1))]
    scheduler, _, warned = _scheduler(*workers, tasks=4)
    outcomes = [scheduler.next_outcome()[1] for _ in range(4)]
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

    scheduler.put(TaskKey(3, 0), make, can_retry=again)
    assert isinstance(scheduler.next_outcome()[1], DeviceLostError)
    assert (retried, made) == (([TaskKey(3, 0)], [None] * 2) if again else ([], [None]))


def test_batches_are_halved_while_memory_runs_out() -> None:
    """Whatever the number of workers: the size is that of the batches that were in use."""
    report = ScoreReport("r", "d", 1, 1, 8, (), BackendInfo("", "", ""))

    class SmallHandle(FakeHandle):
        def submit(self, task: Task, on_event: OnEvent) -> Future[TaskResult]:
            batches.append(task.batch)
            on_event(0, RangeBegun(report, 8 if task.batch is None else task.batch))
            return super().submit(task, on_event)

    batches: list[int | None] = []
    workers = [SmallHandle(name, _failing(DeviceMemoryError("full"), 2)) for name in "ab"]
    scheduler = Scheduler(FakePool(*workers), pytest.fail)
    scheduler.put(TaskKey(0, 0), lambda batch: Task((Part(0, Clips("r", "d")),), ScoreOptions(()), batch=batch))
    assert isinstance(scheduler.next_outcome()[1], TaskResult)
    assert batches == [None, 4, 2]


def test_failures_count_only_one_after_the_other() -> None:
    """A worker that gets something done in between is kept."""
    worker = FakeHandle("a")
    worker.answer = lambda: _raise(DIED) if len(worker.tasks) % 2 else _done()
    scheduler, _, warned = _scheduler(worker, tasks=8)
    assert _indices(scheduler, 8) == list(range(8))
    assert not any("no longer" in sentence for sentence in warned)


# -- dropped tasks, and workers that come and go ---------------------------------------------------------------------


def test_the_log_has_a_line_for_each_retry(caplog: pytest.LogCaptureFixture) -> None:
    """By Python's logging, which prints nothing unless a program asks for it."""
    failing, sound = FakeHandle("failing", _failing(DIED, MAX_ATTEMPTS)), FakeHandle("sound")
    scheduler, _, warned = _scheduler(failing, sound, tasks=9)
    with caplog.at_level("INFO", "vkssim"):
        assert len(_indices(scheduler, 9)) == 9
    assert [record.getMessage() for record in caplog.records] == warned
    assert (len(warned), warned[-1]) == (
        MAX_ATTEMPTS + 1,
        "failing is no longer used: a worker on failing ended unexpectedly (gone)",
    )
    assert logging.getLogger("vkssim").handlers, "without one, Python prints warnings on standard error"


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
    key, _ = scheduler.next_outcome()
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
    outcome = scheduler.next_outcome()[1]
    assert isinstance(outcome, TaskResult) if unread == 1 else outcome is UNREADABLE
    assert (sum(len(worker.tasks) for worker in workers), warned) == (tries, [])
