"""The table of mutations is held to the sources that it was taken from; tests/stress/mutate runs it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from vkssim.shaders.interface import INTERFACES

from .stress.mutations import GATE, MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parent.parent
SHADERS = ROOT / "shaders"

SCORING = {stem for stem in INTERFACES if not stem.startswith("loss_")} - {"deinterleave"}
"""The shaders that the gate runs. Losses score no clip, and the gate has no surfaces: other tests check these."""

by_name = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)


@by_name
def test_the_text_occurs_once(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text("utf-8")
    assert text.count(mutation.old) == 1, f"{mutation.file} has {mutation.old!r} {text.count(mutation.old)} times"
    assert mutation.new != mutation.old


@by_name
def test_the_check_exists(mutation: Mutation) -> None:
    if mutation.check == GATE:
        return
    file, _, function = mutation.check.partition("::")
    assert re.search(rf"^def {function}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), mutation.check


def test_names_are_told_apart() -> None:
    assert [name for name, count in Counter(mutation.name for mutation in MUTATIONS).items() if count > 1] == []


def test_every_shader_has_a_mutation_and_the_gate_catches_those_that_score() -> None:
    checks: dict[str, set[bool]] = {path.stem: set() for path in SHADERS.glob("*.comp")}
    for stem, found in checks.items():
        own = {f"{stem}.comp", *(f"include/{name}.glsl" for name in _includes(SHADERS / f"{stem}.comp"))}
        found |= {mutation.check == GATE for mutation in MUTATIONS if mutation.file.removeprefix("shaders/") in own}
    assert set(checks) == set(INTERFACES)
    assert [stem for stem, found in checks.items() if (stem in SCORING) not in found] == []


def test_every_part_of_the_scoring_shaders_is_reached() -> None:
    """Every file that computes something for a score has a mutation that the gate catches."""
    only_choose = {"format", "samples", "window", "keep"}  # no arithmetic of a score
    included = {name for stem in SCORING for name in _includes(SHADERS / f"{stem}.comp")} - {"constants"}  # a Python file
    reached = {Path(mutation.file).stem for mutation in MUTATIONS if mutation.check == GATE}
    assert included - only_choose <= reached, included - only_choose - reached


def _includes(path: Path) -> set[str]:
    """The stems of all files that a shader includes, however deep."""
    found: set[str] = set()
    for name in re.findall(r'^#include "(\w+)\.glsl"', path.read_text("utf-8"), re.MULTILINE):
        found.add(name)
        if name != "constants":
            found |= _includes(SHADERS / "include" / f"{name}.glsl")
    return found
