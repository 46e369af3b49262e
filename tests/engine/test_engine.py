"""Jobs through the engine: ranges that are kept, found again, refused and put together, on workers in this process."""

from __future__ import annotations

import platform
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim import score_files
from vkssim.backends.base import Batch
from vkssim.backends.cpu import CpuBackend
from vkssim.engine import worker
from vkssim.engine.engine import Engine, Job, RunSettings, score_jobs, score_pair
from vkssim.engine.journal import Journal, open_journal
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.pools import DevicePool, WorkerOptions
from vkssim.engine.ranges import BatchScored, Event, FrameRange, RangeScores
from vkssim.engine.run import score_range
from vkssim.engine.scheduler import MAX_ATTEMPTS
from vkssim.engine.task import FixedPool, OnEvent, Task, TaskResult, WorkerDiedError
from vkssim.engine.worker import Worker
from vkssim.errors import (
    DeviceLostError,
    HostMemoryError,
    InputError,
    InterruptedRunError,
    OptionError,
    OutputError,
    RangeError,
    ThresholdError,
    VkssimError,
    WorkerLostError,
)
from vkssim.report.results import FrameScores, ScoreReport
from vkssim.storage.checked_journal import CheckedJournal
from vkssim.types import BackendInfo
from vkssim.utils.wording import counted

from ..ladder.ladders import manifest
from ..support.clips import write, y4m_bytes
from ..support.commands import TINY, vkssim
from ..support.pictures import clip
from .in_ranges import CPU, FEATURES, failed, small_ranges, told

FRAMES = 20
INFO = BackendInfo("cpu", platform.machine(), f"NumPy {np.__version__}")
OPTIONS = ScoreOptions(FEATURES, backend="cpu")


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    small_ranges(monkeypatch, 4)


