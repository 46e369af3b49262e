"""The border rule of docs/adr/0001: the edge sample is repeated, and the reflection has the period 2n."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.reference.border import mirror


@pytest.mark.parametrize(("index", "read"), [(-1, 0), (-2, 1), (0, 0), (6, 6), (7, 6), (8, 5)])
def test_the_edge_sample_is_repeated(index: int, read: int) -> None:
    assert mirror(np.array([index]), 7)[0] == read


def test_reflection_has_period_2n() -> None:
    """The period matters for images that are smaller than the filter."""
    assert mirror(np.arange(-6, 9), 3).tolist() == [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1, 2]
