"""Open the clips of a worker's tasks.

The clips of the next pair are opened ahead. Clips that hardware decodes stay open for several ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple

from ..errors import VkssimError
from ..frames.pairing.preprocessing import open_pair
from ..frames.source import FrameSource
from ..utils.interruption import result_of
from ..utils.thread_pool import close_at_end, run_in_thread
from .options import Clips, ScoreOptions
from .task import Task

Sources = tuple[FrameSource, FrameSource]
Key = tuple[Clips, ScoreOptions]


def open_sources(stack: ExitStack, clips: Clips, options: ScoreOptions, pipes: bool) -> Sources:
    """Open both clips of a pair, the reference first, preprocessed as the options say. The stack closes them."""
    streams, decoder = options.selection.streams, options.decoder
    sources = open_pair(clips.paths, clips.raw, options.pictures, options.chroma, streams, decoder, pipes)
    return close_at_end(stack, sources[0]), close_at_end(stack, sources[1])


class _OpenPair(NamedTuple):
    """Clips that are open, the stack that closes them, and whether none of their frames was read."""

    sources: Sources
    stack: ExitStack
    unread: bool


class SourceCache:
    """The clips of a worker that no task uses: those of its last task, if hardware decodes them, or those opened ahead."""

    def __init__(self) -> None:
        self._open: tuple[Key, Future[_OpenPair]] | None = None
        self._closed = False

    @contextmanager
    def use(self, task: Task, options: ScoreOptions) -> Iterator[Sources]:
        """Give the clips of a task, opened by `options`. Sound clips that hardware decodes are kept open."""
        key, decoder = (task.clips, options), options.decoder
        with ExitStack() as stack:
            sources = self._taken(stack, task, key) or open_sources(stack, *key, task.pipes)
            yield sources
            sound = not any(source.problem or source.damage or source.remarks for source in sources)
            by_hardware = decoder is not None and all(decoder.decodes(source.clip_facts()) for source in sources)
            if by_hardware and sound and self._open is None and not self._closed:
                kept: Future[_OpenPair] = Future()
                kept.set_result(_OpenPair(sources, stack.pop_all(), all(source.at_start for source in sources)))
                self._open = key, kept

    def _taken(self, stack: ExitStack, task: Task, key: Key) -> Sources | None:
        """Return the clips of a task if they are open or being opened, and have the stack close them.

        Otherwise close the clips that are open, and return None.
        """
        if self._open is not None and self._open[0] == key:
            try:
                pair = result_of(self._open[1])
            except VkssimError:
                pass
            else:
                # A task that seeks begins at its own frame, whatever was read before.
                if pair.unread or task.parts[0].frame_range.start is not None:
                    self._open = None
                    stack.enter_context(pair.stack)
                    return pair.sources
        self.close_unused()
        return None

    def open_ahead(self, clips: Clips, options: ScoreOptions) -> None:
        """Have a thread open the clips of the next task, unless clips are kept or opened already.

        An error is left to that task, which opens them again.
        """
        if not self._closed and self._open is None:
            self._open = (clips, options), run_in_thread("vkssim-open", partial(_opened, clips, options))

    def close_unused(self) -> None:
        """Close the clips that no task uses."""
        unused, self._open = self._open, None
        if unused is not None:
            unused[1].add_done_callback(_close_opened)

    def close(self) -> None:
        """Close the clips that no task uses; those of a task are closed after it."""
        self._closed = True
        self.close_unused()


def _opened(clips: Clips, options: ScoreOptions) -> _OpenPair:
    with ExitStack() as stack:
        return _OpenPair(open_sources(stack, clips, options, pipes=False), stack.pop_all(), unread=True)


def _close_opened(opening: Future[_OpenPair]) -> None:
    if opening.exception() is None:
        opening.result().stack.close()
