"""What several tests of ladders count."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from vkssim.frames.decode.container import ContainerFile


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many frames were decoded of each file, by its name."""
    counts: Counter[str] = Counter()
    following = ContainerFile._next_frame

    def count(self: ContainerFile) -> Any:
        frame = following(self)
        counts[Path(self.info.path).name] += frame is not None
        return frame

    monkeypatch.setattr(ContainerFile, "_next_frame", count)
    return counts
