"""Turn and mirror decoded pictures by the display matrix of their stream."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...types import CHROMA_STEPS, Planes
from ..info import VideoInfo


@dataclass(frozen=True)
class Orientation:
    """A step that transposes pictures, then mirrors them top to bottom, then left to right."""

    transposed: bool
    upside_down: bool
    mirrored: bool

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return the facts about the turned stream. Chroma whose turned format has no name (4:1:1) is left out."""
        after = replace(before, notes=(*before.notes, f"turned as its display matrix says: {self}"))
        if not self.transposed:
            return after
        steps = CHROMA_STEPS[before.chroma]
        turned = None if steps is None else (steps[1], steps[0])
        chroma = next((name for name, its_steps in CHROMA_STEPS.items() if its_steps == turned), "400")
        aspect = None if before.sample_aspect is None else 1 / before.sample_aspect
        return replace(after, width=before.height, height=before.width, chroma=chroma, sample_aspect=aspect)

    def __call__(self, planes: Planes) -> Planes:
        """Return the turned planes, as views."""
        rows, columns = (slice(None, None, -1 if flipped else 1) for flipped in (self.upside_down, self.mirrored))
        return tuple((plane.T if self.transposed else plane)[rows, columns] for plane in planes)

    def __str__(self) -> str:
        rotations = {
            (False, True, True): "by 180 degrees",
            (True, True, False): "by 90 degrees counter-clockwise",
            (True, False, True): "by 90 degrees clockwise",
        }
        changes = {"transposed": self.transposed, "upside down": self.upside_down, "mirrored": self.mirrored}
        words = ", ".join(name for name, done in changes.items() if done)
        return rotations.get((self.transposed, self.upside_down, self.mirrored), words)


def by_degrees(rotation: int) -> Orientation | None:
    """Return a counter-clockwise rotation by -180 to 180 degrees; None for 0 and for any other than a multiple of 90."""
    turns = {90: (True, True, False), -90: (True, False, True), 180: (False, True, True), -180: (False, True, True)}
    return Orientation(*turns[rotation]) if rotation in turns else None


def orientation(display_matrix: bytes) -> Orientation | None:
    """Return the orientation of a display matrix (ISO/IEC 14496-12, 9 int32).

    Return None for the identity, and for rotations by other than a multiple of 90 degrees. A decoded point (x, y) is shown at
    (a x + c y, b x + d y), where the matrix begins with a b u c d v.
    """
    a, b, _, c, d, *_ = (int(value) for value in np.frombuffer(display_matrix, np.int32))
    if b == c == 0 and a and d:
        turned = Orientation(False, d < 0, a < 0)
    elif a == d == 0 and b and c:
        turned = Orientation(True, b < 0, c < 0)
    else:
        return None
    return turned if turned != Orientation(False, False, False) else None
