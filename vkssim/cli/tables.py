"""Tables on the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TextIO

from ..harmless import visible


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], file: TextIO, texts: int = 1) -> None:
    """Print a table whose first `texts` columns are text, the others numbers, which may stand in several lines.

    Nothing in it is taken for markup.
    """
    from rich.table import Table
    from rich.text import Text

    from ..summary import console

    table = Table(title=Text(visible(title)), title_justify="left")
    for place, name in enumerate(columns):
        table.add_column(Text(visible(name)), justify="left" if place < texts else "right", overflow="fold")
    for row in rows:
        cells = [
            visible(text) if place < texts else "\n".join(map(visible, text.split("\n"))) for place, text in enumerate(row)
        ]
        table.add_row(*map(Text, cells))
    console(file).print(table)


def decimals(value: float | None, places: int = 6) -> str:
    """A number as tables have it; null where there is none."""
    return "null" if value is None or not math.isfinite(value) else f"{value:.{places}f}"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, rounded up."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes // 60:,}:{minutes % 60:02d}:{rest:02d}"
