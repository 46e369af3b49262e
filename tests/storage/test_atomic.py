"""Files that are the old ones or the new ones, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from vkssim.errors import OutputError
from vkssim.storage.atomic import write_file

from ..support.commands import python_process


@pytest.mark.parametrize(
    ("nameless", "step"),
    [
        *((True, step) for step in ("fsync", "link", "chmod", "replace")),
        *((False, step) for step in ("fsync", "chmod", "replace")),
    ],
)
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))], ids=["Ctrl-C", "full"]
)
def test_whatever_fails_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool, step: str, error: BaseException
) -> None:
    """Also on systems and file systems that have no files without a name."""
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "scores.json"
    path.write_text("old")

    def fail(*_: object, **__: object) -> None:
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


KILLED = """
import os, signal, sys
from pathlib import Path
from vkssim.storage.atomic import replace_file
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
replace_file(b"new", Path(sys.argv[1]))
"""


def test_a_process_that_is_killed_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "scores.json").write_text("old")
    assert python_process("-c", KILLED, str(tmp_path / "scores.json")).returncode == -signal.SIGKILL
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("scores.json", "old")]


def test_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120 + ".json")
    write_file("new", path)
    assert path.read_text() == "new"
