"""Open the clips of a worker's tasks.

The clips of the next pair are opened ahead. Clips that hardware decodes stay open for several ranges.
"""

from __future__ import annotations

import threading
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
from .ranges import FrameRange

Sources = tuple[FrameSource, FrameSource]
Key = tuple[Clips, ScoreOptions]


def open_sources(stack: ExitStack, clips: Clips, options: ScoreOptions) -> Sources:
    """Open both clips of a pair, the reference first, preprocessed as the options say. The stack closes them."""
    streams, decoder = options.selection.streams, options.decoder
    sources = open_pair(clips.paths, clips.raw, options.pictures, options.chroma, streams, decoder)
    return close_at_end(stack, sources[0]), close_at_end(stack, sources[1])


def are_decoded_by_hardware(sources: Sources, options: ScoreOptions) -> bool:
    """Return whether the hardware decoder of the options decodes both clips."""
    decoder = options.decoder
    return decoder is not None and all(decoder.decodes(source.clip_facts()) for source in sources)


class _OpenPair(NamedTuple):
    """Clips that are open."""

    sources: Sources
    stack: ExitStack
    """The stack that closes them."""
    unread: bool
    """True if none of their frames was read."""


class SourceCache:
    """The clips of a worker that no task uses: those of its last task, if hardware decodes them, or those opened ahead."""

    def __init__(self) -> None:
        self._open: tuple[Key, Future[_OpenPair]] | None = None
        self._lock = threading.Lock()
        """The lock of `_open`: another worker may have the clips opened that it divides."""
        self._closed = False

    @contextmanager
    def use(self, clips: Clips, frame_range: FrameRange, options: ScoreOptions) -> Iterator[Sources]:
        """Give the clips for a range of their frames, opened by `options`. Sound clips that hardware decodes are kept open."""
        key = clips, options
        with ExitStack() as stack:
            sources = self._take(stack, key, frame_range) or open_sources(stack, *key)
            yield sources

            is_sound = not any(source.problem or source.damage or source.remarks for source in sources)
            if is_sound and are_decoded_by_hardware(sources, options):
                self._keep(key, sources, stack)

    def _take(self, stack: ExitStack, key: Key, frame_range: FrameRange) -> Sources | None:
        """Return clips if they are open or being opened, and have the stack close them.

        Otherwise close the clips that are open, and return None.
        """
        with self._lock:
            opening = None
            if self._open is not None and self._open[0] == key:
                opening, self._open = self._open[1], None
        if opening is None:
            self.close_unused()
            return None

        try:
            pair = result_of(opening)
        except VkssimError:
            return None
        except BaseException:  # the user stops the run
            opening.add_done_callback(_close_opened)
            raise
        if pair.unread or frame_range.start is not None:  # a task that seeks may begin anywhere, whatever was read before
            stack.enter_context(pair.stack)
            return pair.sources
        pair.stack.close()
        return None

    def _keep(self, key: Key, sources: Sources, stack: ExitStack) -> None:
        with self._lock:
            if self._open is not None or self._closed:
                return
            kept: Future[_OpenPair] = Future()
            kept.set_result(_OpenPair(sources, stack.pop_all(), all(source.at_start for source in sources)))
            self._open = key, kept

    def open_ahead(self, clips: Clips, options: ScoreOptions) -> None:
        """Have a thread open the clips of the next task, unless clips are kept or opened already.

        An error is left to that task, which opens them again.
        """
        with self._lock:
            if not self._closed and self._open is None:
                self._open = (clips, options), run_in_thread("vkssim-open", partial(_open_ahead, clips, options))

    def close_unused(self) -> None:
        """Close the clips that no task uses."""
        with self._lock:
            unused, self._open = self._open, None
        if unused is not None:
            unused[1].add_done_callback(_close_opened)

    def close(self) -> None:
        """Close the clips that no task uses; those of a task are closed after it."""
        self._closed = True
        self.close_unused()


def _open_ahead(clips: Clips, options: ScoreOptions) -> _OpenPair:
    with ExitStack() as stack:
        return _OpenPair(open_sources(stack, clips, options), stack.pop_all(), unread=True)


def _close_opened(opening: Future[_OpenPair]) -> None:
    if opening.exception() is None:
        opening.result().stack.close()
