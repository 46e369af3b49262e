"""The progress bar."""

from __future__ import annotations

from typing import Any


class ProgressBar:
    """A progress bar on standard error, shown from the first call on. `unit` is what it counts."""

    def __init__(self, unit: str = "frames") -> None:
        self._unit = unit
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        """Show that so many of so many are scored."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self._bar is None:
            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(f"{self._unit}, {{task.fields[rate]:.1f}} {self._unit}/s,"),
                TimeRemainingColumn(),
                TextColumn("left"),
                TextColumn("{task.fields[said]}"),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=total, rate=0.0, said="")
        task = self._bar.tasks[0]
        self._bar.update(self._task, completed=done, total=total, rate=task.speed or 0.0)

    def say(self, text: str) -> None:
        """Show a text behind the bar."""
        if self._bar is not None:
            self._bar.update(self._task, said=text)

    def close(self) -> None:
        """Take it from the screen."""
        if self._bar is not None:
            self._bar.stop()
