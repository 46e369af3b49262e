"""Score several distorted clips of one reference in step, so that the reference is decoded once."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Generator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Self

from ..backends.decoding import hardware_decoder
from ..backends.failure_policy import BackendOpener, FailurePolicy
from ..backends.open import open_backend
from ..backends.shared import SharedBackend
from ..errors import InputError, InterruptedRunError
from ..frames.open import open_regular, oriented
from ..frames.options import RawDescription
from ..frames.preprocessing import match_pair
from ..frames.sequence import sequence
from ..frames.source import FrameSource
from ..frames.tee import Tee
from ..report.results import ScoreReport
from ..scoring.options import Clips, ScoreOptions
from ..scoring.run_settings import RunSettings
from ..scoring.session import score_sources
from ..storage.remote import is_url
from ..utils.interruption import take
from ..utils.thread_pool import ThreadPool, close_at_end, is_in_use, leave_open

MOST_IN_STEP = 8
"""The most distorted clips that are decoded at a time. For more clips, the reference is decoded again."""

_LEAST_BATCHES = 4
_BATCHES_EACH = 2  # one batch is filled while the device works on the other


class TogetherScorer:
    """Score distorted clips against their reference, several at a time; use with `with`.

    The device stays open from one reference to the next if their frames have the same format. `most` is the number of clips
    that may be in step, 1 to MOST_IN_STEP.
    """

    def __init__(self, options: ScoreOptions, most: int = MOST_IN_STEP) -> None:
        decoder = hardware_decoder(options.decode, options.backend, options.device)
        self._options = options = replace(options, decoder=decoder)
        self._slots = max(_LEAST_BATCHES, _BATCHES_EACH * most)
        self._policy = FailurePolicy()
        self._backend = self._open_backend()
        self._stopped = threading.Event()

    def score(
        self, reference: str, distorted: Sequence[str], raw: RawDescription
    ) -> Generator[tuple[int, ScoreReport | Exception], None, None]:
        """Yield the report or the error of each distorted clip, with its index in `distorted`, as they are finished.

        An error's attribute `report` may hold the frames scored before it.
        """
        missing = {place: error for place, path in enumerate(distorted) if (error := _why_missing(path, raw)) is not None}
        yield from missing.items()
        there = [place for place in range(len(distorted)) if place not in missing]
        if there:
            for place, outcome in self._score_all(reference, [distorted[place] for place in there], raw):
                yield there[place], outcome

    def _score_all(
        self, reference: str, distorted: Sequence[str], raw: RawDescription
    ) -> Generator[tuple[int, ScoreReport | Exception], None, None]:
        with ExitStack() as stack:
            try:
                references = self._open(stack, reference, len(distorted), raw)
            except Exception as error:
                yield from ((place, error) for place in range(len(distorted)))
                return
            pool = ThreadPool(len(distorted), "vkssim-score")
            places: dict[Future[ScoreReport], int] = {}
            stack.push(partial(self._end, stack, pool, places))
            places |= {
                pool.submit(self._score_one, place, source, Clips(reference, path, raw), len(distorted)): place
                for place, (source, path) in enumerate(zip(references, distorted, strict=True))
            }
            # A signal that ends `concurrent.futures.wait` may leave futures locked, and their runs waiting for ever.
            finished: SimpleQueue[Future[ScoreReport]] = SimpleQueue()
            for future in places:
                future.add_done_callback(finished.put)
            for _ in places:
                future = take(finished)
                yield places[future], _outcome(future)

    def _end(self, stack: ExitStack, pool: ThreadPool, runs: Collection[Future[ScoreReport]], *_exception: object) -> None:
        """Stop runs whose results nobody needs, as after Ctrl-C. The reference of a run that does not end stays open."""
        self._stopped.set()
        ended = pool.close()
        if ended:
            self._stopped.clear()
        if not ended or any(is_in_use(run.exception()) for run in runs if not run.cancelled()):
            leave_open(stack.pop_all())

    def _open_backend(self) -> SharedBackend:
        options = self._options
        opener = partial(open_backend, options.backend, device=options.device, slots=self._slots)
        return SharedBackend(BackendOpener(opener, self._policy))

    def reopen_after(self, error: Exception) -> bool:
        """Open the device again after an error, and return whether the policy allows another try."""
        if not self._policy.allows_another_try(error):
            return False
        self._backend.close()
        self._backend = self._open_backend()
        return True

    def reopen(self) -> None:
        """Open the device again for other clips, with the usual batches."""
        self._backend.close()
        self._policy = FailurePolicy()
        self._backend = self._open_backend()

    def _open(self, stack: ExitStack, path: str, readers: int, raw: RawDescription) -> Sequence[FrameSource]:
        stream, _ = self._options.selection.streams
        source = stack.enter_context(open_regular(path, raw, stream, self._options.decoder))
        if readers == 1:
            return [source]
        # A source that needs no decoding gets one reader for each clip. So does a source whose frames or colours depend on the
        # clip with which it is compared.
        if source.concurrent or source.is_rgb or self._options.sync != "index":
            return [
                source,
                *(stack.enter_context(open_regular(path, raw, stream, self._options.decoder)) for _ in range(readers - 1)),
            ]
        return Tee(oriented(source), readers).readers

    def _score_one(self, index: int, reference: FrameSource, clips: Clips, clips_in_step: int) -> ScoreReport:
        options = self._options
        with ExitStack() as stack:
            close_at_end(stack, reference)
            distorted = close_at_end(
                stack, open_regular(clips.distorted, clips.raw, options.selection.stream_distorted, options.decoder)
            )
            sources = match_pair(reference, distorted, clips.raw, options.pictures, options.chroma)
            opener = partial(self._backend.part, index, clips_in_step)
            return score_sources(sources, clips, opener, options, RunSettings(progress=self._check))

    def _check(self, _done: int, _total: int | None) -> None:
        if self._stopped.is_set():
            raise InterruptedRunError("stopped")

    def close(self) -> None:
        """Close the device, unless a run that did not end still uses it; a second call does nothing."""
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _why_missing(path: str, raw: RawDescription) -> InputError | None:
    """Return the error for a path that does not exist, so that no reference need be opened. None for every other path."""
    if is_url(path) or os.path.exists(path):
        return None
    try:
        if sequence(path) is None:
            open_regular(path, raw).close()
    except InputError as error:
        return error
    return None


def _outcome(future: Future[ScoreReport]) -> ScoreReport | Exception:
    try:
        return future.result()
    except Exception as error:
        return error
