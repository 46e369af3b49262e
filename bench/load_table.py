"""Draw the table of the machine's load during a bench."""

from __future__ import annotations

from collections.abc import Iterable

from rich.markup import escape
from rich.table import Table
from spreads import Row


def load_table(rows: Iterable[Row]) -> Table:
    """Return the table of the rows of `machine.Watch`."""
    table = Table(title="How busy the machine was", title_justify="left")
    for column in ("section", "of", "load average before", "after", "CPU share of others"):
        table.add_column(column)
    for row in rows:
        loads = ("not known" if load is None else f"{load:.2f}" for load in row["load"])
        others = "not known" if row["others"] is None else f"{row['others']:.0f} %"
        table.add_row(escape(row["section"]), escape(row["where"]), *loads, others)
    return table
