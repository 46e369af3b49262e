"""Ranges that are kept, found again, refused and put together: on one worker in this process."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vkssim import score_files
from vkssim.backends.base import Batch
from vkssim.backends.cpu import CpuBackend
from vkssim.distributed import worker
from vkssim.distributed.coordinator import Coordinator, Job
from vkssim.distributed.pair import score_in_ranges, score_pair
from vkssim.distributed.scheduler import MOST_ATTEMPTS, Scheduler
from vkssim.distributed.task import Done, Task
from vkssim.distributed.threads import LocalPool
from vkssim.distributed.worker import Worker
from vkssim.distributed.worker_options import WorkerOptions
from vkssim.distributed.worker_pool import WorkerDiedError
from vkssim.errors import (
    DemandError,
    DeviceLostError,
    HostMemoryError,
    InputError,
    InterruptedRunError,
    OptionError,
    OutputError,
    RangeError,
    VkssimError,
    WorkerLostError,
)
from vkssim.report.backend_info import BackendInfo
from vkssim.report.frame_scores import FrameScores
from vkssim.report.results import ScoreReport
from vkssim.scoring.options import Clips, ScoreOptions
from vkssim.scoring.range_file import unpacked, unpacked_division
from vkssim.scoring.range_folder import RangeFolder, name_of
from vkssim.scoring.ranges import EarlierScores, FrameRange
from vkssim.scoring.run_settings import RunSettings
from vkssim.scoring.run_store import RunStore
from vkssim.storage.own_folder import OwnFolder
from vkssim.utils.wording import counted

from ..ladder.ladders import manifest
from ..support.clips import write, y4m_bytes
from ..support.commands import TINY, vkssim
from ..support.damage import flipped_bits
from ..support.pictures import clip
from .in_ranges import CPU, FEATURES, small_ranges, told

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


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[FrameRange | None]:
    """Record the ranges of the tasks that the worker was given; None where it had to divide."""
    given: list[FrameRange | None] = []
    do = Worker.do

    def note(self: Worker, task: Task) -> Done:
        given.append(task.frame_range)
        return do(self, task)

    monkeypatch.setattr(Worker, "do", note)
    return given


def _fail_at(monkeypatch: pytest.MonkeyPatch, first: int, error: BaseException, times: int = 1) -> None:
    """Have the worker raise an error in place of scoring the range from that pair on."""
    left, do = [error] * times, Worker.do

    def failing(self: Worker, task: Task) -> Done:
        if task.frame_range is not None and task.frame_range.first == first and not task.frame_range.is_whole and left:
            raise left.pop()
        return do(self, task)

    monkeypatch.setattr(Worker, "do", failing)


def _in_one(clips: Clips) -> ScoreReport:
    return score_files(clips.reference, clips.distorted, features=FEATURES, backend="cpu")


def _score(clips: Clips, kept: RunStore | None = None) -> ScoreReport:
    with LocalPool(CPU) as pool:
        return score_in_ranges(clips, OPTIONS, pool, RunSettings(store=kept))


def _kept(folder: Path, *, resume: bool = False, tell: Callable[[str], None] = lambda _text: None) -> RunStore:
    """The store of a run that goes on in ranges."""
    store = _store(folder, resume=resume, tell=tell)
    store.begin_ranges([INFO])
    return store


def _store(folder: Path, *, resume: bool, tell: Callable[[str], None] = lambda _text: None) -> RunStore:
    names = folder / "scores.json.journal", str(folder / "scores.json.parts")
    return RunStore(*names, {"what": 1}, resume=resume, tell=tell)


def _cut_off(clips: Clips, folder: Path, monkeypatch: pytest.MonkeyPatch, error: VkssimError, first: int = 8) -> None:
    """A run whose third range fails."""
    with monkeypatch.context() as patch:
        _fail_at(patch, first, error)
        with _kept(folder) as kept:
            with pytest.raises(type(error)) as raised:
                _score(clips, kept)
            kept.settle([raised.value])
    assert str(raised.value).endswith("`resume` continues from there")
    assert raised.value.report is not None
    assert len(raised.value.report.frames) == first


# -- cut off ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [InterruptedRunError("stopped"), OutputError("full"), WorkerLostError("it died three times")], ids=str
)
def test_only_what_is_missing_is_done(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: list[FrameRange | None], error: VkssimError
) -> None:
    _cut_off(clips, tmp_path, monkeypatch, error)
    assert [None if frame_range is None else frame_range.first for frame_range in tasks] == [None, 0, 4]
    tasks.clear()
    with _kept(tmp_path, resume=True) as kept:
        report = _score(clips, kept)
        kept.settle([])
    assert [frame_range and frame_range.first for frame_range in tasks] == [8, 12, 16]
    assert told(report) == told(_in_one(clips))
    assert report.resumed == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dis.y4m", "ref.y4m"]


def test_what_a_worker_cannot_keep_is_kept_here(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: list[FrameRange | None]
) -> None:
    """A node of a cluster that has not the folder sends its scores all the same, and makes none of its own."""
    elsewhere = RangeFolder(tmp_path / "elsewhere")
    monkeypatch.setattr(worker, "RangeFolder", lambda _folder: elsewhere)
    _cut_off(clips, tmp_path, monkeypatch, OutputError("full"))
    tasks.clear()
    with _kept(tmp_path, resume=True) as kept:
        assert told(_score(clips, kept)) == told(_in_one(clips))
        kept.settle([])
    assert [frame_range and frame_range.first for frame_range in tasks] == [8, 12, 16]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dis.y4m", "ref.y4m"]


def test_ranges_stay_until_their_scores_are_where_they_belong(
    clips: Clips, tmp_path: Path, tasks: list[FrameRange | None]
) -> None:
    with _kept(tmp_path) as kept:
        report = _score(clips, kept)
    assert len(tasks) == 6
    tasks.clear()
    with _kept(tmp_path, resume=True) as kept:
        again = _score(clips, kept)
        kept.settle([DemandError("it is what it is")])
    assert tasks == []
    assert again.frames == report.frames
    assert not Path(kept.range_folder.place).exists()


def test_ranges_of_another_division_are_not_taken_for_these(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: list[FrameRange | None]
) -> None:
    """What a run left that was killed while it tidied up: ranges, but not how they were divided."""
    _cut_off(clips, tmp_path, monkeypatch, OutputError("full"))
    shutil.copytree(tmp_path / "scores.json.parts", tmp_path / "old")
    (division,) = (tmp_path / "scores.json.parts").glob("*.parts")
    division.unlink()
    small_ranges(monkeypatch, 5)
    with monkeypatch.context() as patch:
        _fail_at(patch, 0, OutputError("full"))
        with _kept(tmp_path, resume=True) as kept, pytest.raises(OutputError):
            _score(clips, kept)
    tasks.clear()
    with _kept(tmp_path, resume=True) as kept:
        assert told(_score(clips, kept)) == told(_in_one(clips))
    assert [frame_range and frame_range.first for frame_range in tasks][:1] == [0]


def test_damaged_ranges_are_not_believed(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: list[FrameRange | None]
) -> None:
    """Any bit of a range, of how the clips were divided, or of the journal; and ranges that were exchanged."""
    _cut_off(clips, tmp_path, monkeypatch, OutputError("full"))
    folder = OwnFolder(tmp_path / "scores.json.parts")
    first, second, division = sorted(folder.names())
    for name, read in (
        (first, lambda data: unpacked(data, first, OPTIONS)),
        (division, lambda data: unpacked_division(data, division)),
    ):
        data = folder.read(name) or b""
        assert read(data) is not None
        assert all(read(damaged) is None for damaged in flipped_bits(data, every=5))
    folder.write(first, folder.read(second) or b"")
    tasks.clear()
    with _kept(tmp_path, resume=True) as kept:
        assert told(_score(clips, kept)) == told(_in_one(clips))
    assert 0 in [frame_range and frame_range.first for frame_range in tasks]
    journal = tmp_path / "scores.json.journal"
    whole = journal.read_bytes()
    head = len(b"".join(whole.splitlines(keepends=True)[:2]))  # which run it is, and on which device it was begun
    for bit, damaged in enumerate(flipped_bits(whole)):
        folder.make()
        folder.write("k.whole", b"")
        journal.write_bytes(damaged)
        with _kept(tmp_path, resume=True):
            assert folder.names() == (set() if bit < 8 * head else {"k.whole"}), "else it is begun anew"


# -- one device and several -------------------------------------------------------------------------------------------


def _on_one(clips: Clips, store: RunStore, stop: int | None = None) -> ScoreReport:
    """Score on one device, until `stop` frames are there in all."""

    def cut_off(done: int, _total: int | None) -> None:
        if done == stop:
            raise KeyboardInterrupt

    settings = RunSettings(progress=cut_off, on_frames=lambda _frames: None, store=store)  # batches are of one frame
    return score_pair(clips, OPTIONS, None, settings)


def _stopped_on_one(clips: Clips, folder: Path, stop: int, *, resume: bool = False) -> None:
    with _store(folder, resume=resume) as store:
        with pytest.raises(InterruptedRunError) as raised:
            _on_one(clips, store, stop)
        store.settle([raised.value])


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many frames each batch had that was scored."""
    counts: list[int] = []
    submit = CpuBackend.submit

    def note(self: CpuBackend, batch: Batch, frames: int) -> None:
        counts.append(frames)
        submit(self, batch, frames)

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
    with _kept(tmp_path, resume=True, tell=notes.append) as kept:
        report = _score(clips, kept)
        kept.settle([])
    assert told(report) == told(_in_one(clips))
    begun = -(-stop // 4)  # ranges are of four frames
    assert report.resumed == stop - begun
    assert notes == [f"the run continues with the {counted(stop, 'frame')} in {tmp_path / 'scores.json.journal'}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dis.y4m", "ref.y4m"]
    assert sum(scored) == FRAMES - report.resumed + FRAMES  # and those of the run that nobody disturbed


def test_ranges_are_not_scored_again_on_one_device(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scored: list[int]
) -> None:
    _cut_off(clips, tmp_path, monkeypatch, OutputError("full"))
    scored.clear()
    notes: list[str] = []
    with _store(tmp_path, resume=True, tell=notes.append) as store:
        report = _on_one(clips, store)
        store.settle([])
    assert sum(scored) == FRAMES - 7
    assert told(report) == told(_in_one(clips))
    assert report.resumed == 7
    assert notes == ["the run continues behind 8 frames that an earlier run scored"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dis.y4m", "ref.y4m"]


def test_a_run_goes_from_one_device_to_several_and_back(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stopped_on_one(clips, tmp_path, 6)
    with monkeypatch.context() as patch:
        _fail_at(patch, 12, OutputError("full"))
        with _kept(tmp_path, resume=True) as kept, pytest.raises(OutputError):
            _score(clips, kept)
    _stopped_on_one(clips, tmp_path, 14, resume=True)
    with monkeypatch.context() as patch:
        _fail_at(patch, 16, OutputError("full"))
        with _kept(tmp_path, resume=True) as kept, pytest.raises(OutputError):
            _score(clips, kept)
    with _store(tmp_path, resume=True) as store:
        report = _on_one(clips, store)
        store.settle([])
    assert told(report) == told(_in_one(clips))
    assert report.resumed == 15
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dis.y4m", "ref.y4m"]


def test_ranges_behind_a_gap_wait_for_several_devices(clips: Clips, tmp_path: Path, tasks: list[FrameRange | None]) -> None:
    """One device scores in order: it takes the ranges up to the first that is missing."""
    with _kept(tmp_path) as kept:
        whole = _score(clips, kept)
    folder = OwnFolder(tmp_path / "scores.json.parts")
    folder.remove([name for name in folder.names() if "000000000008-" in name])
    _stopped_on_one(clips, tmp_path, 9, resume=True)
    tasks.clear()
    with _kept(tmp_path, resume=True) as kept:
        assert told(_score(clips, kept)) == told(whole)
    assert [frame_range and frame_range.first for frame_range in tasks] == [8]


def test_ranges_that_do_not_meet_are_not_taken_by_one_device(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frames of a range count only where its neighbours found the same frames at its ends."""
    _cut_off(clips, tmp_path, monkeypatch, OutputError("full"))
    folder = RangeFolder(tmp_path / "scores.json.parts")
    with _store(tmp_path, resume=True) as store:
        found = folder.find(store.key, OPTIONS)
        second = found.scores[1]
        second.begins = 7, None
        folder.write(name_of(store.key, found.ranges[1]), second)
    notes: list[str] = []
    with _store(tmp_path, resume=True, tell=notes.append) as store:
        assert told(_on_one(clips, store)) == told(_in_one(clips))
    assert notes == []


def test_frames_of_one_device_survive_ranges_that_are_refused(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stopped_on_one(clips, tmp_path, 10)
    _fail_at(monkeypatch, 12, RangeError("not there"))
    with _kept(tmp_path, resume=True) as kept:
        report = _score(clips, kept)
    assert told(report) == told(_in_one(clips))
    assert report.resumed == 9


def test_the_report_names_every_device_that_took_part(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes on where one of its devices is among those that are there now."""
    other = replace(INFO, device="Made Up 9000")
    scored_by = RunStore.begin

    def on_another(self: RunStore, options: ScoreOptions, _backend: BackendInfo, names: Sequence[str]) -> EarlierScores:
        return scored_by(self, options, other, names)

    with monkeypatch.context() as patch:
        patch.setattr(RunStore, "begin", on_another)
        _stopped_on_one(clips, tmp_path, 10)
    with _store(tmp_path, resume=True) as store, pytest.raises(OptionError, match="belongs to another run: device differ"):
        store.begin_ranges([INFO])
    with _store(tmp_path, resume=True) as store:
        store.begin_ranges([INFO, other])
        report = _score(clips, store)
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
    with _kept(tmp_path) as kept, LocalPool(CPU) as pool:
        report = score_in_ranges(
            clips,
            OPTIONS,
            pool,
            RunSettings(progress=lambda done, total: steps.append((done, total)), on_frames=frames.extend, store=kept),
        )
        assert kept.range_folder.names() == {f"{kept.key}.whole"}
    assert told(report) == told(_in_one(clips))
    assert frames == report.frames
    assert steps[-1] == (FRAMES, FRAMES)
    assert report.troubles == []


def test_a_refused_range_of_a_run_that_goes_on(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _cut_off(clips, tmp_path, monkeypatch, OutputError("full"))
    _fail_at(monkeypatch, 12, RangeError("not there"))
    with _kept(tmp_path, resume=True) as kept:
        report = _score(clips, kept)
    assert told(report) == told(_in_one(clips))
    assert report.resumed == 0


@pytest.mark.parametrize("place", [1, 4])
def test_ranges_that_do_not_meet_are_scored_in_one(clips: Clips, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """Whichever of two neighbours comes first; no frame of the latter is told of."""
    do = Worker.do

    def other(self: Worker, task: Task) -> Done:
        done = do(self, task)
        if task.frame_range is not None and task.frame_range.first == 4 * place:
            assert done.scores is not None
            done.scores.begins = None, 7
            done.scores.report.frames = []
            done.scores.others = []
        return done

    monkeypatch.setattr(Worker, "do", other)
    frames: list[FrameScores] = []
    with LocalPool(CPU) as pool:
        report = score_in_ranges(clips, OPTIONS, pool, RunSettings(on_frames=frames.extend))
    assert told(report) == told(_in_one(clips))
    assert frames == report.frames


def test_what_fails_with_all_in_one_range_is_an_error(clips: Clips, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not tried for ever."""

    def refused(self: Worker, task: Task) -> Done:
        raise RangeError("never")

    monkeypatch.setattr(Worker, "do", refused)
    with pytest.raises(RangeError, match="never"):
        _score(clips)


# -- failing workers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [WorkerDiedError("gone"), DeviceLostError("lost")])
def test_a_failure_on_the_way_is_a_trouble_and_no_warning(
    clips: Clips, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    _fail_at(monkeypatch, 8, error, 2)
    report = _score(clips)
    assert told(report) == told(_in_one(clips))
    assert len(report.troubles) == 2
    assert report.warnings == []


def test_what_was_scored_comes_with_the_error(clips: Clips, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_at(monkeypatch, 8, WorkerDiedError("gone"), MOST_ATTEMPTS)
    with pytest.raises(WorkerLostError, match=f"was tried {MOST_ATTEMPTS} times and given up") as raised:
        _score(clips)
    assert raised.value.report is not None
    assert raised.value.report.frames == _in_one(clips).frames[:8]


def test_what_was_scored_comes_with_a_lack_of_memory(clips: Clips, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_at(monkeypatch, 8, MemoryError())
    with pytest.raises(HostMemoryError) as raised:
        _score(clips)
    assert raised.value.report is not None
    assert raised.value.report.frames == _in_one(clips).frames[:8]


def test_a_range_that_cannot_be_stored_is_in_the_report_of_the_error(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file = OwnFolder.write

    def full(self: OwnFolder, name: str, data: bytes) -> None:
        if f".{8:012d}-" in name:
            raise OutputError("the folder is full")
        write_file(self, name, data)

    monkeypatch.setattr(OwnFolder, "write", full)
    with _kept(tmp_path) as kept, pytest.raises(OutputError, match="the folder is full") as raised:
        _score(clips, kept)
    assert raised.value.report is not None
    assert raised.value.report.frames == _in_one(clips).frames[:12]


def test_a_range_is_stored_before_its_frames_are_passed_on(
    clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function of the caller's may fail."""

    def fail(_frames: object) -> None:
        raise RuntimeError("not today")

    monkeypatch.setattr(worker, "_store", lambda _scores, _task: False)
    with _kept(tmp_path) as kept:
        with LocalPool(CPU) as pool, pytest.raises(RuntimeError, match="not today"):
            score_in_ranges(clips, OPTIONS, pool, RunSettings(on_frames=fail, store=kept))
        assert f"{kept.key}.{0:012d}-4" in kept.range_folder.names()


# -- several jobs -----------------------------------------------------------------------------------------------------


def test_jobs_are_independent(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is refused in ranges, one kills its workers, one is no video: the others are as if they were alone."""
    do = Worker.do
    raises: dict[str, Callable[[Task], Exception | None]] = {
        "refused": lambda task: RangeError("no") if task.frame_range is not None and task.frame_range.first == 8 else None,
        "deadly": lambda task: (
            WorkerDiedError("gone") if task.frame_range is not None and task.frame_range.first == 4 else None
        ),
    }

    def failing(self: Worker, task: Task) -> Done:
        fails = raises.get(Path(task.clips.distorted).stem)
        error = None if fails is None else fails(task)
        if error is not None:
            raise error
        return do(self, task)

    monkeypatch.setattr(Worker, "do", failing)
    names = ("dis", "refused", "deadly", "no", "absent", "last")
    data = Path(clips.distorted).read_bytes()
    for name in names:
        if name != "absent":
            write(tmp_path / f"{name}.y4m", b"no video" if name == "no" else data)
    with LocalPool(CPU) as pool:
        folder = RangeFolder(tmp_path / "parts")
        coordinator = Coordinator(Scheduler(pool, lambda _trouble: None), OPTIONS, folder=folder)
        jobs = [Job(name, Clips(clips.reference, str(tmp_path / f"{name}.y4m"))) for name in names]
        outcomes = {job.key: outcome for job, outcome in coordinator.score(jobs)}
        assert folder.names() == set()
    expected = told(_in_one(clips))
    for name in ("dis", "refused", "last"):
        assert told(outcomes[name]) == [
            text.replace("dis.y4m", f"{name}.y4m") if isinstance(text, str) else text for text in expected
        ]
    for name, kind in (("deadly", WorkerLostError), ("no", InputError), ("absent", InputError)):
        assert isinstance(outcomes[name], kind)


def test_a_batch_whose_ranges_cannot_be_kept_ends(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no pair's fault: none has a row with that error."""
    write_file = OwnFolder.write

    def full(self: OwnFolder, name: str, data: bytes) -> None:
        if not name.endswith(".parts"):  # which the worker does not write
            raise OutputError("the folder is full")
        write_file(self, name, data)

    monkeypatch.setattr(WorkerOptions, "several", lambda _self: True)
    monkeypatch.setattr(OwnFolder, "write", full)
    path = manifest(tmp_path / "m.csv", [{"reference": clips.reference, "distorted": clips.distorted}])
    result = vkssim("batch", path, "-o", str(tmp_path / "results.csv"), *TINY)
    assert (result.exit_code, result.output) == (2, "vkssim: the folder is full\n")
    assert not (tmp_path / "results.csv").exists()
