"""vkssim batch on two workers: the same files as on one device, and after a kill only what is missing."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from vkssim.host.device import Device

from ..engine.running import FEATURE, are_gone, complete_ranges, ended, pause_when, resume, started
from ..support.clips import raw_bytes, raw_flags, write, y4m_bytes
from ..support.commands import fail
from ..support.journals import entries, frames, records
from ..support.pictures import clip
from ..support.waiting import until
from .ladders import encode, lossless, manifest

SIZE = 64, 96
FEW = 12
RAW = raw_flags(clip(1, *SIZE))
RESULTS = "results.parquet"
FAIL = "no.mp4", "cut.yuv", "absent.mp4"


@pytest.fixture(scope="module")
def two(device: Device) -> tuple[str, str]:
    return "--device", f"{device.info.uuid},{device.info.uuid}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest with containers, Y4M and raw clips, of which some cannot be scored, and what one device makes of it."""
    folder = tmp_path_factory.mktemp("catalogue")
    luma = clip(FEW, *SIZE)
    long = np.concatenate([luma] * 60)  # so that a run lasts after its first ranges, and can be ended then
    reference = lossless(folder / "ref.mkv", np.concatenate([luma] * 4))
    rows = [
        {"reference": reference, "distorted": encode(folder / f"{crf}.mp4", np.concatenate([luma] * 4), crf=crf, g="10")}
        for crf in ("20", "40")
    ]
    for name, data in (
        ("long_ref.y4m", y4m_bytes(long)),
        ("long_dis.y4m", y4m_bytes(long // 16 * 16)),
        ("ref.yuv", raw_bytes(long[:99])),
        ("dis.yuv", raw_bytes(long[:97] // 16 * 16)),
        ("cut.yuv", raw_bytes(long[:80])[:-7]),
        ("no.mp4", b"\0\0\0\x18ftypisom" + b"no video" * 99),
    ):
        write(folder / name, data)
    rows += [
        {"reference": "long_ref.y4m", "distorted": "long_dis.y4m"},
        {"reference": "ref.yuv", "distorted": "no.mp4"},
        {"reference": "ref.yuv", "distorted": "dis.yuv"},
        {"reference": "ref.yuv", "distorted": "cut.yuv"},
        {"reference": reference, "distorted": "absent.mp4"},
        {"reference": "ref.yuv", "distorted": "dis.yuv"},
    ]
    manifest(folder / "manifest.csv", rows)
    (folder / "one").mkdir()
    _run(folder / "one", *_words(folder))
    return folder


def _words(folder: Path, *more: str) -> list[str]:
    """For a run in the folder of its results, since they say where frames are."""
    return ["batch", str(folder / "manifest.csv"), *RAW, *FEATURE, "--frames", "frames", "-q", "-o", RESULTS, *more]


def _run(target: Path, *words: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(target)
        fail(1, "3 of 8 pairs failed", *words)


def _files(target: Path) -> dict[str, bytes]:
    """All files but journals, which have pairs in the order in which they were done."""
    found = (path for path in target.rglob("*") if path.is_file() and not path.name.endswith(".journal"))
    return {path.relative_to(target).as_posix(): path.read_bytes() for path in found}


def _scored(target: Path) -> list[str]:
    """The distorted clips in the journal, in order."""
    journal = target / "results.parquet.journal"
    return [record["distorted"] for record in records(journal)]


def test_the_same_files_as_on_one_device(folder: Path, tmp_path: Path, two: tuple[str, str]) -> None:
    _run(tmp_path, *_words(folder, *two))
    assert _files(tmp_path) == _files(folder / "one")


@pytest.mark.parametrize(("number", "devices"), [(signal.SIGKILL, 2), (signal.SIGINT, 1)])
def test_ended_it_goes_on_where_it_was(
    folder: Path, tmp_path: Path, two: tuple[str, str], number: signal.Signals, devices: int
) -> None:
    """Pairs that were done are not scored again, nor are the finished ranges of the others, on however many devices."""
    output = tmp_path / RESULTS
    process = started(*_words(folder, *two), cwd=tmp_path)
    processes = pause_when(process, lambda: len(complete_ranges(output)) > 2)
    process.send_signal(number)
    resume(processes)
    told = ended(process)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert ("pairs done; the same command continues from there" in told) == (number == signal.SIGINT)
    until(lambda: are_gone(processes))
    done, journal = _scored(tmp_path), tmp_path / "results.parquet.journal"
    kept = frames(journal)
    assert not output.exists()

    _run(tmp_path, *_words(folder, *(two if devices == 2 else ())))
    names = _scored(tmp_path)
    assert all(names.count(name) == 1 for name in done if name not in FAIL)
    written = [entry for entry in entries(journal) if "frames" in entry]
    again = Counter((entry["pair"], entry["first"] + place) for entry in written for place in range(len(entry["frames"])))
    assert kept > 0
    assert set(again.values()) == {1}, "nothing was scored twice"
    assert _files(tmp_path) == _files(folder / "one")
