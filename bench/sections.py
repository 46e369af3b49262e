"""Run the sections of a bench one after the other, so that one that fails does not lose the figures of the others."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable
from typing import Any

from machine import Watch
from rich.markup import escape
from rich.table import Table
from spreads import Row


def reason(error: BaseException) -> str:
    """Return an exception and its cause in one line."""
    text = (str(error).strip() or "no message").splitlines()[0]
    line = f"{type(error).__name__}: {text}"
    return line if error.__cause__ is None else f"{line} (because of {reason(error.__cause__)})"


class Sections:
    """The sections that are wanted, and their figures.

    `rows` are all figures so far. `failures` are rows with `section`, `where`, `reason` and `traceback`. `say` gets a line for
    each failure, and `after` is called after each section.
    """

    def __init__(self, wanted: Collection[str], say: Callable[[str], object], after: Callable[[], object]) -> None:
        self._wanted, self._say, self._after = wanted, say, after
        self.rows: list[Row] = []
        self.failures: list[Row] = []
        self._watch = Watch()

    def run(self, section: str, where: str, measure: Callable[..., Iterable[Row]], *arguments: Any) -> None:
        """Measure a section, if it is wanted; `where` names its subject. The figures before an exception are kept."""
        if section not in self._wanted:
            return
        try:
            for row in measure(*arguments):
                self.rows.append(row)
        except Exception as error:
            failure = {"section": section, "where": where, "reason": reason(error)}
            self.failures.append({**failure, "traceback": traceback.format_exc()})
            self._say(failed(failure))
        self._watch.lap(section, where)
        self._after()

    @property
    def load(self) -> list[Row]:
        """Return how busy the machine was during each section; see `machine.Watch`."""
        return self._watch.rows()


def failed(failure: Row) -> str:
    """Return the line that is printed for a section that failed."""
    return " ".join(word for word in (failure["section"], failure["where"], "failed:", failure["reason"]) if word)


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
