"""Open the clips of a worker's tasks: those of the next pair ahead, and those of a hardware decoder once for several ranges."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from ..errors import VkssimError
from ..frames.open import open_both, open_regular
from ..frames.pairing.preprocessing import match_pair, open_pair
from ..frames.source import FrameSource
from ..scoring.options import Clips, ScoreOptions
from ..utils.interruption import result_of
from ..utils.thread_pool import close_at_end, run_in_thread
from .task import Task

Sources = tuple[FrameSource, FrameSource]
Key = tuple[Clips, ScoreOptions]


def open_sources(stack: ExitStack, clips: Clips, options: ScoreOptions) -> tuple[FrameSource, FrameSource]:
    """Open both clips of a pair, the reference first, preprocessed as the options say. The stack closes them."""
    sources = open_pair(*clips.paths, clips.raw, options.pictures, options.chroma, options.selection.streams, options.decoder)
    return close_at_end(stack, sources[0]), close_at_end(stack, sources[1])


def open_regular_files(stack: ExitStack, clips: Clips, options: ScoreOptions) -> tuple[FrameSource, FrameSource]:
    """Open both clips as `open_sources` does, but refuse pipes. The stack closes the files. Raises InputError."""
    openings = [
        partial(open_regular, path, clips.raw, stream, options.decoder)
        for path, stream in zip(clips.paths, options.selection.streams, strict=True)
    ]
    return match_pair(*open_both(stack, openings, options.decoder), clips.raw, options.pictures, options.chroma)


@dataclass(frozen=True)
class OpenPair:
    """Clips that are open, how they were opened, and the stack that closes them."""

    key: Key
    sources: Sources
    stack: ExitStack


class SourceCache:
    """The clips of one worker: those of its last task, if hardware decodes them, and those that a thread opens ahead."""

    def __init__(self) -> None:
        self._kept: OpenPair | None = None
        self._ahead: tuple[Key, Future[OpenPair]] | None = None
        self._closed = False

    @contextmanager
    def use(self, task: Task, options: ScoreOptions) -> Iterator[Sources]:
        """Give the clips of a task, opened by `options`. Sound clips that hardware decodes are kept; others are closed."""
        key, decoder = (task.clips, options), options.decoder
        kept = self._taken()
        if kept is not None and not (kept.key == key and (_seeks(task) or all(source.at_start for source in kept.sources))):
            kept.stack.close()
            kept = None
        kept = kept or self._opened_ahead(key)
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
        """Have a thread open the clips of the next task, unless clips are kept or opened already.

        An error is left to that task, which opens them again.
        """
        if not self._closed and self._kept is None and self._ahead is None:
            self._ahead = (clips, options), run_in_thread("vkssim-open", partial(_opened, (clips, options)))

    def _opened_ahead(self, key: Key) -> OpenPair | None:
        """Return the clips of a task if they were opened ahead, once they are open. Others are closed."""
        if self._ahead is None or self._ahead[0] != key:
            self._drop_ahead()
            return None
        try:
            pair = result_of(self._ahead[1])
        except VkssimError:
            pair = None
        self._ahead = None
        return pair

    def _drop_ahead(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead[1].add_done_callback(_close_opened)

    def _taken(self) -> OpenPair | None:
        kept, self._kept = self._kept, None
        return kept

    def close_unused(self) -> None:
        """Close the clips that no task uses."""
        self._drop_ahead()
        kept = self._taken()
        if kept is not None:
            kept.stack.close()

    def close(self) -> None:
        """Close the clips that no task uses; those of a task are closed after it."""
        self._closed = True
        self.close_unused()


def _opened(key: Key) -> OpenPair:
    with ExitStack() as stack:
        return OpenPair(key, open_regular_files(stack, *key), stack.pop_all())


def _close_opened(opening: Future[OpenPair]) -> None:
    if opening.exception() is None:
        opening.result().stack.close()


def _seeks(task: Task) -> bool:
    """Return whether a task goes to the frame at which it begins, so that it does not matter what was read before."""
    return task.parts[0].frame_range.start is not None
