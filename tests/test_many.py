"""vkssim.score_many: what comes of many pairs, as it comes."""

from __future__ import annotations

import multiprocessing
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import vkssim
from vkssim.engine import pools as engines
from vkssim.engine.task import Task, WorkerDiedError
from vkssim.engine.worker import Worker
from vkssim.errors import InputError, LostWorkerWarning, OptionError, VkssimError
from vkssim.host.device import Device
from vkssim.utils.progress import ProgressBar

from .engine.in_ranges import FEATURES, failed, small_ranges, told
from .frames.reading import describe
from .support.clips import raw_bytes, write
from .support.commands import python_process
from .support.pictures import clip

Pairs = list[tuple[Path | str, Path | str]]
LUMA = clip(12)
RAW = replace(describe(LUMA), allow_partial=True)


@pytest.fixture
def pairs(tmp_path: Path) -> Pairs:
    """Four pairs, of which the second cannot be scored and the third is cut off."""
    reference = tmp_path / "ref.yuv"
    write(reference, raw_bytes(LUMA))
    for name, data in (("0", raw_bytes(LUMA // 16 * 16)), ("2", raw_bytes(LUMA)[:-9]), ("3", raw_bytes(LUMA // 64 * 64))):
        write(tmp_path / name, data)
    return [(reference, str(tmp_path / str(number))) for number in range(4)]


def test_each_is_what_score_files_gives(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    small_ranges(monkeypatch)
    results = {it.number: it for it in vkssim.score_many(pairs, raw=RAW, features=FEATURES, backend="cpu")}
    assert sorted(results) == [0, 1, 2, 3]
    for number, (reference, distorted) in enumerate(pairs):
        result = results[number]
        assert (result.reference, result.distorted) == (str(reference), distorted)
        expected: object
        try:
            expected = vkssim.score_files(reference, distorted, raw=RAW, features=FEATURES, backend="cpu")
        except VkssimError as error:
            expected = error
        assert told(result.report or result.error) == told(expected)  # type: ignore[arg-type]
        assert (result.report is None) != (result.error is None)
    assert len(results[0].scores().frames) == len(LUMA)
    with pytest.raises(InputError, match="cannot be read"):
        results[1].scores()
    assert results[2].error is not None
    assert len(results[2].error.report.frames) == len(LUMA) - 1  # type: ignore[attr-defined]


def test_they_come_as_they_are_done(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is there before the last was begun."""
    begun: list[str] = []
    submit = Worker.submit
    monkeypatch.setattr(
        Worker, "submit", lambda self, task, *how: begun.append(task.clips.distorted) or submit(self, task, *how)
    )
    results = vkssim.score_many(pairs * 4, raw=RAW, features=FEATURES, backend="cpu")
    assert begun == [], "nothing is done until it is asked for"
    assert next(results).number == 0
    assert len(begun) < 4
    results.close()
    assert len(begun) < 4
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("vkssim-worker")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "none"}, "none"),
        ({"features": "float_ssim=none=1"}, "none"),
        ({"planes": "x"}, "planes"),
        ({"engine": "spark"}, "`engine` is 'spark'; it must be local or ray"),
        ({"address": "auto"}, "`address` and `software` are for `engine=ray`"),
        ({"software": True}, "`address` and `software` are for `engine=ray`"),
        ({"engine": "ray", "device": "0"}, "`device=0` is for one machine; Ray gives each worker its GPU"),
    ],
)
def test_options_are_checked_before_anything_runs(
    pairs: Pairs, monkeypatch: pytest.MonkeyPatch, options: dict[str, object], message: str
) -> None:
    monkeypatch.setattr(engines.WorkerOptions, "open", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(OptionError, match=message):
        vkssim.score_many(pairs, **options)  # type: ignore[arg-type]


def test_no_pairs() -> None:
    assert list(vkssim.score_many([], features=FEATURES, backend="cpu")) == []


def test_on_two_workers_closed_early_they_end(pairs: Pairs, device: Device) -> None:
    results = vkssim.score_many(pairs * 20, raw=RAW, features=FEATURES, device=[str(device.info.uuid)] * 2)
    assert next(results).reference == str(pairs[0][0])
    processes = multiprocessing.active_children()
    assert len(processes) == 2
    results.close()
    assert not any(process.is_alive() for process in processes)


ABANDONED = """
import sys
import vkssim

if __name__ == "__main__":
    raw = vkssim.RawDescription(*map(int, sys.argv[1:3]), "420", 8)
    results = vkssim.score_many([sys.argv[3:5]] * 20, raw=raw, features=["float_psnr"], device=[sys.argv[5]] * 2)
    print(next(results).report.pooled()["float_psnr"]["mean"])
"""


def test_on_two_workers_abandoned_they_end(pairs: Pairs, device: Device, tmp_path: Path) -> None:
    """A script ends though nobody closed what it began."""
    script = write(tmp_path / "script.py", ABANDONED.encode())
    process = python_process(script, str(RAW.width), str(RAW.height), *map(str, pairs[0]), str(device.info.uuid))
    assert (process.returncode, process.stderr) == (0, b"")


def test_a_worker_that_is_lost_is_a_warning(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    submit = Worker.submit
    failures = [WorkerDiedError("gone")]

    def dying(self: Worker, task: Task, *how: Any) -> object:
        if failures:
            return failed(failures.pop())
        return submit(self, task, *how)

    monkeypatch.setattr(Worker, "submit", dying)
    with pytest.warns(LostWorkerWarning, match=r"on cpu ended unexpectedly \(gone\); its task is tried again"):
        results = list(vkssim.score_many(pairs[:1], raw=RAW, features=FEATURES, backend="cpu"))
    assert results[0].report is not None


def test_a_bar_counts_frames_and_says_how_many_pairs_are_finished(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    said: list[str] = []
    monkeypatch.setattr(ProgressBar, "__call__", lambda _self, done, _total: seen.append(done))
    monkeypatch.setattr(ProgressBar, "say", lambda _self, text: said.append(text))
    results = list(vkssim.score_many(pairs, raw=RAW, features=FEATURES, backend="cpu", progress=True))
    assert seen == sorted(seen)
    reports = [one.report or getattr(one.error, "report", None) for one in results]
    assert seen[-1] == sum(len(report.frames) for report in reports if report is not None)
    assert said == [f"{done} of 4 pairs are finished" for done in range(1, 5)]
