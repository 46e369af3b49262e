"""Run a search step by step: the device, the store and the iteration over results that all searches share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from inspect import GEN_RUNNING, getgeneratorstate
from threading import RLock
from typing import Generic, Self, TypeVar

from ..errors import OptionError
from .options import SearchOptions, open_store
from .output import check_times
from .recipe import Recipe
from .runner import TrialRunner
from .source import Scan, Source
from .trial import Target, TargetScorer, features_of

Result = TypeVar("Result")
Decision = TypeVar("Decision")


class SearchRun(ABC, Generic[Result, Decision]):
    """A search that is run by iterating over it, which yields each result as soon as it is there.

    The device is open until the last result, or until `close`. A subclass defines the steps and the outcome in `_run`.
    """

    def __init__(self, source: Source, recipe: Recipe, options: SearchOptions) -> None:
        self._results: list[Result] = []
        self._outcome: Decision | None = None
        self._source = source
        self._recipe = recipe
        self._options = options
        self._scan = Scan()  # until the clip was read
        self._notes = [*source.facts.notes, *recipe.notes(source.facts)]
        self._lock = RLock()
        self.targets: Sequence[Target] = ()  # until the device is open
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
    def source(self) -> Source:
        """Return the clip."""
        return self._source

    @property
    def recipe(self) -> Recipe:
        """Return how the clip is encoded; for a ladder how its first size is."""
        return self._recipe

    @property
    def parameter(self) -> str:
        """Return the name of the parameter whose value is searched, such as ``"crf"``."""
        return self._recipe.parameter.name

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @abstractmethod
    def _run(self, runner: TrialRunner) -> Generator[Result, None, Decision]:
        """Yield each result, and return the outcome. The store is removed afterwards."""

    def _look(self, runner: TrialRunner) -> None:
        """Read the clip to `_scan`. Raises InputError; OutputError if a file is to be written from a clip that was joined."""
        self._scan = runner.look()
        check_times(self._options.output, self._source.path, self._scan)
        self._notes += self._scan.warnings

    def _finished(self) -> Decision:
        """Run to the end, and return the outcome. Raises VkssimError; OptionError if the search was closed early."""
        for _ in self:
            pass
        if self._outcome is None:
            raise OptionError("the search was closed, or failed, before it was done")
        return self._outcome

    def _opened(self) -> Generator[Result, None, None]:
        options, facts = self._options, self._source.facts
        with ExitStack() as stack:
            features = features_of(options.thresholds, options.features)
            scorer = TargetScorer(facts.width, facts.height, self._recipe.bits, features, options.backend, options.device)
            stack.enter_context(scorer)
            self.targets = scorer.targets(options.thresholds)  # a target that cannot be is an error before the store is opened
            store = open_store(stack, self._source, self._recipe, options)
            self._outcome = yield from self._run(
                TrialRunner(self._source, self._recipe, scorer, self.targets, store, options.progress)
            )
            if store is not None:
                store.remove()
