"""Print tables to the terminal."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO

from ..report.numbers import told_apart
from ..utils.sanitize import visible

if TYPE_CHECKING:
    from rich.console import Console

_NARROWEST_PATH, _NARROWEST_TEXT = 36, 16
"""Characters of a line of a path, and of any text, at least, if a table is too wide and its texts are folded."""
_LONG_START = 12
"""Characters at the beginning of all names from which on they are left out."""
_LARGEST_DECIMAL = 1e9
"""A number of this size or more is written with an exponent, so that it leaves room for the other columns."""
_FRAME = 3
"""Characters of a border and its two blanks; a table has one of them a column, and one border more."""


@dataclass(frozen=True)
class _Column:
    """A column of a table: its heading, its cells, and its least width."""

    head: str
    cells: Sequence[str]
    is_text: bool
    folds: int | None
    """The width down to which texts are folded; None if they are not."""

    @property
    def least(self) -> int:
        """Return the width that the column needs: of numbers the longest word, of texts the longest, unless they are folded."""
        if not self.is_text:
            return _longest([word for text in (self.head, *self.cells) for word in text.split()])
        longest = _longest([self.head, *self.cells])
        return longest if self.folds is None else min(self.folds, longest)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    file: TextIO | None = None,
    *,
    texts: int = 1,
    paths: Sequence[str] = (),
    optional: Sequence[str] = (),
    elsewhere: str = "",
    sections: Collection[int] = (),
) -> None:
    """Print a table whose first `texts` columns are text, all further ones numbers. The default file is standard output.

    A column of numbers without any value is left out. On a narrow terminal, headings and intervals are broken at their blanks
    and the columns in `paths` are folded; then those in `optional` are left out, the first one first, and named with
    `elsewhere`, the place that has them; then all texts are folded. No number is broken. `sections` are the rows that have a
    line above them.
    """
    from rich.table import Table
    from rich.text import Text

    file = file or sys.stdout
    screen = console(file)
    filled = []
    for place, name in enumerate(columns):
        is_text = place < texts
        cells = [visible(row[place], lines=not is_text) for row in rows]
        if is_text or not rows or any(cells):
            filled.append(_Column(visible(name), cells, is_text, _NARROWEST_PATH if name in paths else None))
    shown = filled
    for left_out in map(visible, optional):
        if _needed([column.least for column in shown]) > screen.width:
            shown = [column for column in shown if column.head != left_out]
    if _needed([column.least for column in shown]) > screen.width:
        shown = [replace(column, folds=_NARROWEST_TEXT) for column in shown]
    widths = _widths(shown, screen.width)
    if title:
        print_line(file, (title, "italic"))  # a title of the table would be broken
    table = Table()
    for column, width in zip(shown, widths, strict=True):
        table.add_column(Text(column.head), justify="left" if column.is_text else "right", overflow="fold", width=width)
    for number in range(len(rows)):
        if number in sections:
            table.add_section()
        table.add_row(*(Text(column.cells[number]) for column in shown))
    screen.width = max(_needed(widths), screen.width)  # a wider table is better than a broken number
    screen.print(table)
    heads = [column.head for column in shown]
    missing = [column.head for column in filled if column.head not in heads]
    if missing and elsewhere:
        print_line(file, f"{', '.join(missing)}: left out, for this terminal is too narrow; {elsewhere}")


def without_common_part(names: Sequence[str]) -> list[str]:
    """Return file names without the folders that they share, and without long beginnings that all of them have.

    The beginnings end with a folder, or in the names themselves after a separator; "…" stands for those of names.
    """
    common = os.path.commonprefix([*names]) if len(set(names)) > 1 else ""  # noqa: RUF071 - not only whole folders
    folder = common.rfind("/") + 1
    start = max(common.rfind(mark) + 1 for mark in "_-. ")
    if start - folder < _LONG_START:
        return [name[folder:] for name in names]
    return [f"…{name[start:]}" for name in names]


def print_line(file: TextIO, *parts: str | tuple[str, str]) -> None:
    """Print texts in a line that is not broken; a pair is a text and its style. Nothing in it is taken for markup."""
    from rich.text import Text

    styled = ((part, "") if isinstance(part, str) else part for part in parts)
    console(file).print(Text.assemble(*((visible(text), style) for text, style in styled)), soft_wrap=True)


def console(file: TextIO) -> Console:
    """Return the console that writes tables to a file: as wide as its terminal, or 120 columns."""
    from rich.console import Console

    return Console(file=file, width=None if file.isatty() else 120)


def decimals(value: float | None, limit: float | None = None) -> str:
    """Return a number as tables have it, with as many decimals as tell it from a limit; null if there is none."""
    if value is None or not math.isfinite(value):
        return "null"
    return told_apart(value, limit, kind="f" if abs(value) < _LARGEST_DECIMAL else "g")


def duration(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds, rounded up."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes // 60:,}:{minutes % 60:02d}:{rest:02d}"


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return the width of each column: its least width, and as much of the rest as first its cells, then headings can use."""
    widths = [column.least for column in columns]
    left = width - _needed(widths)
    numbers_first = sorted(enumerate(columns), key=lambda entry: entry[1].is_text)  # so that an interval stays on one line
    useful = [
        *((place, _longest([line for text in column.cells for line in text.split("\n")])) for place, column in numbers_first),
        *((place, _longest([column.head])) for place, column in enumerate(columns)),
    ]
    for place, most in useful:
        more = max(0, min(most - widths[place], left))
        widths[place] += more
        left -= more
    return widths


def _needed(widths: Sequence[int]) -> int:
    """Return the width of a table with columns of these widths."""
    return sum(widths) + _FRAME * len(widths) + 1


def _longest(texts: Sequence[str]) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, texts), default=0)
