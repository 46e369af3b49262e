"""Show a progress bar, in a terminal or in a notebook."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .sanitize import visible

Progress = Callable[[int, int | None], None]
"""A function that gets the number of finished frames and the number of all frames, None if it is not known."""


class ProgressBar:
    """A progress bar on standard error, from the first call on: scored frames, all frames, rate, time left, and a text."""

    def __init__(self) -> None:
        self._said = ""
        self._shown: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` frames are scored; `total` is None if it is not known."""
        from rich import progress as rich_progress
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        if self._shown is None:
            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("frames,{task.fields[rate]}"),
                TimeRemainingColumn(),
                TextColumn("left"),
                TextColumn("{task.fields[said]}", markup=False),
            )
            self._shown = rich_progress.Progress(*columns, console=Console(stderr=True), transient=True)
            self._shown.start()
            # The frames of an earlier run are no part of the rate.
            self._shown.add_task("", total=total, completed=done, rate="", said=self._said)
        task = self._shown.tasks[0]
        # Without a total the frames are only counted, and the speed of counting tells nothing.
        rate = "" if total is None or not task.speed else f" {task.speed:,.{0 if task.speed >= 100 else 1}f} frames/s,"
        self._shown.update(task.id, completed=done, total=total, rate=rate)

    def say(self, text: str) -> None:
        """Show a text beside the bar, at the latest from the next call on."""
        self._said = visible(text)
        if self._shown is not None:
            self._shown.update(self._shown.tasks[0].id, said=self._said)

    def close(self) -> None:
        """Remove the bar from the screen."""
        if self._shown is not None:
            self._shown.stop()


class NotebookBar(ProgressBar):
    """A progress bar in the output of a notebook's cell, which keeps it. It needs only IPython, which notebooks have."""

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` frames are scored."""
        notebook: Any = import_module("IPython.display")
        length = "" if total is None else f' value="{done}" max="{total}"'
        count = f"{done}/{'?' if total is None else total} frames"
        picture = notebook.HTML(f"<progress{length}></progress> {count} {html.escape(self._said)}".rstrip())
        if self._shown is None:
            self._shown = notebook.display(picture, display_id=True)
        else:
            self._shown.update(picture)

    def say(self, text: str) -> None:
        """Show a text beside the bar from the next call on."""
        self._said = visible(text)

    def close(self) -> None:
        """Leave the bar where it is."""


def progress_bar() -> ProgressBar:
    """Return the bar that fits: a NotebookBar in a notebook, else a ProgressBar."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return NotebookBar() if getattr(shell, "kernel", None) is not None else ProgressBar()
