"""Runs that are cut off, by signals, by SIGKILL and by full disks: what is left, and that it is gone on from."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from vkssim.backends.cpu import CpuBackend
from vkssim.errors import OutputError
from vkssim.frames.raw import RawFile
from vkssim.storage.checked_journal import RUN, CheckedJournal, journal_path
from vkssim.utils import interruption
from vkssim.utils.interruption import SIGNALS
from vkssim.utils.wording import counted

from ..engine.running import pause_when, resume
from ..ladder.ladders import encode, manifest
from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import TINY, fail, python_process, start_program, start_vkssim, vkssim
from ..support.journals import frames
from ..support.pictures import clip
from ..support.waiting import PATIENCE, until

FRAMES = 360
FEW = 12
"""The lines of the journal of a run before its first frame: which run it is, and which device scores it."""

every_signal = pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long and short clips, and the files of runs that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs")
    luma = clip(FEW)
    for name, samples in (("long", np.concatenate([luma] * (FRAMES // FEW))), ("short", luma)):
        write(folder / f"{name}_ref.yuv", raw_bytes(samples))
        write(folder / f"{name}_dis.yuv", raw_bytes(samples // 16 * 16))
        assert vkssim(*_words(folder, name, folder / f"{name}.json")).exit_code == 0
    return folder


def _words(folder: Path, name: str, output: Path, *more: str) -> list[str]:
    clips = ("-r", str(folder / f"{name}_ref.yuv"), "-d", str(folder / f"{name}_dis.yuv"), *raw_flags(clip(1)))
    return ["score", *clips, *TINY, "-q", "-o", str(output), *more]


def _started(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    return start_vkssim(*words, stderr=subprocess.PIPE, **options)


def _ended(process: subprocess.Popen[bytes]) -> str:
    """Return its messages. Fails if there is a traceback."""
    told = process.communicate(timeout=PATIENCE)[1].decode()
    assert "Traceback" not in told
    return told


def _kept(output: Path) -> int:
    """How many frames the journal has."""
    return frames(journal_path(output))


# -- signals ----------------------------------------------------------------------------------------------------------


@every_signal
def test_a_signal_ends_the_run_in_order(folder: Path, tmp_path: Path, number: signal.Signals) -> None:
    """The frames scored are in a valid file that says so; going on gives the file of a run that was not stopped."""
    output = tmp_path / "scores.json"
    process = _started(*_words(folder, "long", output))
    processes = pause_when(process, lambda: _kept(output) > 20)
    process.send_signal(number)
    resume(processes)
    told = _ended(process)
    assert process.returncode == 128 + number
    whole, part = (json.loads(path.read_text()) for path in (folder / "long.json", output))
    count = len(part["frames"])
    assert 20 <= count < FRAMES
    assert part["frames"] == whole["frames"][:count]
    assert part["warnings"] == [f"the run was stopped after {counted(count, 'frame')}; those after them are missing"]
    assert f"stopped after {counted(count, 'frame')}; what was scored is kept; --resume continues from there" in told
    assert _kept(output) == count
    assert vkssim(*_words(folder, "long", output, "--resume")).exit_code == 0
    assert output.read_bytes() == (folder / "long.json").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["scores.json"]


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGHUP, "reference"), (signal.SIGINT, "standard input")])
def test_a_pipe_that_nobody_writes_does_not_hold_it_up(folder: Path, tmp_path: Path, number: signal.Signals, kind: str) -> None:
    words = _words(folder, "short", tmp_path / "scores.json", "--live")
    if kind == "reference":
        os.mkfifo(tmp_path / "pipe")
        words[2] = str(tmp_path / "pipe")
        process = _started(*words)
        until(lambda: _listens(process))
        process.send_signal(number)
    else:
        words[2] = "-"
        process = _started(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(raw_bytes(clip(2)))
        process.stdin.flush()
        assert [json.loads(process.stdout.readline())["frameNum"] for _ in range(2)] == [0, 1]
        process.send_signal(number)
        process.wait(PATIENCE)  # with the pipe still open
    told = _ended(process)
    assert process.returncode == 128 + number, told
    assert kind == "reference" or len(json.loads((tmp_path / "scores.json").read_text())["frames"]) == 2, told


def _listens(process: subprocess.Popen[bytes]) -> bool:
    """Python itself does not catch SIGHUP."""
    caught = int(Path(f"/proc/{process.pid}/status").read_text().partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGHUP - 1) & 1)


def test_who_ignores_hangups_goes_on(folder: Path, tmp_path: Path) -> None:
    """As under nohup."""
    output = tmp_path / "scores.json"
    code = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    words = [sys.executable, "-m", "vkssim", *_words(folder, "long", output)]
    process = start_program(sys.executable, "-c", code, *words, stderr=subprocess.PIPE)
    processes = pause_when(process, lambda: _kept(output) > 5)
    process.send_signal(signal.SIGHUP)
    resume(processes)
    _ended(process)
    assert process.returncode == 0


def test_a_terminal_that_is_closed(folder: Path, tmp_path: Path) -> None:
    """There is nobody to talk to any more; the file is written nevertheless."""
    output = tmp_path / "scores.json"
    words = [word for word in _words(folder, "long", output) if word != "-q"]
    terminal, theirs = pty.openpty()
    process = start_vkssim(*words, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    processes = pause_when(process, lambda: _kept(output) > 5)
    os.close(terminal)
    process.send_signal(signal.SIGHUP)
    resume(processes)
    assert process.wait(PATIENCE) == 128 + signal.SIGHUP
    assert json.loads(output.read_text())["frames"]


@pytest.mark.parametrize(("signals", "code"), [(1, 0), (2, 0), (3, 143)])
def test_signals_while_the_output_is_written(folder: Path, tmp_path: Path, signals: int, code: int) -> None:
    """All frames are scored by then: the file is written, or, after a third signal, is the old one. No other file remains."""
    output = tmp_path / "scores.json"
    output.write_text("old")
    patched = f"""
