"""The page of a search: its answer first, then the curves with all trials, and the trials themselves, folded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..report.numbers import finite
from .charts import MARKERS, Axis, Chart, line_style, placed_path, rate_axis, round_axis
from .tables import Tile
from .template import render_template

_LINEAR = 4.0  # the largest ratio of the highest rate to the lowest on a linear axis


@dataclass(frozen=True)
class TableRow:
    """A row of a table: its cells, the series whose symbol stands before them, and the state of the last cell: pass or fail."""

    cells: tuple[str, ...]
    series: int | None = None
    state: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its title, the headings of its columns, and how many of these have texts instead of numbers."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[TableRow, ...]
    texts: int = 1


@dataclass(frozen=True)
class Copied:
    """A text to copy, such as a command, with its title. If `is_open`, it is shown at once, else folded."""

    title: str
    text: str
    is_open: bool = False


@dataclass(frozen=True)
class Mark:
    """A trial on a chart, at its place in the units of the axes, with the symbol of its series."""

    across: float
    up: float
    series: int
    text: str
    label: str = ""
    chosen: bool = False
    """Whether it has a ring around it, and its label beside it."""


@dataclass(frozen=True)
class Curve:
    """A line through points (across, up). `kind` is ``"size"``, in the colour of its series, ``"chosen"`` or ``"fixed"``."""

    points: tuple[tuple[float, float], ...]
    kind: str = "size"
    series: int = 0


@dataclass(frozen=True)
class Rule:
    """A straight line across a chart at a value, such as a target. An `upright` line is at a value of the axis across."""

    value: float
    text: str
    upright: bool = False


@dataclass(frozen=True)
class Plot:
    """The content of a chart, with the titles of its axes."""

    title: str
    across_title: str
    up_title: str
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...]
    rules: tuple[Rule, ...] = ()
    legend: tuple[tuple[str, int, str], ...] = ()
    """The kind of curve, the series and the text of each entry."""
    rate_across: bool = False
    rate_up: bool = False

    @cached_property
    def across(self) -> Axis:
        """Return the axis below the chart."""
        values = [mark.across for mark in self.marks] + [rule.value for rule in self.rules if rule.upright]
        return _axis(values, is_rate=self.rate_across)

    @cached_property
    def up(self) -> Axis:
        """Return the axis beside the chart."""
        values = [mark.up for mark in self.marks] + [rule.value for rule in self.rules if not rule.upright]
        return _axis(values, is_rate=self.rate_up)

    def path(self, curve: Curve) -> str:
        """Return the path of a curve, in the units of the plot."""
        return placed_path(self.across, self.up, curve.points)

    def place(self, mark: Mark) -> tuple[float, float]:
        """Return the place of a mark in per cent, across and down."""
        return round(100 * self.across.share(mark.across), 2), round(100 - 100 * self.up.share(mark.up), 2)

    def place_of_rule(self, rule: Rule) -> float:
        """Return the place of a rule in per cent, across if it is upright, else down."""
        return round(100 * self.across.share(rule.value) if rule.upright else 100 - 100 * self.up.share(rule.value), 2)


@dataclass(frozen=True)
class Frames:
    """Scores over frames, with the numbers of the frames at which shots begin, and the time codes below the axis."""

    title: str
    up: str
    chart: Chart
    cuts: tuple[float, ...]
    times: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class AnswerPage:
    """The result of a search, as its page shows it from top to bottom."""

    title: str
    lead: str
    tiles: Sequence[Tile]
    table: Table | None
    copied: Sequence[Copied]
    notes: Sequence[str]
    plots: Sequence[Plot] = ()
    frames: Frames | None = None
    folded: Sequence[Table] = ()


def json_to_copy(data: Any) -> Copied:
    """Return data as JSON to copy."""
    return Copied("JSON", json.dumps(finite(data), indent=1, ensure_ascii=False))


def render_answer(answer: AnswerPage) -> str:
    """Return the page of an answer. All text from outside is escaped in it."""
    return render_template(
        "answer.html",
        data={"clips": [], "metrics": [], "ladders": [], "references": [], "markers": MARKERS, "unit": "kbit/s", "moments": []},
        title=answer.title,
        lead=answer.lead,
        answer=answer,
        line_style=line_style,
    )


def _axis(values: Sequence[float], *, is_rate: bool) -> Axis:
    """Return an axis that has all values. An axis of rates is logarithmic unless the rates are close together."""
    low, high = min(values), max(values)
    return rate_axis(low, high) if is_rate and low > 0 and high > _LINEAR * low else round_axis(low, high)
