"""Two workers in processes of their own: the same bytes as one, whoever is killed meanwhile."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from vkssim import score_files
from vkssim.engine import processes
from vkssim.engine.processes import WorkerProcess, handles_of
from vkssim.engine.ranges import Event
from vkssim.engine.task import Task, TaskResult, WorkerDiedError
from vkssim.errors import InputError, OptionError
from vkssim.host.device import Device
from vkssim.report import render
from vkssim.report.results import FrameScores, ScoreReport
from vkssim.utils.interruption import SIGNALS
from vkssim.utils.wording import counted

from ..frames.reading import describe
from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import python_process, start_program, vkssim
from ..support.pictures import clip
from ..support.waiting import PATIENCE, until
from .running import FEATURE, are_gone, complete_ranges, ended, family, pause_when, resume, started, workers
from .stand_ins import CODED, CPU, TASK, failing, meeting, signalled_in_the_middle, signing, talkative

FEW = 12
FRAMES = 60 * FEW
SIZE = 64, 96
RAW = describe(clip(1, *SIZE), "400")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips, and the scores of a run on one device."""
    folder = tmp_path_factory.mktemp("runs")
    luma = clip(FEW, *SIZE)
    frames = np.concatenate([luma] * (FRAMES // FEW))
    write(folder / "ref.yuv", raw_bytes(frames, "400"))
    write(folder / "dis.yuv", raw_bytes(frames // 16 * 16, "400"))
    assert vkssim(*_words(folder, folder / "scores.json")).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def two(device: Device) -> tuple[str, str]:
    """Two workers on the device that all tests run on."""
    return "--device", f"{device.info.uuid},{device.info.uuid}"


def _words(folder: Path, output: Path, *more: str) -> list[str]:
    clips = ("-r", str(folder / "ref.yuv"), "-d", str(folder / "dis.yuv"), *raw_flags(clip(1, *SIZE), "400"))
    return ["score", *clips, *FEATURE, "-q", "-o", str(output), *more]


def _is_right(folder: Path, output: Path) -> bool:
    """Whether the scores are those of one device, and nothing else was left."""
    assert [path.name for path in output.parent.iterdir()] == [output.name]
    return output.read_bytes() == (folder / "scores.json").read_bytes()


# -- from Python ------------------------------------------------------------------------------------------------------


def _score(folder: Path, **options: Any) -> ScoreReport:
    return score_files(folder / "ref.yuv", folder / "dis.yuv", raw=RAW, features=FEATURE[1], **options)


@pytest.fixture(scope="module")
def alone(folder: Path) -> str:
    """The report of one device."""
    return render(_score(folder), "json", "max")


def test_the_same_report_with_frames_in_order(folder: Path, alone: str, device: Device) -> None:
    seen: list[FrameScores] = []
    steps: list[tuple[int, int | None]] = []
    report = _score(
        folder,
        device=[str(device.info.uuid)] * 2,
        on_frames=seen.extend,
        progress=lambda done, total: steps.append((done, total)),
    )
    assert render(report, "json", "max") == alone
    assert (report.worker_warnings, report.warnings, report.resumed) == ([], [], 0)
    assert seen == report.frames
    assert len(steps) > 4, "the clips were scored in ranges"
    assert steps == sorted(steps)
    assert steps[-1] == (FRAMES, FRAMES)


def test_errors_are_those_of_one_device(tmp_path: Path, device: Device) -> None:
    path = write(tmp_path / "no.mp4", b"no video" * 99)
    several = [str(device.info.uuid)] * 2
    messages = []
    for chosen in (None, several):
        with pytest.raises(InputError) as raised:
            score_files(path, path, device=chosen)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    with pytest.raises(OptionError):
        score_files(path, path, device=several, features="none")
    with pytest.raises(InputError, match="a pipe is read once"):
        score_files("-", path, device=several)


SCRIPT = """
import sys
import vkssim
from vkssim.engine import scheduler
scheduler.MAX_ATTEMPTS = 1
vkssim.score_files(*sys.argv[1:3], raw=vkssim.RawDescription(96, 64, "400", 8), device=[sys.argv[3]] * 2)
"""


def test_a_script_without_its_main_is_told(folder: Path, tmp_path: Path, device: Device) -> None:
    script = write(tmp_path / "script.py", SCRIPT.encode())
    process = python_process(script, str(folder / "ref.yuv"), str(folder / "dis.yuv"), str(device.info.uuid))
    assert process.returncode == 1
    last = process.stderr.decode().strip().splitlines()[-1]
    assert last.startswith("vkssim.errors.WorkerLostError")
    assert last.endswith('a script that starts processes does so under `if __name__ == "__main__":`)')


# -- killed and stopped -----------------------------------------------------------------------------------------------


def test_a_worker_that_is_killed(folder: Path, tmp_path: Path, two: tuple[str, str], device: Device) -> None:
    """Another one does what it was at, and the user hears of it.

    The one that divides the clips starts first. The other one is stopped while it starts, which it does for a range: a worker
    that has ended its task may have nothing to do, and then nobody hears of its end.
    """
    output = tmp_path / "scores.json"
    process = started(*_words(folder, output, *two))
    until(lambda: len(workers(process)) == 2)
    worker = max(workers(process))
    os.kill(worker, signal.SIGSTOP)
    until(lambda: len(complete_ranges(output)) > 1)
    os.kill(worker, signal.SIGKILL)
    messages = ended(process)
    assert process.returncode == 0
    assert f"warning: a worker on {device.info.name} ({device.info.index}) ended unexpectedly" in messages
    assert "its task is tried again" in messages
    assert _is_right(folder, output)


@pytest.mark.parametrize("command", ["score", "doctor"])
def test_a_current_folder_that_was_removed_is_named(
    folder: Path, tmp_path: Path, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Python starts no process there. Whatever needs none scores."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    result = vkssim(*(_words(folder, tmp_path / "scores.json", *two) if command == "score" else ("doctor",)))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.stderr
    assert "the current folder was removed, and no process can be started in it" in result.stderr
    assert vkssim(*_words(folder, tmp_path / "one.json")).exit_code == 0


FORKED = """
import os, time
from tests.engine.stand_ins import CPU, TASK
from vkssim.engine.processes import handles_of
if __name__ == "__main__":
    (worker,) = handles_of(CPU)
    worker.submit(TASK, lambda _job, _event: None).exception()
    fork = os.fork()
    if not fork:
        time.sleep(1000)
    print(worker._process.pid, fork, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_workers_end_with_a_parent_that_forked(tmp_path: Path) -> None:
    """The fork has a copy of its end of the connection, so that this stays open."""
    path = write(tmp_path / "script.py", FORKED.encode())
    root = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = start_program(sys.executable, path, stdout=subprocess.PIPE, env=root)
    assert process.stdout is not None
    with process, process.stdout:
        worker, fork = map(int, process.stdout.readline().split())
        process.wait(PATIENCE)
        try:
            until(lambda: are_gone([worker]))
        finally:
            os.kill(fork, signal.SIGKILL)


def test_workers_that_are_stopped(folder: Path, alone: str, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both, at the first frames: while nobody gives them tasks, they end at most the ranges that they have.

    A worker that stands still is killed after a while, and another one does its task.
    """
    for name, seconds in (("START_TIMEOUT_S", 20), ("SILENCE_TIMEOUT_S", 6), ("END_TIMEOUT_S", 1)):
        monkeypatch.setattr(processes, name, seconds)
    stopped: list[int] = []

    def stop(_done: int, _total: int | None) -> None:
        if not stopped:
            stopped.extend(process.pid for process in multiprocessing.active_children() if process.pid is not None)
            for number in stopped:
                os.kill(number, signal.SIGSTOP)

    report = _score(folder, device=[str(device.info.uuid)] * 2, progress=stop)
    assert len(stopped) == 2
    assert any(
        re.search(r"ended unexpectedly \(it gave no sign of life for (6|20) s\)", warning) for warning in report.worker_warnings
    )
    assert render(report, "json", "max") == alone
    assert are_gone(stopped)


def test_messages_start_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    start = threading.Thread.start

    def note(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    (worker,) = handles_of(CPU)
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_work", talkative)
        patch.setattr(threading.Thread, "start", note)
        for _ in range(2):
            with pytest.raises(InputError, match="the end"):
                worker.submit(TASK, lambda _job, _event: None).result(PATIENCE)
    assert started == ["vkssim-process-0", "vkssim-messages"]
    worker.close()
    until(lambda: "vkssim-messages" not in [thread.name for thread in threading.enumerate()])


@pytest.mark.parametrize(
    ("number", "why"), [(signal.SIGKILL, "exit code -9"), (signal.SIGSTOP, "it gave no sign of life for 1 s")]
)
def test_a_worker_that_ends_while_it_answers(monkeypatch: pytest.MonkeyPatch, number: signal.Signals, why: str) -> None:
    """Nothing waits for the rest of a message, and the next task has a new process."""
    monkeypatch.setattr(processes, "SILENCE_TIMEOUT_S", 1)
    (worker,) = handles_of(CPU)
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_work", partial(signalled_in_the_middle, number))
        with pytest.raises(WorkerDiedError, match=why):
            worker.submit(TASK, lambda _job, _event: None).result(PATIENCE)
    monkeypatch.undo()
    with pytest.raises(InputError, match="a cannot be read"):
        worker.submit(TASK, lambda _job, _event: None).result(PATIENCE)
    worker.close()


def test_workers_of_a_device_share_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """They work side by side. If the process ends, each of them has lost its task, and the next tasks have one new process."""
    monkeypatch.setattr(processes, "_work", meeting)
    workers = handles_of(replace(CPU, workers=2))

    def do_two() -> list[TaskResult]:
        tasks = [worker.submit(TASK, lambda _job, _event: None) for worker in workers]
        return [task.result(PATIENCE) for task in tasks]

    first, second = do_two()
    assert first.frames == second.frames != os.getpid()
    begun: list[Event] = []
    tasks = [worker.submit(replace(TASK, batch=1), lambda _job, event: begun.append(event)) for worker in workers]
    until(lambda: len(begun) == 2)
    os.kill(first.frames, signal.SIGKILL)
    for task in tasks:
        with pytest.raises(WorkerDiedError, match="exit code -9"):
            task.result(PATIENCE)
    third, fourth = do_two()
    assert third.frames == fourth.frames != first.frames
    for worker in workers:
        worker.close()


def test_a_process_reports_its_device_and_hears_how_many_workers_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_work", meeting)
    process = WorkerProcess(replace(CPU, decode="cpu"))
    process.start()
    assert process.engines() == 0
    workers = process.settle(replace(CPU, workers=2))
    tasks = [worker.submit(TASK, lambda _job, _event: None) for worker in workers]
    first, second = [task.result(PATIENCE) for task in tasks]
    assert first.frames == second.frames != os.getpid()
    process.close()


def test_nobody_waits_for_a_process_that_ends_before_it_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    process = WorkerProcess(replace(CPU, decode="cpu"))
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_work", partial(signalled_in_the_middle, signal.SIGKILL))
        process.start()
        process._connections[0][0].send("anything")
        assert process.engines() == 0
    (worker,) = process.settle(CPU)
    with pytest.raises(InputError, match="a cannot be read"):
        worker.submit(TASK, lambda _job, _event: None).result(PATIENCE)
    process.close()


def test_a_worker_without_a_task_holds_up_no_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection takes some 300 of them, if nobody receives them."""
    monkeypatch.setattr(processes, "SILENCE_TIMEOUT_S", 1)
    monkeypatch.setattr(processes, "_work", partial(signing, 4.0))
    first, second = handles_of(replace(CPU, workers=2))
    assert first.submit(TASK, lambda _job, _event: None).result(PATIENCE).frames == 1
    first.close()
    second.close()


def test_a_worker_that_retires_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_work", partial(signing, 0.0))
    first, second = handles_of(replace(CPU, workers=2))
    for worker in (first, second):
        assert worker.submit(TASK, lambda _job, _event: None).result(PATIENCE).frames == 1
    first.retire()
    assert second.submit(TASK, lambda _job, _event: None).result(PATIENCE).frames == 1
    second.close()


class _Unreadable:
    """Is pickled, and cannot be unpickled."""

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return int, ("no number",)


def test_a_task_that_cannot_be_read_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its other workers would keep it alive, with signs of life."""
    monkeypatch.setattr(processes, "_work", partial(signing, 0.0))
    first, second = handles_of(replace(CPU, workers=2))
    with pytest.raises(WorkerDiedError, match="exit code 1"):
        first.submit(cast(Task, _Unreadable()), lambda _job, _event: None).result(PATIENCE)
    assert second.submit(TASK, lambda _job, _event: None).result(PATIENCE).frames == 1
    second.close()


def test_an_error_that_cannot_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_work", failing)
    (worker,) = handles_of(CPU)
    for task, message in [(TASK, "LibraryError: of some library"), (CODED, r"_CodedError: of some library \(7\)")] * 2:
        with pytest.raises(RuntimeError, match=message) as raised:
            worker.submit(task, lambda _job, _event: None).result(PATIENCE)
        assert "in fail" in str(raised.value.__cause__)
    worker.close()


def test_a_signal_ends_the_run_in_order(folder: Path, tmp_path: Path, two: tuple[str, str]) -> None:
    """What is scored without a gap is in a valid file that says so; going on gives the file of a run that was not stopped.

    tests/utils/test_interruption.py sends every signal; from there on all take one way.
    """
    number = signal.SIGTERM
    output = tmp_path / "scores.json"
    process = started(*_words(folder, output, *two))
    # Without the first range no frame can be reported.
    processes = pause_when(process, lambda: len(complete_ranges(output)) > 2 and 0 in complete_ranges(output))
    process.send_signal(number)
    resume(processes)
    messages = ended(process)
    assert process.returncode == 128 + number
    until(lambda: are_gone(processes))
    whole, partial = (json.loads(path.read_text()) for path in (folder / "scores.json", output))
    frames = len(partial["frames"])
    assert 0 < frames < FRAMES
    assert partial["frames"] == whole["frames"][:frames]
    assert partial["warnings"] == [f"the run was stopped after {counted(frames, 'frame')}; those after them are missing"]
    assert f"stopped after {counted(frames, 'frame')}; what was scored is kept; --resume continues from there" in messages
    result = vkssim(*_words(folder, output, "--resume"))
    assert result.exit_code == 0, result.output
    assert _is_right(folder, output)


def test_a_terminal_sends_ctrl_c_to_workers_too(folder: Path, tmp_path: Path, two: tuple[str, str]) -> None:
    """They leave it to their parent. They have signals blocked from their start, as only the system can tell.

    The first of them as well, with which multiprocessing starts a process of its own.
    """
    output = tmp_path / "scores.json"
    process = started(*_words(folder, output, *two))
    processes = pause_when(process, lambda: complete_ranges(output) and len(workers(process)) == 2)
    blocked = [re.search(r"^SigBlk:\s*(\w+)$", Path(f"/proc/{number}/status").read_text(), re.M) for number in workers(process)]
    for number in workers(process):
        os.kill(number, signal.SIGINT)
    resume(processes)
    messages = ended(process)
    assert process.returncode == 0
    assert "warning" not in messages
    assert _is_right(folder, output)
    for found in blocked:
        assert found is not None
        assert all(int(found[1], 16) >> number - 1 & 1 for number in SIGNALS)


@pytest.mark.parametrize("delay", [0, 100])
def test_ctrl_c_while_workers_start(folder: Path, tmp_path: Path, two: tuple[str, str], delay: int) -> None:
    """At no moment is there a traceback, or a process that stays."""
    output = tmp_path / "scores.json"
    process = started(*_words(folder, output, *two))
    until(lambda: family(process))
    processes: list[int] = []
    passes = iter(range(delay + 1))
    until(lambda: next(passes, None) is None)
    processes = family(process)
    process.send_signal(signal.SIGINT)
    messages = ended(process)
    # On a busy machine all may have been scored by then.
    assert process.returncode == 130 or (process.returncode == 0 and _is_right(folder, output)), messages
    until(lambda: are_gone(processes))


# -- gone on from -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(folder: Path, two: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """What a run leaves that was killed on its way, on one device or on two."""

    @cache
    def killed_on(devices: int) -> Path:
        output = tmp_path_factory.mktemp("killed") / "scores.json"
        journal = Path(f"{output}.journal")
        process = started(*_words(folder, output, *(two if devices == 2 else ())))
        if devices == 2:
            processes = pause_when(process, lambda: len(complete_ranges(output)) > 2)
        else:
            processes = pause_when(process, lambda: journal.exists() and journal.stat().st_size > 2000)
        process.kill()
        resume(processes)
        process.communicate()
        until(lambda: are_gone(processes))  # workers end with their parent
        assert [path.name for path in output.parent.iterdir()] == [journal.name]
        return output.parent

    return killed_on


CONTINUED = r"note: the run continues after \d+ frames that an earlier run scored"
CUT_OFF = r"\.journal had \d+ frames of a run that was cut off; with --resume the run would have continued from them"


@pytest.mark.parametrize(
    ("before", "devices", "more", "note"),
    [(1, 2, ["--resume"], CONTINUED), (2, 1, ["--resume"], CONTINUED), (2, 1, [], CUT_OFF)],
    ids=["resume on two", "resume on one", "anew"],
)
def test_after_a_killed_run(
    folder: Path,
    killed: Callable[[int], Path],
    tmp_path: Path,
    two: tuple[str, str],
    before: int,
    devices: int,
    more: list[str],
    note: str,
) -> None:
    """A run that goes on does not know how many devices the one before had; tests/utils/test_interruption.py has one after one.

    Two after two would have nothing more to prove.
    """
    output = Path(shutil.copytree(killed(before), tmp_path / "out")) / "scores.json"
    where = two if devices == 2 else ()
    result = vkssim(*[word for word in _words(folder, output, *where, *more) if word != "-q"])
    assert result.exit_code == 0, result.output
    assert re.search(note, result.output)
    assert _is_right(folder, output)
