"""Show a progress bar, in a terminal or in a notebook."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from .sanitize import visible

Progress = Callable[[int, int | None], None]
"""A function that gets the number of finished frames and the number of all frames, None if it is not known."""


class Bar(Protocol):
    """A progress bar: scored frames, all frames, the rate, the time left, and a text."""

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` frames are scored; `total` is None if it is not known."""

    def say(self, text: str) -> None:
        """Show a text beside the bar."""

    def close(self) -> None:
        """End the bar."""


class ProgressBar:
    """A progress bar on standard error, from the first call on. `unit` is the plural noun of the things that it counts."""

    def __init__(self, unit: str = "frames") -> None:
        self._unit = unit
        self._said = ""
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` items are scored; `total` is None if it is not known."""
        from rich import progress as rich_progress
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        if self._bar is None:
            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(f"{self._unit},{{task.fields[rate]}}"),
                TimeRemainingColumn(),
                TextColumn("left"),
                TextColumn("{task.fields[said]}", markup=False),
            )
            self._bar = rich_progress.Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            # The items of an earlier run are no part of the rate.
            self._task = self._bar.add_task("", total=total, completed=done, rate="", said=self._said)
        task = self._bar.tasks[0]
        # Without a total the items are only counted, and the speed of counting tells nothing.
        rate = "" if total is None or not task.speed else f" {_brief(task.speed)} {self._unit}/s,"
        self._bar.update(self._task, completed=done, total=total, rate=rate)

    def say(self, text: str) -> None:
        """Show a text beside the bar."""
        self._said = visible(text)
        if self._bar is not None:
            self._bar.update(self._task, said=self._said)

    def close(self) -> None:
        """Remove the bar from the screen."""
        if self._bar is not None:
            self._bar.stop()


def _brief(number: float) -> str:
    """Return a number with a decimal if it is small."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


class NotebookBar:
    """A progress bar in the output of a notebook's cell, like ProgressBar. It needs only IPython, which notebooks have."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._said = ""
        self._handle: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` items are scored; `total` is None if it is not known."""
        notebook: Any = import_module("IPython.display")
        known = "" if total is None else f' value="{done}" max="{total}"'
        count = f"{done}/{'?' if total is None else total} {self._unit}"
        picture = notebook.HTML(f"<progress{known}></progress> {count} {self._said}".rstrip())
        if self._handle is None:
            self._handle = notebook.display(picture, display_id=True)
        else:
            self._handle.update(picture)

    def say(self, text: str) -> None:
        """Show a text beside the bar, from the next call on."""
        self._said = html.escape(visible(text))

    def close(self) -> None:
        """Leave the bar in the cell, like the other output."""


def progress_bar(unit: str) -> ProgressBar | NotebookBar:
    """Return the bar that fits: a NotebookBar in a notebook, else a ProgressBar."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return NotebookBar(unit) if getattr(shell, "kernel", None) is not None else ProgressBar(unit)
