"""How the lines of a page look."""

from __future__ import annotations

from itertools import pairwise

from vkssim.report.page.styles import MARKERS, line_style


def test_no_two_lines_look_alike() -> None:
    looks = {(style.colour, style.dashes, style.marker) for style in map(line_style, range(1000))}
    assert len(looks) == 1000


def test_dashes_differ_wherever_their_repetition_begins() -> None:
    """A line may begin anywhere in its dashes: none may be another one's, turned."""
    patterns = {tuple(style.dashes.split()) for style in map(line_style, range(1000))}
    turned = {frozenset(pattern[place:] + pattern[:place] for place in range(0, len(pattern), 2)) for pattern in patterns}
    assert len(turned) == len(patterns)


def test_neighbours_differ_in_colour_and_in_marker() -> None:
    styles = [line_style(number) for number in range(200)]
    for one, other in pairwise(styles):
        assert one.colour != other.colour
        assert one.marker != other.marker
    assert {style.marker for style in styles[:6]} == set(range(len(MARKERS)))
