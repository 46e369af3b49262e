"""Keeps the clips of a worker open from range to range where hardware decodes them, since opening takes longer than a range."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from ..frames.hardware import HardwareDecoder
from ..frames.source import FrameSource
from ..scoring.options import Clips, ScoreOptions
from ..scoring.session import open_ordinary_sources
from .task import Task

Sources = tuple[FrameSource, FrameSource]


class OpenSources:
    """Opens the clips of tasks, and keeps those of the last task where that pays."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._key: tuple[Clips, ScoreOptions] | None = None
        self._sources: Sources | None = None

    @contextmanager
    def use(self, task: Task, decoder: HardwareDecoder | None) -> Iterator[Sources]:
        """Give the clips of a task. Those that something is wrong with, or that failed, are closed behind it."""
        key = task.clips, replace(task.options, decoder=decoder)
        begins_anew = task.part is None or task.part.start is None
        if self._sources is None or key != self._key or begins_anew:
            self.close()
            self._sources = open_ordinary_sources(self._stack, *key)
            self._key = key
        try:
            yield self._sources
        except BaseException as failure:  # which says whether a thread still reads them
            self._sources = None
            self._stack.__exit__(type(failure), failure, failure.__traceback__)
            raise
        if decoder is None or any(source.problem or source.damage or source.remarks for source in self._sources):
            self.close()

    def close(self) -> None:
        """Close the clips; a second call does nothing."""
        self._sources = None
        self._stack.close()
