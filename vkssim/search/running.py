"""Run a search step by step: what all searches share, which is the device, the store, and how their results are handed out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Generic, Self, TypeVar

from ..errors import OptionError
from .asked import Asked, open_store
from .bench import Bench
from .recipe import Recipe
from .source import Source
from .trial import Judge, features_of

Result = TypeVar("Result")
Outcome = TypeVar("Outcome")


class Running(ABC, Generic[Result]):
    """Iterate over a search to get each result as soon as it is there.

    The device is open until the last result, or until `close`. A class that derives from this one says in `_run` what is done.
    """

    def __init__(self, source: Source, recipe: Recipe, asked: Asked) -> None:
        self._results: list[Result] = []
        self._source = source
        self._recipe = recipe
        self._asked = asked
        self._steps = self._opened()

    def __iter__(self) -> Iterator[Result]:
        """Yield the results that are there, then each further one. Raises VkssimError; what was there before stays."""
        place = 0
        while True:
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
        return self._recipe.parameter.name

    def close(self) -> None:
        """Close the device; a second call does nothing."""
        self._steps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @abstractmethod
    def _run(self, bench: Bench) -> Generator[Result, None, None]:
        """Yield each result. The store is removed afterwards."""

    def _ended(self) -> None:
        """Run to the end. Raises VkssimError."""
        for _ in self:
            pass

    @staticmethod
    def _there(outcome: Outcome | None) -> Outcome:
        """Return the outcome of a search that has run to its end. Raises OptionError where it did not get there."""
        if outcome is None:
            raise OptionError("the search was closed, or failed, before it was done")
        return outcome

    def _opened(self) -> Generator[Result, None, None]:
        asked, facts = self._asked, self._source.facts
        with ExitStack() as stack:
            features = features_of(asked.thresholds, asked.features)
            judge = Judge(facts.width, facts.height, self._recipe.bits, features, asked.backend, asked.device)
            stack.enter_context(judge)
            targets = judge.targets(asked.thresholds)  # a target that cannot be is an error before the store is opened
            store = open_store(stack, self._source, self._recipe, asked)
            yield from self._run(Bench(self._source, self._recipe, judge, targets, store, asked.progress))
            if store is not None:
                store.remove()
