"""Children that encode: what they return, raise and leave, and what becomes of one that stands still or crashes."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from .support import children
from .support.children import ChildError, in_child


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@in_child
def _written(path: Path, fault: Callable[[], None], faulty: int = 0) -> int:
    """Count the calls in a file; the first ones have a fault, as encoders had."""
    with path.open("a") as file:
        file.write("x")
    calls = path.stat().st_size
    if calls <= faulty:
        fault()
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

    assert _written(tmp_path / "file", _crash) == 1
    with pytest.raises(ValueError, match=r"\d") as caught:
        refused()
    assert caught.value.args != (os.getpid(),)


@pytest.mark.parametrize(("fault", "told"), [(signal.pause, "did not end within 1 s"), (_crash, "crashed, exit code -9")])
def test_a_second_child_is_tried(fault: Callable[[], None], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "LIMIT", 1.0)
    assert _written(tmp_path / "once", fault, faulty=1) == 2
    with pytest.raises(ChildError, match=told):
        _written(tmp_path / "always", fault, faulty=9)
    assert not multiprocessing.active_children()
