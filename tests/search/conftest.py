"""The clip that most searches have, and what is known of it."""

from __future__ import annotations

import pytest

from vkssim.search.source import Source, SourceFacts

from .clips import source


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return source(tmp_path_factory.mktemp("search") / "clip.mkv")


@pytest.fixture(scope="session")
def facts(clip: str) -> SourceFacts:
    return Source(clip).facts