import os, signal, sys
replace = os.replace
def signalled(*words):
    for _ in range({signals}):
        signal.raise_signal(signal.SIGTERM)
    replace(*words)
os.replace = signalled
from vkssim.__main__ import run
run()
"""
    process = python_process("-c", patched, *_words(folder, "short", output))
    assert process.returncode == code, process.stderr.decode()
    assert b"Traceback" not in process.stderr
    if code:
        assert (output.read_text(), _kept(output)) == ("old", FEW)
        assert vkssim(*_words(folder, "short", output, "--resume")).exit_code == 0
    assert output.read_bytes() == (folder / "short.json").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["scores.json"]


AT_AN_IMPORT = """
import signal, sys
name = sys.argv.pop(1)
class Interrupter:
    @staticmethod
    def find_spec(found, *_):
        if found == name:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupter)
from vkssim.__main__ import run
run()
"""


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("lazy_loader", "stopped after 0 frames"),
        ("vkssim.utils.interruption", ""),
        ("concurrent.futures", ""),
        ("vkssim.cli", "stopped after 0 frames"),
        ("click", "stopped after 0 frames"),
        ("vkssim.cli.score", "stopped after 0 frames"),
        ("numpy", "stopped after 0 frames"),
    ],
)
def test_a_signal_while_the_command_starts(folder: Path, tmp_path: Path, module: str, message: str) -> None:
    """Nobody sees a traceback, whichever module is being imported."""
    process = python_process("-c", AT_AN_IMPORT, module, *_words(folder, "short", tmp_path / "scores.json"))
    told = process.stderr.decode()
    assert process.returncode == 130, told
    assert message in told
    assert "Traceback" not in told
    assert not list(tmp_path.iterdir())


def test_handlers_are_given_back(folder: Path, tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    assert vkssim(*_words(folder, "short", tmp_path / "scores.json")).exit_code == 0
    assert [signal.getsignal(number) for number in SIGNALS] == before


# -- killed -----------------------------------------------------------------------------------------------------------


AT_THE_END = """
import os
from vkssim.engine.journal import Journal
Journal.discard_frames = lambda *_words: os._exit(9)
from vkssim.__main__ import run
run()
"""


def test_killed_between_the_scores_and_the_end_of_the_journal(folder: Path, tmp_path: Path) -> None:
    """The scores are there, and so is what they are from; the next run gives the same and takes it away."""
    output = tmp_path / "scores.json"
    words = _words(folder, "short", output)
    process = python_process("-c", AT_THE_END, *words)
    assert process.returncode == 9, process.stderr.decode()
    scores = output.read_bytes()
    assert len(list(tmp_path.iterdir())) == 2
    result = vkssim(*words, "--resume")
    assert result.exit_code == 0, result.output
    assert output.read_bytes() == scores
    assert [path.name for path in tmp_path.iterdir()] == ["scores.json"]


# -- full disks -------------------------------------------------------------------------------------------------------


@contextmanager
def _files_up_to(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond that."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


@pytest.mark.parametrize("full", ["scores.json", "scores.json.journal"])
def test_a_full_disk_is_an_error_and_nothing_is_lost(folder: Path, tmp_path: Path, full: str) -> None:
    """Files may grow up to a limit: the journal fits and the scores do not, or neither."""
    output = tmp_path / "scores.json"
    output.write_text("old")
    limit = (folder / "long.json").stat().st_size - 1 if full == output.name else 4000
    with _files_up_to(limit):
        fail(2, f"{full} cannot be written: File too large; --resume continues from there", *_words(folder, "long", output))
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.json", "scores.json.journal"]
    assert _kept(output) == FRAMES if full == output.name else 10 < _kept(output) < FRAMES
    assert vkssim(*_words(folder, "long", output, "--resume")).exit_code == 0
    assert output.read_bytes() == (folder / "long.json").read_bytes()


def _batch_words(folder: Path, tmp_path: Path) -> list[str]:
    pairs = [{"reference": str(folder / "long_ref.yuv"), "distorted": str(folder / "long_dis.yuv")}]
    manifest(tmp_path / "pairs.csv", pairs)
    return ["batch", str(tmp_path / "pairs.csv"), "-o", str(tmp_path / "scores.csv"), *raw_flags(clip(1)), *TINY]


def test_a_batch_on_a_full_disk_says_what_is_true(folder: Path, tmp_path: Path) -> None:
    """It says that it continues only if it does, and at the end that the same command will."""
    words = _batch_words(folder, tmp_path)
    for _ in range(2):
        with _files_up_to(4000):
            told = fail(2, "scores.csv.journal cannot be written: File too large. 0 of 1 pairs are done; ", *words).stderr
        assert "the same command continues" in told
        assert "the run continues" not in told
    result = vkssim(*words)
    assert result.exit_code == 0, result.output
    assert "note: the run continues after" in result.stderr


def test_a_batch_whose_table_cannot_be_written_is_done(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next command scores nothing."""
    words = _batch_words(folder, tmp_path)

    def full(*_arguments: object) -> None:
        raise OutputError("scores.csv cannot be written: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("vkssim.ladder.batch.write_output", full)
        result = vkssim(*words)
    assert result.exit_code == 2
    assert "No space left on device. All pairs are done: the same command writes them once that is possible" in result.stderr
    monkeypatch.setattr(CpuBackend, "submit", full)
    assert vkssim(*words).exit_code == 0


# -- going on ---------------------------------------------------------------------------------------------------------


def _cut_off(folder: Path, output: Path, *more: str) -> None:
    """Stop a run after its second batch."""
    _stopped(*_words(folder, "short", output, *more))


def _stopped(*words: str) -> None:
    """Run a command until its third batch."""
    collect, calls = CpuBackend.collect, []

    def stop(self: CpuBackend, batch: Any) -> Any:
        calls.append(batch)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return collect(self, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CpuBackend, "collect", stop)
        assert vkssim(*words).exit_code == 130


def test_a_job_may_always_say_resume(folder: Path, tmp_path: Path) -> None:
    """Without a journal the run begins at the start; with one, the journal is gone at the end."""
    output = tmp_path / "scores.json"
    for _ in range(2):
        assert vkssim(*_words(folder, "short", output, "--resume")).exit_code == 0
        assert output.read_bytes() == (folder / "short.json").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["scores.json"]


def test_names_of_250_letters(folder: Path, tmp_path: Path) -> None:
    """Clips, outputs, the journals beside these, and the files of frames named after clips."""
    clips = {name: str(tmp_path / f"{name[0] * 250}.yuv") for name in ("reference", "distorted")}
    for clip_path, short in zip(clips.values(), ("ref", "dis"), strict=True):
        os.symlink(folder / f"short_{short}.yuv", clip_path)
    output, page = tmp_path / f"{'o' * 250}.json", tmp_path / f"{'p' * 250}.html"
    words = ["score", *clips.values(), *raw_flags(clip(1)), *TINY, "-q", "-o", str(output), "--html", str(page)]
    _stopped(*words)
    assert vkssim(*words, "--resume").exit_code == 0
    assert len(json.loads(output.read_text())["frames"]) == FEW
    manifest(tmp_path / f"{'m' * 250}.csv", [clips])
    table = tmp_path / f"{'t' * 250}.csv"
    batch = ["batch", str(tmp_path / f"{'m' * 250}.csv"), "-o", str(table), "--frames", str(tmp_path / "frames")]
    assert vkssim(*batch, *raw_flags(clip(1)), *TINY).exit_code == 0
    assert len(list((tmp_path / "frames").iterdir())) == 1
    told = vkssim(*words[:-4], "-o", str(tmp_path / f"{'o' * 256}.json"))
    assert (told.exit_code, "o.json cannot be written: File name too long" in told.stderr) == (2, True)


def test_live_page_and_maps_go_on_too(folder: Path, tmp_path: Path) -> None:
    """Lines only of new frames; the page and the maps of all."""
    output, page, maps = tmp_path / "scores.json", tmp_path / "page.html", tmp_path / "maps"
    _cut_off(folder, output, "--live")
    kept = _kept(output)
    result = vkssim(*_words(folder, "short", output, "--resume", "--live", "--html", str(page), "--map", str(maps)))
    assert result.exit_code == 0
    assert [json.loads(line)["frameNum"] for line in result.stdout.splitlines()] == list(range(kept, FEW))
    assert output.read_bytes() == (folder / "short.json").read_bytes()
    assert f'"frames":{list(range(FEW))}'.replace(" ", "") in page.read_text()
    assert len(list(maps.iterdir())) == 10


def test_a_container_and_a_truncated_file(folder: Path, tmp_path: Path) -> None:
    """Warnings and the error at the end are those of a run that was not stopped, and the journal goes."""
    luma = clip(FEW, 64, 64)
    encode(tmp_path / "ref.mp4", luma)
    encode(tmp_path / "dis.mp4", luma[:-2], crf="40")
    cut = write(tmp_path / "cut.yuv", (folder / "short_dis.yuv").read_bytes()[:-10])
    for words, code in (
        (["-r", str(tmp_path / "ref.mp4"), "-d", str(tmp_path / "dis.mp4"), *TINY, "--strict"], 1),
        (["-r", str(folder / "short_ref.yuv"), "-d", cut, *raw_flags(clip(1)), "--allow-partial", *TINY], 2),
    ):
        whole, output = tmp_path / "whole.json", tmp_path / "scores.json"
        expected = vkssim("score", *words, "-q", "-o", str(whole))
        assert expected.exit_code == code
        _stopped("score", *words, "-q", "-o", str(output))
        assert output.read_bytes() != whole.read_bytes()
        result = vkssim("score", *words, "-q", "-o", str(output), "--resume")
        assert (result.exit_code, result.stderr) == (code, expected.stderr)
        assert output.read_bytes() == whole.read_bytes()
        assert not journal_path(output).exists()


@pytest.mark.parametrize(
    ("output", "inputs", "reason"),
    [
        (("-o", "scores.json"), ("-", "short_dis.yuv"), "standard input cannot be read a second time"),
        (("-o", "scores.json"), ("short_ref.yuv", "pipe"), "pipe cannot be read a second time"),
        (("-o", "-"), ("short_ref.yuv", "short_dis.yuv"), "beside a local output file, which --output names"),
        (("--json",), ("short_ref.yuv", "short_dis.yuv"), "beside a local output file, which --output names"),
        ((), ("short_ref.yuv", "short_dis.yuv"), "beside a local output file, which --output names"),
    ],
)
def test_nothing_to_resume_by(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: tuple[str, ...], inputs: tuple[str, str], reason: str
) -> None:
    for name in ("short_ref.yuv", "short_dis.yuv"):
        (tmp_path / name).symlink_to(folder / name)
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    result = vkssim("score", "-r", inputs[0], "-d", inputs[1], *raw_flags(clip(1)), *TINY, *output, "--resume")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--resume is not possible: " in result.stderr
    assert reason in result.stderr
    assert not list(tmp_path.glob("*.journal"))


def test_the_journal_belongs_to_the_first_output(folder: Path, tmp_path: Path) -> None:
    """Its scores are those of all outputs, whichever is written first."""
    words = _words(folder, "short", tmp_path / "scores.csv", "-o", str(tmp_path / "scores.xml"))
    first, second = (CheckedJournal(journal_path(tmp_path / name), RUN, print) for name in ("scores.csv", "scores.xml"))
    with first:
        assert "another process is writing the same output" in vkssim(*words).stderr
    with second:
        assert vkssim(*words).exit_code == 0
    assert (tmp_path / "scores.csv").exists()
    assert (tmp_path / "scores.xml").exists()


def test_the_journal_is_no_input(folder: Path, tmp_path: Path) -> None:
    mine = write(tmp_path / "scores.csv.journal", raw_bytes(clip(FEW)))
    words = _words(folder, "short", tmp_path / "scores.csv")
    words[2] = mine
    assert "would overwrite another file of this command" in vkssim(*words).stderr
    manifest(tmp_path / "ladder.csv", [{"reference": mine, "distorted": mine}])
    result = vkssim("batch", str(tmp_path / "ladder.csv"), "-o", str(tmp_path / "scores.csv"), *TINY)
    assert "is not a journal of vkssim" in result.stderr
    assert Path(mine).read_bytes() == raw_bytes(clip(FEW))


def test_an_interrupted_reader_says_so(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that comes while the main thread waits for the readers."""
    read, calls = RawFile.read, []

    def signalled(self: RawFile, *what: Any) -> int:
        calls.append(self)
        if len(calls) == 20:
            os.kill(os.getpid(), signal.SIGTERM)
        return read(self, *what)

    monkeypatch.setattr(RawFile, "read", signalled)
    output = tmp_path / "scores.json"
    assert vkssim(*_words(folder, "long", output)).exit_code == 143
    assert len(json.loads(output.read_text())["frames"]) < FRAMES


# -- signals that another thread gets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", ["queue", "future"])
def test_a_signal_is_heard_while_the_main_thread_waits(wait: str) -> None:
    """Where the system gives a signal to another thread, nothing wakes the main one, whose handler has to run."""
    answer: Future[str] = Future()
    queue: SimpleQueue[str] = SimpleQueue()
    heard = threading.Event()

    def come() -> None:
        time.sleep(0.2)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        heard.wait(PATIENCE)
        queue.put("too late")
        answer.set_result("too late")

    with interruption.listening():
        threading.Thread(target=come, daemon=True).start()
        with pytest.raises(interruption.Interruption):
            interruption.take(queue) if wait == "queue" else interruption.result_of(answer)
    heard.set()


def test_no_signal_comes_while_a_future_is_asked() -> None:
    """An exception in the wait of a future can leave its lock released. Then a RuntimeError hides the signal."""

    class Watched(Future[str]):
        def result(self, timeout: float | None = None) -> str:
            assert self.done()
            assert not interruption._signals.waiting
            return super().result(timeout)

    answer = Watched()
    threading.Timer(0.2, answer.set_result, ("it",)).start()
    with interruption.listening():
        assert interruption.result_of(answer) == "it"


def test_what_was_waited_for_is_given() -> None:
    answer: Future[str] = Future()
    queue: SimpleQueue[str] = SimpleQueue()
    threading.Timer(0.7, lambda: (queue.put("entry"), answer.set_exception(TimeoutError("its own")))).start()
    assert interruption.take(queue) == "entry"
    with pytest.raises(TimeoutError, match="its own"):
        interruption.result_of(answer)
