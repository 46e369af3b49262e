"""Run a search step by step: the device, the store and the iteration over results that all searches share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from inspect import GEN_RUNNING, getgeneratorstate
from threading import RLock
from typing import Any, Generic, TypeVar

from ..errors import OptionError, OutputError
from ..scorer import Scorer
from ..utils.thread_pool import Closable
from .command_line import command_line
from .options import SearchOptions
from .recipe import Recipe
from .runner import TrialRunner, TrialStore
from .samples import Sampling
from .source import Scan, Source
from .trial import Target, targets_of

Result = TypeVar("Result")
Decision = TypeVar("Decision")


class SearchRun(Closable, ABC, Generic[Result, Decision]):
    """A search that is run by iterating over it, which yields each result as soon as it is there.

    The device is open until the last result, or until `close`. A subclass defines the steps and the outcome in `_run`.
    """

    def __init__(self, source: Source, recipe: Recipe, options: SearchOptions) -> None:
        self.source = source
        self.recipe = recipe  # for a ladder that of its first size
        self.targets: Sequence[Target] = ()  # until the device is open
        self._options = options
        self._results: list[Result] = []
        self._outcome: Decision | None = None
        self._runner: TrialRunner  # from the first step on
        self._notes = [*recipe.notes()]
        self._lock = RLock()
        self._steps = self._opened()

    def __iter__(self) -> Iterator[Result]:
        """Yield the results that are there, then each further one, to several threads as well.

        Raises VkssimError; earlier results stay. Raises OptionError in `progress`, which runs while a result is computed.
        """
        place = 0
        while True:
            with self._alone():
                if place == len(self._results):
                    result = next(self._steps, None)
                    if result is None:
                        return
                    self._results.append(result)
            yield self._results[place]
            place += 1

    @property
    def parameter(self) -> str:
        """Return the name of the parameter whose value is searched, such as ``"crf"``."""
        return self.recipe.parameter.name

    @property
    def limits(self) -> dict[str, float]:
        """Return the least value that meets each target by its name, such as ``float_ms_ssim:p5``."""
        limits: dict[str, float] = {}
        for one in self._options.thresholds:
            if one.limit is not None:
                limits[one.pooled_name] = max(one.limit, limits.get(one.pooled_name, one.limit))
        return limits

    def close(self) -> None:
        """Close the device, after the result that another thread waits for; a second call does nothing."""
        with self._alone():
            self._steps.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads from the steps. Raises OptionError within a step, which cannot wait for itself."""
        with self._lock:
            if getgeneratorstate(self._steps) == GEN_RUNNING:
                raise OptionError("`progress` runs within the search, and can neither ask for its results nor close it")
            yield

    @abstractmethod
    def _run(self) -> Generator[Result, None, Decision]:
        """Yield each result, and return the outcome. The store is removed afterwards."""

    def _look(self) -> Scan:
        """Read the clip. Raises InputError; OutputError if a file is to be written from a clip that was joined."""
        scan = self._runner.look()
        if self._options.output is not None and scan.joins:
            raise OutputError(
                f"`output` {self._options.output}: the presentation times of {self.source.path} go back at frame"
                f" {scan.joins[0]}, as in a file that was joined from several, but the times in a file must go up. Copy"
                " the source into another file with FFmpeg first (-c copy), or leave `output` out and encode with FFmpeg's"
                " command line"
            )
        self._notes += scan.warnings
        return scan

    def _command_line(self, recipe: Recipe, place: int, zones: str | None = None) -> str:
        return command_line(self.source.path, recipe, place, renumbered=self._runner.look().renumbered, zones=zones)

    def _finished(self) -> Decision:
        """Run to the end, and return the outcome. Raises VkssimError; OptionError if the search was closed early."""
        for _ in self:
            pass
        if self._outcome is None:
            raise OptionError("the search was closed, or failed, before it was done")
        return self._outcome

    def _opened(self) -> Generator[Result, None, None]:
        options, facts, recipe = self._options, self.source.facts, self.recipe
        with ExitStack() as stack:
            size, bits, metrics = (facts.width, facts.height), recipe.bits, options.metrics
            opened = Scorer(*size, bits=bits, features=metrics, backend=options.backend, device=options.device)
            scorer = stack.enter_context(opened)
            # a target that cannot be is an error before the store is opened
            self.targets = targets_of(scorer, options.thresholds)
            store = None
            if options.resume is not None:
                store = stack.enter_context(TrialStore(options.resume, self.source.path, self._identity()))
            self._runner = TrialRunner(self.source, recipe, scorer, self.targets, store, options.progress)
            self._outcome = yield from self._run()
            if store is not None:
                store.remove()

    def _identity(self) -> dict[str, Any]:
        """Return the settings that trials depend on; another search cannot use them."""
        recipe, options = self.recipe, self._options
        return {
            "encoder": recipe.encoder.name,
            "parameter": [recipe.parameter.name, *recipe.parameter.values],
            "format": recipe.format,
            "options": dict(recipe.options),
            "own": dict(recipe.own),
            "two_passes": recipe.two_passes,
            "features": options.metrics,
            "seconds": options.samples or 0.0,
            "backend": options.backend,
        }


class SampledSearch(SearchRun[Result, Decision]):
    """A search that encodes samples of the clip. Iterate over it to get each trial, or get the `choice` among them."""

    sampling: Sampling | None = None

    @property
    def trials(self) -> list[Result]:
        """Return the trials that are done."""
        return self._results

    @property
    def choice(self) -> Decision:
        """Return the outcome, after all trials. Raises VkssimError."""
        return self._finished()

    def _sample(self) -> Sampling:
        """Read the clip, and return its samples."""
        self.sampling = self._runner.sampling(self._options.samples or 0.0)
        self._look()
        return self.sampling
