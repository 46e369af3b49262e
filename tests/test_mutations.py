"""The table of mutations covers every shader; tests/stress/mutate runs it, and names entries that no longer match a source."""

from __future__ import annotations

import re
from pathlib import Path

from vkssim.shaders.interface import INTERFACES

from .stress.mutations import GATE, MUTATIONS

SHADERS = Path(__file__).resolve().parent.parent / "shaders"
GENERATED = {"constants.glsl", "integer_constants.glsl"}
ONLY_CHOOSE = {"format.glsl", "samples.glsl", "window.glsl", "map.glsl"}
"""Files without arithmetic of a score."""


def _parts(path: Path) -> set[str]:
    """Return the names of all files that a shader includes, however deep."""
    found = set(re.findall(r'^#include "(\w+\.glsl)"', path.read_text("utf-8"), re.MULTILINE)) - GENERATED
    return found.union(*(_parts(SHADERS / "include" / name) for name in found))


def test_every_shader_has_a_mutation_and_every_part_of_a_scoring_one() -> None:
    """The gate catches those that score. Losses score no clip, and the gate has no surfaces: other tests check these."""
    for stem in INTERFACES:
        scores = not stem.startswith("loss_") and stem != "deinterleave"
        mutated = {Path(mutation.file).name for mutation in MUTATIONS if mutation.check == GATE or not scores}
        parts = _parts(SHADERS / f"{stem}.comp")
        assert mutated & {f"{stem}.comp", *parts}, stem
        assert not scores or parts - ONLY_CHOOSE <= mutated, stem
