"""Every target on its corpus, and on random damage to it. `tests/stress/fuzz` goes further, led by coverage."""

from __future__ import annotations

from random import Random

import pytest

from .targets import TARGETS, inputs

EXAMPLES = {"container": 40, "command_line": 40, "tables": 40, "reports": 60, "y4m": 100, "raw": 100}
"""Of targets that take their time; the others get MANY."""

MANY = 200
LONGEST_SEED = 1 << 13


def damaged(random: Random, seeds: list[bytes]) -> bytes:
    """Return an input of the corpus with some bytes overwritten, taken out or put in, or cut short.

    One place in four is the front, where an input has its choices. Half of the new bytes are those of another input, for they
    have the words that a reader knows.
    """
    data = bytearray(random.choice(seeds))
    for _ in range(random.randint(0, 4)):
        start = random.choice((0, *(random.randint(0, len(data)) for _ in range(3))))
        removed, added = random.randint(0, 8), random.randint(0, 8)
        other = random.choice(seeds)
        place = random.randint(0, len(other))
        data[start : start + removed] = random.choice((random.randbytes(added), other[place : place + added]))
    end = random.choice((None, random.randint(0, len(data))))
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
    random = Random(name)
    tried: set[bytes] = set()
    while len(tried) < EXAMPLES.get(name, MANY):
        data = damaged(random, seeds)
        if data in tried:
            continue
        tried.add(data)
        try:
            TARGETS[name](data)
        except Exception as error:
            error.add_note(f"the input is {data!r}")
            raise
