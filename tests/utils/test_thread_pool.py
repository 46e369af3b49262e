"""Threads that do not end: whoever waits for them goes on, and what they use stays as it is."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.pools import DevicePool
from vkssim.engine.task import Part, Task, TaskStoppedError, WorkerSpec
from vkssim.frames.raw import RawFile
from vkssim.utils import thread_pool
from vkssim.utils.thread_pool import ThreadPool

from ..frames.reading import describe
from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import TINY, python_process, start_program
from ..support.pictures import clip
from ..support.waiting import PATIENCE

FRAMES = 200
LUMA = clip(1)


def test_what_no_thread_has_begun_is_cancelled() -> None:
    pool, begun, go_on = ThreadPool(1, "test"), threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return go_on.wait(PATIENCE)

    first, second = pool.submit(work), pool.submit(work)
    assert begun.wait(PATIENCE)
    second.add_done_callback(lambda _: go_on.set())
    assert pool.close()
    assert (first.result(), second.cancelled()) == (True, True)


def test_a_thread_that_works_on_after_an_interrupted_wait_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler that raises makes Python 3.11 take a joined thread for ended."""
    pool, go_on = ThreadPool(1, "test"), threading.Event()
    future = pool.submit(go_on.wait)

    def interrupt() -> None:
        time.sleep(0.3)  # until the main thread waits
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        pool.close()
    monkeypatch.setattr(thread_pool, "END_TIMEOUT_S", 0.05)
    assert not pool.close()
    go_on.set()
    assert future.result(PATIENCE)


# -- runs -------------------------------------------------------------------------------------------------------------

HANGING = """
import sys
import threading
from vkssim.utils import thread_pool
from vkssim.errors import ReadError
from vkssim.frames.raw import RawFile

thread_pool.END_TIMEOUT_S = 0.5
hangs, back, read = threading.Event(), threading.Event(), RawFile.read


def hang(self, numbers, targets):
    if numbers[-1] < 64:
        return read(self, numbers, targets)
    if self.info.path.endswith("dis.yuv"):
        print("hangs", file=sys.stderr, flush=True)
        hangs.set()
        back.wait()
        frames = read(self, numbers, targets)
        sys.stdout.write(f"came back {frames == len(numbers)}\\n")  # whole, whatever other threads write
        return frames
    if "score_files" in sys.argv:
        hangs.wait(60)  # else the other read may not have begun, and never does
        raise ReadError("the share is gone")
    return read(self, numbers, targets)


RawFile.read = hang
"""

SCORED = """
import vkssim
raw = vkssim.RawDescription(int(sys.argv[4]), int(sys.argv[5]), "420", 8)
try:
    vkssim.score_files(*sys.argv[2:4], raw=raw, features="float_psnr", backend=sys.argv[6])
except ReadError as error:
    print(error, len(error.report.frames) > 0)
stuck = [thread for thread in threading.enumerate() if thread.name.startswith("vkssim-read")]
print(len(stuck) > 0)
if sys.argv[7] == "back":
    back.set()
    for thread in stuck:
        thread.join()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hanging")
    for name in ("ref.yuv", "dis.yuv"):
        write(folder / name, raw_bytes(LUMA) * FRAMES)
    write(folder / "manifest.csv", b"reference,distorted\nref.yuv,dis.yuv\nref.yuv,ref.yuv\n")
    return folder


@pytest.mark.parametrize(("backend", "end"), [("cpu", "never"), ("vulkan", "never"), ("vulkan", "back")])
def test_a_read_that_hangs_holds_up_no_error(folder: Path, backend: str, end: str) -> None:
    """Nor the end of the process; and where it comes back after all, what it reads into is still there."""
    height, width = LUMA.shape[1:]
    words = ("score_files", str(folder / "ref.yuv"), str(folder / "dis.yuv"), str(width), str(height), backend, end)
    process = python_process("-c", HANGING + SCORED, *words)
    assert process.returncode == 0, process.stderr.decode()
    told = process.stdout.decode().splitlines()
    assert told[:2] == ["the share is gone True", "True"]
    assert set(told[2:]) == ({"came back True"} if end == "back" else set())


def test_jobs_of_several_threads_stay_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if they all come before the thread is there: a worker is used by one thread alone."""

    class Slow(threading.Thread):
        def __init__(self, **how: Any) -> None:
            time.sleep(0.05)
            super().__init__(**how)

    pool, start = ThreadPool(1, "one"), threading.Barrier(4)

    def submit() -> int:
        start.wait(PATIENCE)
        return pool.submit(lambda: time.sleep(0.05) or threading.get_ident()).result(PATIENCE)

    with ThreadPoolExecutor(4) as others:
        monkeypatch.setattr(thread_pool, "threading", SimpleNamespace(**{**vars(threading), "Thread": Slow}))
        found = {future.result() for future in [others.submit(submit) for _ in range(4)]}
    assert pool.close()
    assert len(found) == 1


def test_a_worker_in_a_read_that_hangs_is_closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops at what it is at, once that comes back."""
    hangs, back, read = threading.Event(), threading.Event(), RawFile.read

    def hang(self: RawFile, *what: Any) -> int:
        hangs.set()
        back.wait()
        return read(self, *what)

    monkeypatch.setattr(RawFile, "read", hang)
    monkeypatch.setattr(thread_pool, "END_TIMEOUT_S", 0.1)
    engine = DevicePool(WorkerSpec("cpu", None, "cpu", "cpu", workers=2))
    clips = Clips(str(folder / "ref.yuv"), str(folder / "dis.yuv"), describe(LUMA))
    worker, _ = engine.workers()
    future = worker.submit(Task((Part(0, clips),), ScoreOptions(("float_ssim=scale=1",))), lambda _job, _event: None)
    assert hangs.wait(PATIENCE)
    engine.close()
    assert not future.done()
    back.set()
    assert isinstance(future.exception(PATIENCE), TaskStoppedError)


@pytest.mark.parametrize("command", ["score", "batch"])
def test_a_read_that_hangs_holds_up_no_signal(folder: Path, tmp_path: Path, command: str) -> None:
    clips = ["-r", str(folder / "ref.yuv"), "-d", str(folder / "dis.yuv")]
    what = clips if command == "score" else [str(folder / "manifest.csv")]
    words = [command, *what, *raw_flags(LUMA), *TINY, "-q", "-o", str(tmp_path / "o.csv")]
    code = f"{HANGING}\nfrom vkssim.__main__ import run\nrun()\n"
    process = start_program(sys.executable, "-c", code, *words, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "hangs\n"
        process.send_signal(signal.SIGTERM)
        told = process.communicate(timeout=PATIENCE)[1]
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGTERM, told
    assert "stopped" in told
    assert "Traceback" not in told
    if command == "score":
        assert 0 < (tmp_path / "o.csv").read_text().count("\n") < FRAMES
