"""Test the identity of inputs: other content makes another input, whatever its size and change time."""

from __future__ import annotations

import os
import shutil
import stat
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from vkssim.storage import inputs as input_state
from vkssim.storage.inputs import input_states

from ..support.buckets import put_in_place
from ..support.clips import write

HOUR = 3600


def _written(path: Path, data: bytes) -> str:
    """A file of the same time of change whatever it holds, as `cp -p`, rsync and tar leave it."""
    name = write(path, data)
    os.utime(path, (HOUR, HOUR))
    return name


MADE_UP = SimpleNamespace(st_mtime_ns=1, st_ctime_ns=1, st_ino=7, st_size=100_000, st_mode=stat.S_IFREG)
"""The status of a file if the file system makes inodes and times up."""


@pytest.mark.parametrize(
    ("made_up", "place"),
    [*((False, place) for place in (0, 5000, 50_000, 99_999)), *((True, place) for place in (0, 33_000, 66_000, 99_999))],
)
def test_a_file_written_anew_is_another(tmp_path: Path, made_up: bool, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same size, with the time of change of before. If the status is made up, only samples of the content tell."""
    if made_up:
        monkeypatch.setattr(input_state, "os", SimpleNamespace(**{**vars(os), "stat": lambda _path: MADE_UP}))
    data = bytearray(100_000)
    path = _written(tmp_path / "clip", bytes(data))
    before = input_states(path)
    assert input_states(path) == before
    data[place] = 1
    time.sleep(0.02)  # the clock of the file system ticks every few milliseconds
    _written(tmp_path / "clip", bytes(data))
    assert input_states(path) != before


def test_a_file_put_in_the_place_of_another(tmp_path: Path) -> None:
    path = _written(tmp_path / "clip", b"a" * 100)
    before = input_states(path)
    _written(tmp_path / "other", b"b" * 100)
    shutil.move(tmp_path / "other", tmp_path / "clip")
    assert input_states(path) != before
    assert input_states(f"file://{path}")[0][1:] == input_states(path)[0][1:]


def test_small_and_empty_files_and_what_is_no_file(tmp_path: Path) -> None:
    for size in (0, 1, 4096, 4097):
        ((_, found, version),) = input_states(write(tmp_path / "clip", bytes(size)))
        assert (found, version is None) == (size, False)
    os.mkfifo(tmp_path / "pipe")
    assert input_states(str(tmp_path / "pipe"))[0][2] is not None
    assert input_states(str(tmp_path / "none"))[0][1:] == (None, None)


def test_a_url_of_no_known_version_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = put_in_place(monkeypatch)
    monkeypatch.setattr("vkssim.storage.urls._TAGS", ())
    bucket.pipe_file("clips/a", bytes(9000))
    before = input_states("s3://clips/a")
    assert input_states("s3://clips/a") == before
    bucket.pipe_file("clips/a", bytes(8999) + b"a")
    assert input_states("s3://clips/a") != before
