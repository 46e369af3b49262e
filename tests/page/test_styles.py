"""Test the look of a page: lines that can be distinguished, and colours that can be read."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from vkssim import page
from vkssim.page.charts import MARKERS, line_style, page_styles


def test_no_two_lines_look_alike() -> None:
    looks = {(style.classes, style.dashes, style.marker) for style in map(line_style, range(1000))}
    assert len(looks) == 1000


def test_dashes_differ_wherever_their_repetition_begins() -> None:
    """A line may begin anywhere in its dashes, so no pattern may be a rotation of another."""
    patterns = {tuple(style.dashes.split()) for style in map(line_style, range(1000))}
    turned = {frozenset(pattern[place:] + pattern[:place] for place in range(0, len(pattern), 2)) for pattern in patterns}
    assert len(turned) == len(patterns)


def test_neighbours_differ_in_colour_and_in_marker() -> None:
    styles = [line_style(number) for number in range(200)]
    for one, other in pairwise(styles):
        assert one.classes != other.classes
        assert one.marker != other.marker
    assert {style.marker for style in styles[:6]} == set(range(len(MARKERS)))


def test_a_colour_or_a_symbol_stands_for_one_thing() -> None:
    """The clips of a ladder have its colour and dashes, and each has a marker; one name has one colour."""
    ladders = [[0, 2, 4], [1, 3, 5], *([10 * number + place for place in range(8)] for number in range(1, 9))]
    clips, lines = page_styles(100, list(enumerate(ladders)))
    assert page_styles(6, [(1, [0, 1]), (0, [2]), (1, [3, 4])])[1][::2] == [lines[1]] * 2
    looks = {(style.classes, style.dashes, style.marker) for style in clips}
    assert len(looks) == 100
    assert len({(style.classes, style.dashes) for style in lines}) == len(lines)
    for style, of_ladder in zip(lines, ladders, strict=True):
        first = [clips[clip] for clip in of_ladder[: len(MARKERS)]]
        assert {(one.classes, one.dashes) for one in first} == {(style.classes, style.dashes)}
    others = [clip for clip in range(100) if not any(clip in of_ladder for of_ladder in ladders)]
    assert not {(clips[clip].classes, clips[clip].dashes) for clip in others} & {
        (style.classes, style.dashes) for style in lines
    }
    assert page_styles(3, []) == ([line_style(number) for number in range(3)], [])


def luminance(colour: str) -> float:
    """Return the relative luminance of #rrggbb, as WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_and_lines_stand_out_from_the_paper(theme: int) -> None:
    style = Path(page.__file__).with_name("page.css").read_text(encoding="utf-8")
    colours = {name: pair[theme] for name, *pair in re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", style)}
    for paper in ("paper", "raised"):
        for least, names in ((4.5, ("ink", "quiet", "accent", "alarm")), (3, tuple(f"s{number}" for number in range(6)))):
            for name in names:
                low, high = sorted(luminance(colours[one]) for one in (name, paper))
                assert (high + 0.05) / (low + 0.05) >= least, f"{name} on {paper}"