@pytest.fixture
def clips(tmp_path: Path) -> Clips:
    luma = clip(FRAMES)
    return Clips(write(tmp_path / "ref.y4m", y4m_bytes(luma)), write(tmp_path / "dis.y4m", y4m_bytes(luma // 16 * 16)))


def _before_tasks(monkeypatch: pytest.MonkeyPatch, action: Callable[[Task], object]) -> None:
    """Have `action` called with each task before a worker does it."""
    submit = Worker.submit

    def acting(self: Worker, task: Task, on_event: OnEvent) -> Future[TaskResult]:
        try:
            action(task)
        except Exception as error:
            return failed(error)
        return submit(self, task, on_event)

    monkeypatch.setattr(Worker, "submit", acting)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Record the first pairs of the tasks that the workers were given; None for a task that divides."""
    given: list[int | None] = []
    _before_tasks(
        monkeypatch, lambda task: given.append(None if task.division is not None else task.parts[0].frame_range.first)
    )
    return given


def _fail_at(monkeypatch: pytest.MonkeyPatch, first: int, error: BaseException, times: int = 1) -> None:
    """Have a worker raise an error in place of scoring the range from that pair on."""
    left = [error] * times

    def fail(task: Task) -> None:
        scored = task.parts[0].frame_range
        if not task.division is not None and scored.first == first and not scored.is_whole and left:
            raise left.pop()

    _before_tasks(monkeypatch, fail)


def _in_one(clips: Clips) -> ScoreReport:
    return score_files(clips.reference, clips.distorted, features=FEATURES, backend="cpu")


def _two() -> FixedPool:
    """Two workers in this thread, so that clips are divided."""
    return FixedPool([Worker(CPU), Worker(CPU)])


def _score(clips: Clips, kept: Journal | None = None, pool: FixedPool | None = None, **settings: Any) -> ScoreReport:
    worker_warnings: list[str] = []
    key = "pair" if kept is None else kept.key
    with pool or _two() as workers:
        engine = Engine(workers, OPTIONS, RunSettings(journal=kept, warn=worker_warnings.append, **settings))
        with closing(engine.score([Job(key, clips)])) as outcomes:  # type: ignore[type-var]
            ((_, outcome),) = outcomes
    if isinstance(outcome, Exception):
        raise outcome
    outcome.worker_warnings = worker_warnings
    return outcome


def _kept(folder: Path, *, resume: bool = False, tell: Callable[[str], None] = lambda _text: None) -> Journal:
    return Journal(folder / "scores.json.journal", tell, identity={"what": 1}, resume=resume)


def _cut_off(clips: Clips, folder: Path, error: VkssimError, first: int = 8, *, resume: bool = False) -> None:
    """A run that fails at the range of a frame, by default the third."""
    with pytest.MonkeyPatch.context() as patch:
        _fail_at(patch, first, error)
        with _kept(folder, resume=resume) as kept:
            with pytest.raises(type(error)) as raised:
                _score(clips, kept)
            kept.discard_frames([raised.value])
    assert str(raised.value).endswith("`resume` continues from there")
    assert raised.value.report is not None
    assert len(raised.value.report.frames) == first


def _finished(clips: Clips, folder: Path, notes: list[str] | None = None, *, on_one: bool = False) -> ScoreReport:
    """Go on with a run to its end, on several devices or on one. Its report is that of one run, and its journal is gone."""
    with _kept(folder, resume=True, tell=([] if notes is None else notes).append) as kept:
        report = _on_one(clips, kept) if on_one else _score(clips, kept)
        kept.discard_frames()
    assert told(report) == told(_in_one(clips))
    assert sorted(path.name for path in folder.iterdir()) == ["dis.y4m", "ref.y4m"]
    return report


# -- cut off ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OutputError("full"), WorkerLostError("it died three times")], ids=str)
def test_only_what_is_missing_is_done(clips: Clips, tmp_path: Path, tasks: list[int | None], error: VkssimError) -> None:
    _cut_off(clips, tmp_path, error)
    assert tasks[:3] == [None, 0, 4]
    tasks.clear()
    assert _finished(clips, tmp_path).resumed >= 8
    assert tasks == [8, 16, 0], "the last is that of the run in one range, for comparison"


def test_a_range_continues_after_its_last_frame(clips: Clips, tmp_path: Path, scored: list[int]) -> None:
    """Whatever moment a run ends at, within a range of several devices as well."""

    def stop(done: int, _total: int | None) -> None:
        if done == 11:
            raise KeyboardInterrupt

    with _kept(tmp_path) as kept, pytest.raises(InterruptedRunError) as raised:
        _score(clips, kept, progress=stop)
    assert raised.value.report is not None
    assert len(raised.value.report.frames) == 8, "the frames of a range count when it is known to be right"
    scored.clear()
    report = _finished(clips, tmp_path)
    assert report.resumed == 10
    assert sum(scored) == FRAMES - 10 + FRAMES, "the last frame is scored again; all are, in one range, for comparison"


def test_frames_stay_until_they_are_where_they_belong(clips: Clips, tmp_path: Path, tasks: list[int | None]) -> None:
    with _kept(tmp_path) as kept:
        report = _score(clips, kept)
    tasks.clear()
    with _kept(tmp_path, resume=True) as kept:
        again = _score(clips, kept)
        kept.discard_frames([ThresholdError("it is what it is")])
    assert tasks == []
    assert (again.frames, again.resumed) == (report.frames, FRAMES)
    assert told(again) == told(report)
    assert not list(tmp_path.glob("*.journal"))


# -- one device and several -------------------------------------------------------------------------------------------


def _on_one(clips: Clips, journal: Journal, stop: int | None = None) -> ScoreReport:
    """Score on one device, until `stop` frames are there in all."""

    def cut_off(done: int, _total: int | None) -> None:
        if done == stop:
            raise KeyboardInterrupt

    settings = RunSettings(progress=cut_off, on_frames=lambda _frames: None, journal=journal)  # batches are of one frame
    return score_pair(clips, OPTIONS, None, settings)


def _stopped_on_one(clips: Clips, folder: Path, stop: int, *, resume: bool = False) -> None:
    with _kept(folder, resume=resume) as journal:
        with pytest.raises(InterruptedRunError) as raised:
            _on_one(clips, journal, stop)
        journal.discard_frames([raised.value])


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many frames each batch had that was scored."""
    counts: list[int] = []
    submit = CpuBackend.submit

    def note(self: CpuBackend, batch: Batch, frames: int, after: Batch | None = None) -> None:
        counts.append(frames)
        submit(self, batch, frames, after)

    monkeypatch.setattr(CpuBackend, "submit", note)
    return counts


@pytest.mark.parametrize("stop", [1, 4, 10, 19])
def test_what_one_device_scored_is_not_scored_again_in_ranges(
    clips: Clips, tmp_path: Path, scored: list[int], stop: int
) -> None:
    """Of each range that has frames already, the last of these is scored again: its neighbours are read from there on."""
    _stopped_on_one(clips, tmp_path, stop)
    scored.clear()
    notes: list[str] = []
    report = _finished(clips, tmp_path, notes)
    begun = -(-stop // 4)  # ranges are of four frames
    assert sum(scored) == FRAMES - stop + begun + FRAMES, "all are scored in one range, for comparison"
    assert report.resumed == stop - 1
    assert notes == [f"the run continues after {counted(stop, 'frame')} that an earlier run scored"]


def test_ranges_are_not_scored_again_on_one_device(clips: Clips, tmp_path: Path, tasks: list[int | None]) -> None:
    _cut_off(clips, tmp_path, OutputError("full"))
    tasks.clear()
    notes: list[str] = []
    report = _finished(clips, tmp_path, notes, on_one=True)
    assert tasks[:2] == [8, 16], "the other worker had scored the range after the one that failed"
    assert report.resumed == 12
    assert notes == ["the run continues after 12 frames that an earlier run scored"]


@pytest.mark.parametrize("stop", [0, 6])
def test_stored_ranges_that_do_not_meet_are_not_taken(clips: Clips, tmp_path: Path, stop: int) -> None:
    """The frames of a range count only if its neighbours found the same frames at its ends; those of one device count."""
    if stop:
        _stopped_on_one(clips, tmp_path, stop)
    _cut_off(clips, tmp_path, OutputError("full"), 16, resume=True)
    with _kept(tmp_path, resume=True) as kept:
        kept.pair(kept.key).scores[2].begins = (7, None)
        report = _score(clips, kept)
    assert told(report) == told(_in_one(clips))
    assert report.resumed == max(0, stop - 1)


def test_the_report_names_every_device_that_took_part(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes on where one of its devices is among those that are there now."""
    other = replace(INFO, device="Made Up 9000")
    with monkeypatch.context() as patch:
        patch.setattr("vkssim.backends.cpu.INFO", other)
        patch.setattr("vkssim.engine.pools.INFO", other)
        _stopped_on_one(clips, tmp_path, 10)
    with _kept(tmp_path, resume=True) as journal, pytest.raises(OptionError, match="belongs to another run: device differ"):
        journal.check([INFO])
    with _kept(tmp_path, resume=True) as journal:
        journal.check([INFO, other])
        report = _score(clips, journal)
    assert report.backend.device == "; ".join(sorted((INFO.device, other.device)))


# -- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 8, 16])
def test_a_range_that_is_refused_has_all_scored_in_one(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Frames are told of once and in order all the same, and what was kept goes."""
    frames: list[FrameScores] = []
    steps: list[tuple[int, int | None]] = []
    _fail_at(monkeypatch, first, RangeError("not there"))
    with _kept(tmp_path) as kept:
        report = _score(clips, kept, progress=lambda done, total: steps.append((done, total)), on_frames=frames.extend)
        assert kept.pair(kept.key).ranges == [FrameRange()]
    assert told(report) == told(_in_one(clips))
    assert frames == report.frames
    assert steps[-1] == (FRAMES, FRAMES)
    assert report.worker_warnings == []


@pytest.mark.parametrize("on_one", [True, False])
def test_a_refused_range_of_a_run_that_goes_on(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_one: bool
) -> None:
    """Frames that one device scored count all the same."""
    if on_one:
        _stopped_on_one(clips, tmp_path, 10)
    else:
        _cut_off(clips, tmp_path, OutputError("full"))
    _fail_at(monkeypatch, 16, RangeError("not there"))
    assert _finished(clips, tmp_path).resumed == (9 if on_one else 0)


@pytest.mark.parametrize("place", [1, 4])
def test_ranges_that_do_not_meet_are_scored_in_one(clips: Clips, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """Whichever of two neighbours comes first; no frame of the latter is told of."""
    submit = Worker.submit

    def other(self: Worker, task: Task, on_event: OnEvent) -> Future[TaskResult]:
        wrong = task.parts[0].frame_range.first == 4 * place

        def change(job: int, event: Event) -> None:
            if wrong and isinstance(event, RangeScores):
                event.begins = None, 7
            if wrong and isinstance(event, BatchScored):
                event = replace(event, frames=[replace(frame, metrics={"float_ssim": 7.0}) for frame in event.frames])
            on_event(job, event)

        return submit(self, task, change)

    monkeypatch.setattr(Worker, "submit", other)
    frames: list[FrameScores] = []
    report = _score(clips, on_frames=frames.extend)
    assert told(report) == told(_in_one(clips))
    assert frames == report.frames


def test_what_fails_with_all_in_one_range_is_an_error(clips: Clips, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not tried for ever."""

    def refuse(_task: Task) -> None:
        raise RangeError("never")

    _before_tasks(monkeypatch, refuse)
    with pytest.raises(RangeError, match="never"):
        _score(clips)


# -- failing workers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (WorkerDiedError("gone"), WorkerLostError, f"was tried {MAX_ATTEMPTS} times and given up"),
        (MemoryError(), HostMemoryError, "there is not enough memory"),
    ],
)
def test_what_was_scored_comes_with_the_error(
    clips: Clips, monkeypatch: pytest.MonkeyPatch, error: Exception, expected: type[VkssimError], message: str
) -> None:
    _fail_at(monkeypatch, 8, error, MAX_ATTEMPTS)
    with pytest.raises(expected, match=message) as raised:
        _score(clips)
    assert raised.value.report is not None
    assert raised.value.report.frames == _in_one(clips).frames[:8]


def _full_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let the journal take that many additions, and no more."""
    add = CheckedJournal.add
    left = [None] * count

    def full(self: CheckedJournal, entry: Any) -> None:
        if not left:
            raise OutputError("the journal is full")
        left.pop()
        add(self, entry)

    monkeypatch.setattr(CheckedJournal, "add", full)


def test_frames_that_cannot_be_stored_are_in_the_report_of_the_error(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _full_after(monkeypatch, 2 + 4 + 1 + 4)  # the head and the division, then frame by frame, and the end of a range
    with _kept(tmp_path) as kept, pytest.raises(OutputError, match="the journal is full") as raised:
        _score(clips, kept)
    assert raised.value.report is not None
    assert raised.value.report.frames == _in_one(clips).frames[:8]


def test_frames_are_stored_before_they_are_passed_on(clips: Clips, tmp_path: Path) -> None:
    """A function of the caller's may fail."""

    def fail(_frames: object) -> None:
        raise RuntimeError("not today")

    for pool in (_two(), DevicePool(CPU)):
        with _kept(tmp_path) as kept:
            with pytest.raises(RuntimeError, match="not today"):
                _score(clips, kept, pool, on_frames=fail)
            assert kept.frames == 1


# -- several jobs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("several", [True, False])
def test_jobs_are_independent(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: bool) -> None:
    """One is refused in ranges, one kills its workers, one is no video: the others are as if they were alone."""
    raises = {("refused", 8): RangeError("no"), ("deadly", 4): WorkerDiedError("gone")}

    def fail(task: Task) -> None:
        error = raises.get((Path(task.clips.distorted).stem, task.parts[0].frame_range.first))
        if error is not None:
            raise error

    _before_tasks(monkeypatch, fail)
    names = ("dis", "refused", "deadly", "no", "absent", "last")
    data = Path(clips.distorted).read_bytes()
    for name in names:
        if name != "absent":
            write(tmp_path / f"{name}.y4m", b"no video" if name == "no" else data)
    with (
        _two() if several else DevicePool(replace(CPU, in_step=len(names))) as pool,
        open_journal(tmp_path / "r.csv") as journal,
    ):
        settings = RunSettings(journal=journal)
        jobs = [Job(name, Clips(clips.reference, str(tmp_path / f"{name}.y4m"))) for name in names]
        outcomes = {}
        for job, outcome in Engine(pool, OPTIONS, settings).score(jobs):
            outcomes[job.key] = outcome
            journal.finish(job.key, {"key": job.key, "error": None})
        assert journal.frames == 0
    expected = told(_in_one(clips))
    for name in ("dis", "refused", "last"):
        assert told(outcomes[name]) == [
            text.replace("dis.y4m", f"{name}.y4m") if isinstance(text, str) else text for text in expected
        ]
    assert isinstance(outcomes["no"], InputError)
    assert isinstance(outcomes["absent"], InputError)
    assert isinstance(outcomes["deadly"], WorkerLostError) == several


def test_a_batch_on_a_cluster_needs_no_device_here(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerOptions, "open", lambda *_arguments: _two())
    monkeypatch.setattr(WorkerOptions, "_devices", lambda _self: pytest.fail("the devices of this machine were listed"))
    with open_journal(tmp_path / "r.csv") as journal:
        ((_, outcome),) = score_jobs([Job("a", clips)], OPTIONS, WorkerOptions("ray"), RunSettings(journal=journal))
    assert isinstance(outcome, ScoreReport)


def test_workers_that_come_later_have_something_to_do(clips: Clips, tasks: list[int | None]) -> None:
    """A cluster may begin with one worker: pairs are divided all the same, and none are scored in step."""

    jobs = [Job(name, clips) for name in ("a", "b")]
    with FixedPool([Worker(CPU)]) as pool:
        pool.several = True
        outcomes = [outcome for _, outcome in Engine(pool, OPTIONS).score(jobs)]
    assert [told(outcome) for outcome in outcomes] == [told(_in_one(clips))] * 2
    assert tasks.count(None) == 2
    assert len(set(tasks)) > 2


def test_progress_is_that_of_all_frames(clips: Clips, tmp_path: Path) -> None:
    """The frames of clips that were not opened yet are estimated; what is finished counts in full."""
    short = write(tmp_path / "short.y4m", y4m_bytes(clip(FRAMES // 2)))
    steps: list[tuple[int, int | None]] = []
    jobs = [Job("a", clips), Job("b", Clips(short, short))]
    with DevicePool(CPU) as pool:
        engine = Engine(pool, OPTIONS, RunSettings(progress=lambda done, total: steps.append((done, total))))
        assert len(list(engine.score(jobs))) == 2
    assert (1, 2 * FRAMES) in steps
    assert (FRAMES, 2 * FRAMES) in steps
    assert steps[-1] == (FRAMES + FRAMES // 2,) * 2
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


def test_a_batch_whose_frames_cannot_be_kept_ends(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no pair's fault: none has a row with that error."""
    _full_after(monkeypatch, 3)
    path = manifest(tmp_path / "m.csv", [{"reference": clips.reference, "distorted": clips.distorted}])
    result = vkssim("batch", path, "-o", str(tmp_path / "results.csv"), *TINY)
    told = "vkssim: the journal is full. 0 of 1 pairs are done; the same command continues from there once it can write\n"
    assert (result.exit_code, result.output) == (2, told)
    assert not (tmp_path / "results.csv").exists()


@pytest.mark.parametrize(
    ("jobs", "workers", "sharers"),
    [
        (1, 7, [7]),
        (2, 7, [3, 3]),
        (3, 7, [2] * 3),
        (4, 7, [1] * 4),
        (4, 3, [1, 1, 1, 3]),
        (6, 3, [1] * 6),
        (9, 7, [1] * 7 + [3] * 2),
    ],
)
def test_workers_share_a_pair_only_if_there_are_fewer_pairs(
    clips: Clips, monkeypatch: pytest.MonkeyPatch, jobs: int, workers: int, sharers: list[int]
) -> None:
    given: list[int] = []
    _before_tasks(monkeypatch, lambda task: given.append(task.division.workers) if task.division is not None else None)
    with FixedPool([Worker(CPU) for _ in range(workers)]) as pool:
        engine = Engine(pool, OPTIONS, RunSettings(warn=pytest.fail))
        assert len(list(engine.score([Job(str(number), clips) for number in range(jobs)]))) == jobs
    assert given == sharers


def test_what_is_left_of_a_group_is_not_divided(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On several GPUs a group of pairs is tried again after one of them has ended, and has no ranges."""
    failures = [DeviceLostError("it is lost")]

    def lose_once(*words: Any, **how: Any) -> Any:
        if failures:
            raise failures.pop()
        return score_range(*words, **how)

    monkeypatch.setattr(worker, "score_range", lose_once)
    jobs = [Job("absent", Clips(clips.reference, str(tmp_path / "absent.y4m"))), Job("dis", clips)]
    with FixedPool([Worker(CPU), Worker(CPU)], in_step=2) as pool:
        outcomes = {job.key: outcome for job, outcome in Engine(pool, OPTIONS).score(jobs)}
    assert not failures
    assert isinstance(outcomes["absent"], InputError)
    assert told(outcomes["dis"]) == told(_in_one(clips))
