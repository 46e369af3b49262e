"""The table of mutations covers every shader; tests/stress/mutate runs it, and names entries that no longer match a source."""

from __future__ import annotations

import re
from pathlib import Path

from vkssim.shaders.interface import INTERFACES

from .stress.mutations import GATE, MUTATIONS

ROOT = Path(__file__).resolve().parent.parent
SHADERS = ROOT / "shaders"

SCORING = {stem for stem in INTERFACES if not stem.startswith("loss_")} - {"deinterleave"}
"""The shaders that the gate runs. Losses score no clip, and the gate has no surfaces: other tests check these."""


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
