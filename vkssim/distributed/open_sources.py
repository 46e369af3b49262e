"""Keep the clips of a worker open from range to range where hardware decodes them, since opening takes longer than a range."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from ..errors import VkssimError
from ..frames.source import FrameSource
from ..scoring.options import Clips, ScoreOptions
from ..scoring.session import open_regular_files, open_sources
from .task import Task

Sources = tuple[FrameSource, FrameSource]


@dataclass(frozen=True)
class OpenPair:
    """Hold clips that are open, how they were opened, and the stack that closes them."""

    key: tuple[Clips, ScoreOptions]
    sources: Sources
    stack: ExitStack


class OpenSources:
    """Open the clips of tasks, and keep those of the last task where hardware decodes them."""

    def __init__(self) -> None:
        self._kept: OpenPair | None = None
        self._closed = False

    @contextmanager
    def use(self, task: Task, options: ScoreOptions) -> Iterator[Sources]:
        """Give the clips of a task, opened by `options`. Sound clips are kept; all others are closed afterwards."""
        key, decoder = (task.clips, options), options.decoder
        kept = self._taken()
        if kept is not None and not (kept.key == key and (_seeks(task) or all(source.at_start for source in kept.sources))):
            kept.stack.close()
            kept = None
        with ExitStack() as stack:
            if kept is None:
                sources = (open_sources if task.pipes else open_regular_files)(stack, *key)
            else:
                sources = kept.sources
                stack.enter_context(kept.stack)
            yield sources
            sound = not any(source.problem or source.damage or source.remarks for source in sources)
            by_hardware = decoder is not None and all(decoder.decodes(source.clip_facts()) for source in sources)
            if by_hardware and sound and not self._closed:
                self._kept = OpenPair(key, sources, stack.pop_all())

    def open_ahead(self, clips: Clips, options: ScoreOptions) -> None:
        """Open the clips of the tasks to come, unless those of a task are open.

        An error is left to the first of these tasks, which opens them again.
        """
        if self._kept is not None:
            return
        with ExitStack() as stack, suppress(VkssimError):
            sources = open_regular_files(stack, clips, options)
            if not self._closed:
                self._kept = OpenPair((clips, options), sources, stack.pop_all())

    def _taken(self) -> OpenPair | None:
        kept, self._kept = self._kept, None
        return kept

    def close(self) -> None:
        """Close the clips that no task uses; those of a task are closed behind it."""
        self._closed = True
        kept = self._taken()
        if kept is not None:
            kept.stack.close()


def _seeks(task: Task) -> bool:
    """Return whether a task goes to the frame at which it begins, so that it does not matter what was read before."""
    return task.parts[0].frame_range.start is not None
