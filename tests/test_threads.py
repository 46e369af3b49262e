"""Many at a time: scorers in threads and in processes, on one device, give the bits that they give alone."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import vkssim
from vkssim import RawDescription, Scorer, score_files
from vkssim.backends.cpu import CpuBackend
from vkssim.errors import FrameError
from vkssim.host import instance
from vkssim.host.instance import Instance, shared_instance
from vkssim.search import recipe
from vkssim.search.source import Source
from vkssim.utils import ffmpeg_log

from .in_processes import FEATURE, score
from .support.clips import raw_bytes, write
from .support.commands import python_process
from .support.pictures import clip

SIZES = (40, 32), (40, 32), (57, 43), (64, 50)
AT_A_TIME = 4


@pytest.fixture(scope="module")
def alone() -> list[list[str]]:
    return [score(size) for size in SIZES]


def _at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Return the results of calls, each on a thread of its own that starts when all are ready."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_scorers_in_threads(alone: list[list[str]]) -> None:
    """Two rounds: devices are opened and closed while others score."""
    found = _at_once(*(partial(lambda size: [score(size), score(size)], size) for size in SIZES))
    assert found == [[scores, scores] for scores in alone]


def test_files_in_threads(tmp_path: Path) -> None:
    clips = [clip(9, 45, 50), clip(9, 45, 50, seed=1)]
    paths = [write(tmp_path / f"{number}.yuv", raw_bytes(luma)) for number, luma in enumerate(clips)]

    def run(first: int, second: int) -> list[str]:
        raw = RawDescription(50, 45, "420", 8)
        report = score_files(paths[first], paths[second], raw=raw, features=FEATURE)
        return [frame.metrics["float_ssim"].hex() for frame in report.frames]

    pairs = [(0, 1), (1, 0), (0, 0), (0, 1)]
    assert _at_once(*(partial(run, *pair) for pair in pairs)) == [run(*pair) for pair in pairs]


def test_array_functions_in_threads() -> None:
    """They share the engines that are kept open, also for calls of different kinds."""
    stacks = [clip(3, height, width) for width, height in SIZES]
    calls: list[Callable[[], Any]] = [
        *(partial(vkssim.ssim, stack, stack[::-1], window="uniform8") for stack in stacks),
        *(partial(vkssim.ssim_and_grad, stack, stack[::-1], reduction="none") for stack in stacks),
    ]
    expected = [call() for call in calls]
    for found, values in zip(_at_once(*calls), expected, strict=True):
        for one, other in zip(found, values, strict=True):
            assert np.array_equal(one, other)


def test_threads_that_come_first_get_one_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one each, of which all but the last would be left behind."""
    instance.shared_instances.clear()
    made: list[Instance] = []
    create = Instance._create

    def slow(self: Instance) -> Any:
        made.append(self)
        threading.Event().wait(0.05)  # long enough for the others to come
        return create(self)

    before = shared_instance()
    instance.shared_instances.clear()
    monkeypatch.setattr(Instance, "_create", slow)
    found = _at_once(*[shared_instance] * AT_A_TIME)
    assert len(made) == 1
    assert found == made * AT_A_TIME
    before.close()


# -- decoders, while FFmpeg's messages are heard ------------------------------------------------------------------------

CLIP = Path(__file__).resolve().parents[1] / "fixtures" / "bbb_576x324_ref.mp4"

LET_GO = """
import faulthandler, gc, sys

faulthandler.dump_traceback_later(120, exit=True)
from vkssim.utils import ffmpeg_log
from vkssim.search.encode import EncodedSample, encoded_pairs
from vkssim.search.recipe import EncoderSpec, make_recipe
from vkssim.search.source import Sample
from vkssim.search.source import Source

ffmpeg_log.listen()
for _ in range(15):
    clip = Source(sys.argv[1])
scan = clip.scan()
recipe = make_recipe(EncoderSpec("libx264", "preset=ultrafast"), clip.facts)
for _ in range(8):
    pairs = encoded_pairs(lambda: clip.frames(0, 12, scan), Sample(0, 12), recipe, 10, EncodedSample())
    next(pairs)
    ring = [pairs]
    ring.append(ring)
    del pairs, ring
    gc.collect()
print("all let go of")
"""


