"""The clips of the next pair are opened while those of this one are scored."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import vkssim
from vkssim.engine import source_cache
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.ranges import FrameRange
from vkssim.engine.source_cache import SourceCache
from vkssim.errors import InputError
from vkssim.frames.decode.container import ContainerFile

from ..ladder.ladders import encode
from ..support.clips import write, y4m_bytes
from ..support.pictures import clip
from ..support.waiting import PATIENCE, until

FEATURE = "float_psnr"
OPTIONS = ScoreOptions((FEATURE,))


@pytest.fixture
def pairs(tmp_path: Path) -> list[tuple[str, str]]:
    for name in ("a", "b", "c"):
        for crf in (10, 40):
            encode(tmp_path / f"{name}{crf}.mp4", clip(8, 48, 64, seed=ord(name)), crf=str(crf))
    return [(str(tmp_path / f"{name}10.mp4"), str(tmp_path / f"{name}40.mp4")) for name in ("a", "b", "c")]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Each container that was opened, and whether a thread did that."""
    made: list[tuple[str, bool]] = []
    begin = ContainerFile.__init__

    def note(self: ContainerFile, path: str, *arguments: Any, **options: Any) -> None:
        made.append((Path(path).name, threading.current_thread() is not threading.main_thread()))
        begin(self, path, *arguments, **options)

    monkeypatch.setattr(ContainerFile, "__init__", note)
    return made


def test_each_clip_is_opened_once_and_ahead(pairs: list[tuple[str, str]], opened: list[tuple[str, bool]]) -> None:
    alone = {pair: vkssim.score_files(*pair, features=[FEATURE], backend="cpu").frames for pair in pairs}
    opened.clear()
    for outcome in vkssim.score_many(pairs, features=[FEATURE], backend="cpu"):
        assert outcome.scores().frames == alone[outcome.reference, outcome.distorted]
    assert Counter(name for name, _ in opened) == Counter(Path(path).name for pair in pairs for path in pair)
    assert {name for name, ahead in opened if not ahead} == {"a10.mp4", "a40.mp4"}


def test_a_clip_that_cannot_be_opened_ahead_fails_at_its_turn(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.mp4", b"\0" * 64)
    outcomes = list(vkssim.score_many([pairs[0], (bad, pairs[1][1]), pairs[2]], features=[FEATURE], backend="cpu"))
    errors = {outcome.number: outcome.error for outcome in outcomes}
    assert isinstance(errors.pop(1), InputError)
    assert errors == {0: None, 2: None}


def _clips(folder: Path, name: str) -> Clips:
    path = write(folder / f"{name}.y4m", y4m_bytes(clip(2)))
    return Clips(path, path)


def _open_files(folder: Path) -> Counter[str]:
    """Return how often each file of a folder is open in this process."""
    paths = [link.resolve() for link in Path("/proc/self/fd").iterdir()]
    return Counter(path.stem for path in paths if path.parent == folder)


@pytest.mark.parametrize("end", ["another task", "no task", "the end"])
def test_clips_that_no_task_wants_are_closed(tmp_path: Path, end: str) -> None:
    first, second, sources = _clips(tmp_path, "a"), _clips(tmp_path, "b"), SourceCache()
    sources.open_ahead(first, OPTIONS)
    assert sources._open is not None
    opening = sources._open[1]
    if end == "another task":
        with sources.use(second, FrameRange(), OPTIONS):
            pass
    elif end == "no task":
        sources.close_unused()
        assert sources._open is None
    sources.close()
    assert opening.exception(PATIENCE) is None
    sources.open_ahead(first, OPTIONS)  # a closed worker opens nothing
    assert sources._open is None
    until(lambda: not _open_files(tmp_path))  # the thread that opened them closes them


def test_a_task_gets_the_clips_that_were_opened_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clips, sources = _clips(tmp_path, "a"), SourceCache()
    sources.open_ahead(clips, OPTIONS)
    monkeypatch.setattr(source_cache, "open_sources", pytest.fail)
    with sources.use(clips, FrameRange(), OPTIONS) as (reference, _):
        assert reference.info.path == clips.reference
        assert _open_files(tmp_path) == {"a": 2}
    assert not _open_files(tmp_path)
