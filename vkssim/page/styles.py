"""The styles of a page's lines: a colour, a dash and a marker for each, so that no two lines look alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MARKERS = (
    "M-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0Z",  # a circle
    "M-3.4-3.4h6.8v6.8h-6.8Z",  # a square
    "M0-4.6L4.4 3.2H-4.4Z",  # a triangle
    "M0-5L5 0L0 5L-5 0Z",  # a diamond
    "M0 4.6L4.4-3.2H-4.4Z",  # a triangle on its tip
    "M-3.6-3.6L3.6 3.6M-3.6 3.6L3.6-3.6",  # a cross
)
"""SVG paths around the marked point, in pixels."""

_COLOURS = 6  # colours of page.css: c0 to c5
_DASHES = ("", "7 5", "1 4")
_CHEAP_DASHES = 4  # dashes with a short period; markers change before lines get longer dashes


@dataclass(frozen=True)
class LineStyle:
    """The class of a line's colour in page.css, its dashes as SVG has them, and its marker by its number in `MARKERS`."""

    classes: str
    dashes: str
    marker: int


def line_style(number: int) -> LineStyle:
    """Return the style of the line with a number. No two are the same, and neighbours differ in colour and in marker.

    The dashes change after every six lines, then the pairing of markers and colours; after all markers, dashes get longer.
    """
    block, colour = divmod(number, _COLOURS)
    round_of_dashes, dash = divmod(block, _CHEAP_DASHES)
    longer, turn = divmod(round_of_dashes, len(MARKERS))
    return LineStyle(f"c{colour}", _dashes(dash + _CHEAP_DASHES * longer), (colour + turn) % len(MARKERS))


def page_styles(count: int, ladders: Sequence[Sequence[int]]) -> tuple[list[LineStyle], list[LineStyle]]:
    """Return the styles of `count` clips and of ladders, so that a colour or a symbol stands for one thing on the whole page.

    `ladders` has the clips of each ladder. A ladder has a colour and dashes, which are those of its clips; each of its clips
    has a marker. Without ladders, every clip has a style of its own.
    """
    if not ladders:
        return [line_style(number) for number in range(count)], []
    rungs = {clip: (number, place) for number, clips in enumerate(ladders) for place, clip in enumerate(clips)}
    alone = (clip for clip in range(count) if clip not in rungs)
    rungs |= {clip: (len(ladders) + number, 0) for number, clip in enumerate(alone)}
    blocks = -(-(max(ladder for ladder, _ in rungs.values()) + 1) // _COLOURS)

    def style(ladder: int, place: int) -> LineStyle:
        again, marker = divmod(place, len(MARKERS))
        return LineStyle(f"c{ladder % _COLOURS}", _dashes(ladder // _COLOURS + blocks * again), marker)

    return [style(*rungs[clip]) for clip in range(count)], [style(number, 0) for number in range(len(ladders))]


def _dashes(number: int) -> str:
    """Return the lengths of dashes and gaps in pixels: none, dashes, dots, and then a dash with more and more dots."""
    return _DASHES[number] if number < len(_DASHES) else "9 4" + " 1 4" * (number - len(_DASHES) + 1)
