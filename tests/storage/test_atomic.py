"""Files that are the old ones or the new ones, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from vkssim.errors import OutputError
from vkssim.maps.frames import png
from vkssim.storage.atomic import write_file


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))], ids=["Ctrl-C", "full"]
)
def test_whatever_fails_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "scores.json"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OutputError if isinstance(error, OSError) else KeyboardInterrupt):
        write_file("new", path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("scores.json", "old")]


def test_it_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    for step in ("fsync", "replace"):
        call = getattr(os, step)
        monkeypatch.setattr(os, step, lambda *what, step=step, call=call: (steps.append(step), call(*what)))
    write_file("new", tmp_path / "scores.json")
    assert steps == ["fsync", "replace", "fsync"], "the file, its name, the folder"


def test_maps_are_replaced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "map.png"
    path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))))
        with pytest.raises(OutputError, match=r"map\.png cannot be written: Disk quota exceeded"):
            png(path, np.zeros((4, 4, 3), np.uint8))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("map.png", "old")]


def test_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120 + ".json")
    write_file("new", path)
    assert path.read_text() == "new"
