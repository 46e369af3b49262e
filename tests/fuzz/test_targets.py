"""Every target on its corpus, and on what hypothesis makes of it. `tests/stress/fuzz` goes further, led by coverage."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .targets import TARGETS, inputs

EXAMPLES = {"container": 40, "command_line": 40, "tables": 40, "reports": 60, "y4m": 100, "raw": 100}
"""Of targets that take their time; the others get MANY."""

MANY = 200
LONGEST_SEED = 1 << 13


@st.composite
def damaged(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """An input of the corpus with some bytes overwritten, taken out or put in, or cut short."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        removed, added = draw(st.integers(0, 8)), draw(st.binary(max_size=8))
        data[start : start + removed] = added
    end = draw(st.none() | st.integers(0, len(data)))
    return bytes(data[:end])


@pytest.mark.parametrize("name", TARGETS)
def test_corpus(name: str) -> None:
    for path in inputs(name):
        try:
            TARGETS[name](path.read_bytes())
        except Exception as error:
            error.add_note(f"the input is {path}")
            raise


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs(name: str) -> None:
    seeds = [data for data in (path.read_bytes() for path in inputs(name)) if len(data) <= LONGEST_SEED]

    @settings(
        max_examples=EXAMPLES.get(name, MANY),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged(seeds))
    def check(data: bytes) -> None:
        TARGETS[name](data)

    check()
