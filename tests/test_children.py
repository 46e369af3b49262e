"""Children that encode: what they return, raise and leave, and what becomes of one that stands still."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
from pathlib import Path

import pytest

from .support import children
from .support.children import ChildError, in_child


@in_child
def _written(path: Path, *, stands_still: int = 0) -> int:
    """Count the calls in a file; the first ones stand still, as an encoder did."""
    with path.open("a") as file:
        file.write("x")
    calls = path.stat().st_size
    if calls <= stands_still:
        signal.pause()
    return calls


def test_every_function_that_encodes_may_use_a_child() -> None:
    encodes = re.compile(r'\.add_stream\(|CodecContext\.create\([^)]*"w"\)')
    texts = {path.name: path.read_text() for path in Path(__file__).parent.rglob("*.py")}
    encoding = {name: text for name, text in texts.items() if encodes.search(text)}
    assert "encoding.py" in encoding
    assert [name for name, text in encoding.items() if "@in_child" not in text] == []


def test_a_child_returns_its_result_or_its_error(tmp_path: Path) -> None:
    @in_child
    def refused() -> None:
        raise ValueError(os.getpid())

    @in_child
    def crashed() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    assert _written(tmp_path / "file") == 1
    with pytest.raises(ValueError, match=r"\d") as caught:
        refused()
    assert caught.value.args != (os.getpid(),)
    with pytest.raises(ChildError, match=r"crashed, exit code -9"):
        crashed()


def test_an_encoder_that_stands_still_holds_up_no_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "LIMIT", 1.0)
    assert _written(tmp_path / "once", stands_still=1) == 2
    with pytest.raises(ChildError, match=r"_written: 2 children did not end within 1 s each"):
        _written(tmp_path / "always", stands_still=9)
    assert not multiprocessing.active_children()
