"""Has the tests of kernels compile each of them once."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _compiled(shared_device: None) -> None:
    """The modules of this folder all use it."""
