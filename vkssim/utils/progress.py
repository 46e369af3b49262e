"""Show a progress bar, in a terminal or in a notebook."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from .sanitize import visible


class ProgressBar:
    """Show a progress bar on standard error, from the first call on. `unit` is the plural noun of the things that it counts."""

    def __init__(self, unit: str = "frames") -> None:
        self._unit = unit
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` items are scored; `total` is None where it is not known."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self._bar is None:
            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(f"{self._unit}, {{task.fields[rate]:.1f}} {self._unit}/s,"),
                TimeRemainingColumn(),
                TextColumn("left"),
                TextColumn("{task.fields[said]}", markup=False),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=total, rate=0.0, said="")
        task = self._bar.tasks[0]
        self._bar.update(self._task, completed=done, total=total, rate=task.speed or 0.0)

    def say(self, text: str) -> None:
        """Show a text behind the bar."""
        if self._bar is not None:
            self._bar.update(self._task, said=visible(text))

    def close(self) -> None:
        """Remove the bar from the screen."""
        if self._bar is not None:
            self._bar.stop()


class NotebookBar:
    """Show a progress bar in the output of a notebook's cell, like ProgressBar. It needs only IPython, which notebooks have."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._handle: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` items are scored; `total` is None where it is not known."""
        notebook: Any = import_module("IPython.display")
        known = "" if total is None else f' value="{done}" max="{total}"'
        picture = notebook.HTML(f"<progress{known}></progress> {done}/{'?' if total is None else total} {self._unit}")
        if self._handle is None:
            self._handle = notebook.display(picture, display_id=True)
        else:
            self._handle.update(picture)

    def close(self) -> None:
        """Leave the bar where it is, like the other output of the cell."""


def progress_bar(unit: str) -> ProgressBar | NotebookBar:
    """Return the bar that fits: a NotebookBar in a notebook, else a ProgressBar."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return NotebookBar(unit) if getattr(shell, "kernel", None) is not None else ProgressBar(unit)
