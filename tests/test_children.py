"""Children that encode: what they return, raise and leave, and what becomes of one that stands still or crashes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import signal
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from .support import children
from .support.children import OF_A_FRAME, ChildError, Resident, in_child, pickled
from .support.coded.clip import marked


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


@pytest.fixture(params=["resident", "of its own"])
def resident(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Resident | None]:
    """A child that stays, for this test alone, or None: each call has a child of its own."""
    started = Resident() if request.param == "resident" else None
    monkeypatch.setattr(children, "resident", started)
    yield started
    if started is not None:
        started.close()


@in_child
def _refused() -> None:
    raise ValueError(os.getpid())


def test_a_child_returns_its_result_or_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resident: Resident | None
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _written(Path("file"), _crash) == 1
    assert _written(Path("file"), _crash) == 2
    assert (tmp_path / "file").read_text() == "xx", "the folder is that of the tests"
    numbers: set[int] = set()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"\d") as caught:
            _refused()
        numbers.update(caught.value.args)
    assert os.getpid() not in numbers
    assert len(numbers) == (1 if resident else 2), "the one that stays works on after an error"


def test_what_cannot_be_sent_has_a_child_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function within another, and one that is not there in the child."""
    started = Resident()
    monkeypatch.setattr(children, "resident", started)

    def number() -> int:
        return os.getpid()

    within = in_child(number)
    number.__qualname__ = number.__name__ = "of_a_test"
    named = in_child(number)
    monkeypatch.setattr(sys.modules[__name__], "of_a_test", named, raising=False)
    numbers = [within(), named(), named()]
    assert len({*numbers, os.getpid()}) == 4
    started.close()


@pytest.mark.parametrize("name", ["yuv420p", "yuvj420p", "gbrp10le", "rgb24", "gray", "nv12", "yuv420p10le"])
def test_frames_are_sent_as_they_are(name: str, tmp_path: Path) -> None:
    """Of a width that rows are padded for, with what frames state beside their samples."""
    noise = np.random.default_rng(1).integers(0, 255, (34, 2048), np.uint8)
    frame = av.VideoFrame(66, 34, name)
    for plane in frame.planes:
        samples: Any = plane
        np.frombuffer(samples, np.uint8).reshape(-1, plane.line_size)[:] = noise[: plane.height, : plane.line_size]
    frame.pts, frame.time_base, frame.color_range, frame.colorspace = 7, Fraction(1, 12800), 2, 1
    frame.color_primaries, frame.color_trc, frame.pict_type = 9, 16, 1
    data = pickled(frame)
    assert data is not None
    sent = pickle.loads(data)
    np.testing.assert_array_equal(sent.to_ndarray(), frame.to_ndarray())
    for fact in (*OF_A_FRAME, "width", "height"):
        assert getattr(sent, fact) == getattr(frame, fact), fact
    (interlaced,) = marked([frame], "tff") if name == "yuv420p" else [None]
    assert interlaced is None or pickled(interlaced) is None


@pytest.mark.parametrize(("fault", "told"), [(signal.pause, "did not end within 1 s"), (_crash, "crashed, exit code -9")])
def test_a_second_child_is_tried(
    fault: Callable[[], None], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resident: Resident | None
) -> None:
    monkeypatch.setattr(children, "LIMIT", 1.0)
    assert _written(tmp_path / "once", fault, faulty=1) == 2
    with pytest.raises(ChildError, match=told):
        _written(tmp_path / "always", fault, faulty=9)
    assert not multiprocessing.active_children()


def test_the_resident_says_how_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is gone then."""
    monkeypatch.setattr(children, "LIMIT", 1.0)
    for fault, told in ((signal.pause, "did not end within 1 s"), (_crash, "crashed, exit code -9")):
        started = Resident()
        with pytest.raises(ChildError, match=told):
            started.call(pickle.dumps((os.getcwd(), fault)), fault)
        with pytest.raises(ProcessLookupError):
            os.kill(started.process, 0)
