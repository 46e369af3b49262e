"""The clip that most searches have, and what is known of it."""

from __future__ import annotations

import pytest

from vkssim.clips import VideoFacts
from vkssim.search import encode
from vkssim.search.source import Source

from .clips import source


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return source(tmp_path_factory.mktemp("search") / "clip.mkv")


@pytest.fixture(scope="session")
def facts(clip: str) -> VideoFacts:
    return Source(clip).facts


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an encoder that stands still fail its test, before the test's time limit ends the worker."""
    monkeypatch.setattr(encode, "MAX_SILENCE_S", 120.0)