def test_decoders_that_are_let_go_of_stop_their_threads(tmp_path: Path) -> None:
    """The threads of a search decode with threads, a clip and its encode, also if the garbage is collected."""
    process = python_process(write(tmp_path / "script.py", LET_GO.encode()), str(CLIP))
    assert (process.returncode, process.stdout.strip()) == (0, b"all let go of"), process.stderr.decode()


def test_a_search_that_begins_leaves_a_decoder_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clip is opened while the search tries its encoder, and goes on after that."""
    facts = Source(str(CLIP)).facts
    before = av.logging.get_level()  # None, unless an earlier test has left a clip open whose thread does not end

    @contextmanager
    def opened() -> Iterator[None]:
        ffmpeg_log.listen()
        yield

    monkeypatch.setattr(recipe, "ordinary_priority", opened)
    recipe.make_recipe(recipe.EncoderSpec(), facts)
    try:
        assert av.logging.get_level() is not None
        assert not av.logging.get_skip_repeated()
    finally:
        ffmpeg_log.leave()
    assert av.logging.get_level() == before


# -- one scorer, two threads ------------------------------------------------------------------------------------------


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """The CPU backend says by the first event that it is at work, and goes on after the second."""
    working, go_on = threading.Event(), threading.Event()
    submit = CpuBackend.submit

    def held(self: CpuBackend, *arguments: Any) -> None:
        working.set()
        go_on.wait(30)
        submit(self, *arguments)

    monkeypatch.setattr(CpuBackend, "submit", held)
    return working, go_on


FRAME = clip(1)[0]


def test_two_threads_in_one_scorer_are_refused(busy: tuple[threading.Event, threading.Event]) -> None:
    working, go_on = busy
    with Scorer(32, 24, bits=8, features="float_ssim", backend="cpu") as scorer, ThreadPoolExecutor(1) as pool:
        first = pool.submit(scorer.feed, FRAME, FRAME)
        assert working.wait(30)
        for call in (lambda: scorer.feed(FRAME, FRAME), scorer.flush, scorer.reserve, scorer.commit):
            with pytest.raises(FrameError, match="another thread is using this scorer"):
                call()
        go_on.set()
        scores = [*first.result(), *scorer.feed(FRAME, FRAME), *scorer.flush()]
    assert [frame.index for frame in scores] == [0, 1], "what was refused left nothing behind"


def test_closing_waits_for_the_thread_that_scores(busy: tuple[threading.Event, threading.Event]) -> None:
    working, go_on = busy
    scorer = Scorer(32, 24, bits=8, features="float_ssim", backend="cpu")
    with ThreadPoolExecutor(2) as pool:
        fed = pool.submit(scorer.feed, FRAME, FRAME)
        assert working.wait(30)
        closed = pool.submit(scorer.close)
        assert not closed.done()
        go_on.set()
        assert [frame.metrics["float_ssim"] for frame in fed.result()] == [1.0]
        closed.result()
    with pytest.raises(FrameError, match="the scorer is closed"):
        scorer.feed(FRAME, FRAME)


# -- processes --------------------------------------------------------------------------------------------------------


def test_spawned_processes_on_one_device(alone: list[list[str]]) -> None:
    """Beside a device that is open here and stays so."""
    with Scorer(32, 24, bits=8, features=FEATURE) as scorer, multiprocessing.get_context("spawn").Pool(2) as pool:
        before = list(scorer.score([(FRAME, FRAME)]))
        assert pool.map(score, SIZES, chunksize=1) == alone
        after = list(scorer.score([(FRAME, FRAME)]))
        assert [frame.metrics for frame in after] == [frame.metrics for frame in before]
