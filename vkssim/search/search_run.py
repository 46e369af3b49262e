"""Run any search step by step: look at the clip once, encode it with a setting, score it, and store the trial."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from inspect import GEN_RUNNING, getgeneratorstate
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any, Generic, TypeVar

from ..errors import EncodeError, OptionError, OutputError
from ..scorer import Scorer
from ..storage.checked_journal import SEARCH, CheckedJournal, journal_path
from ..storage.inputs import input_states
from ..storage.unfinished import remove_unfinished
from ..utils.thread_pool import Closable, closing_on_error
from ..utils.version import __version__
from .command_line import command_line
from .encode import EncodedSample, encoded_pairs, header_bytes
from .options import SearchOptions
from .output import VideoOutput
from .recipe import Recipe
from .source import Sampling, Scan, Source, choose_samples
from .trial import Target, Trial, TrialHistory, forecast_bytes, targets_of

_SAMPLE_SECONDS = 2.5  # the length of a sample, about: it is a multiple of GROUP frames
_SHARE = 0.01  # of a long clip

Result = TypeVar("Result")
Decision = TypeVar("Decision")


class TrialStore(CheckedJournal):
    """The trials of a search in a journal beside a path, so that a search that was cut off continues from them.

    Raises OptionError if the journal belongs to another search, and the errors of `CheckedJournal`.
    """

    def __init__(self, path: str | os.PathLike[str], source: str, settings: Mapping[str, Any]) -> None:
        head = {"version": __version__, "source": [list(state) for state in input_states(source)], "settings": dict(settings)}
        self.scan: Scan | None = None  # until the clip was scanned
        # the samples and the seconds of each trial, by the name of the samples and the place of the setting
        self.trials: dict[tuple[str, int], tuple[list[EncodedSample], float]] = {}
        super().__init__(journal_path(Path(path)), SEARCH, self._take)
        with closing_on_error(self):
            if self.head is None:
                self.begin(head)
            elif self.head != head:
                raise OptionError(
                    f"{self.path} has the trials of another search: of another clip, with other options, or by another"
                    " version. Move it away, or give another `resume`"
                )
            else:
                self.go_on()

    def _take(self, entry: Any) -> None:
        if "scan" in entry:
            self.scan = Scan(**entry["scan"])
        else:
            encoded = [EncodedSample(**sample) for sample in entry["encoded"]]
            self.trials[entry["ranges"], entry["place"]] = encoded, entry["seconds"]

    def add_scan(self, scan: Scan) -> None:
        """Store the scan of the clip. Raises OutputError."""
        self.scan = scan
        self.add({"scan": asdict(scan)})

    def add_trial(self, ranges: str, place: int, encoded: Sequence[EncodedSample], seconds: float) -> None:
        """Store the samples of a trial. Raises OutputError."""
        self.trials[ranges, place] = list(encoded), seconds
        self.add({"ranges": ranges, "place": place, "encoded": [asdict(sample) for sample in encoded], "seconds": seconds})


class SearchRun(Closable, ABC, Generic[Result, Decision]):
    """A search that is run by iterating over it, which yields each result as soon as it is there.

    The device is open until the last result, or until `close`. A subclass defines the steps and the outcome in `_run`.
    """

    def __init__(self, source: Source, recipe: Recipe, options: SearchOptions) -> None:
        self.source = source
        self.recipe = recipe  # of a ladder, the recipe of its first size
        self.targets: Sequence[Target] = ()  # until the device is open
        self._options = options
        self._results: list[Result] = []
        self._outcome: Decision | None = None
        self._scorer: Scorer | None = None  # it and the scan are there from the first step on
        self._features: list[str] = []
        self._scan: Scan
        self._store: TrialStore | None = None
        self._notes = [*recipe.notes()]
        self._lock = RLock()
        self._steps = self._opened()

    def __iter__(self) -> Iterator[Result]:
        """Yield the results that are there, then each further one, to several threads as well.

        Raises VkssimError; earlier results stay. Raises OptionError in `progress`, which runs while a result is computed.
        """
        for place in count():
            with self._alone():
                if place == len(self._results):
                    result = next(self._steps, None)
                    if result is None:
                        return
                    self._results.append(result)
            yield self._results[place]

    @property
    def parameter(self) -> str:
        """Return the name of the parameter whose value is searched, such as ``"crf"``."""
        return self.recipe.parameter.name

    @property
    def limits(self) -> dict[str, float]:
        """Return the least value that meets each target by its name, such as ``float_ms_ssim:p5``."""
        limits: dict[str, float] = {}
        for target in self.targets:
            if target.threshold.limit is not None:
                limits[target.name] = max(target.limit, limits.get(target.name, target.limit))
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

    def _look(self) -> None:
        """Scan the clip, unless that is stored. Raises InputError; OutputError if a joined clip is to be written to a file."""
        store, output = self._store, self._options.output
        stored = None if store is None else store.scan
        self._scan = stored or self.source.scan(self._options.progress)
        if store is not None and stored is None:
            store.add_scan(self._scan)
        if output is not None and self._scan.joins:
            raise OutputError(
                f"`output` {output}: the presentation times of {self.source.path} go back at frame {self._scan.joins[0]}, as in"
                " a file that was joined from several, but the times in a file must go up. Copy the source into another file"
                " with FFmpeg first (-c copy), or leave `output` out and encode with FFmpeg's command line"
            )
        self._notes += self._scan.warnings

    def _encode(
        self, name: str, sampling: Sampling, place: int, *, recipe: Recipe | None = None, output: VideoOutput | None = None
    ) -> tuple[Trial, list[EncodedSample]]:
        """Return the trial of a setting, and its samples as they were encoded.

        These come from the store if it has them and nothing is to be written. `name` distinguishes the samples from other
        samples of the clip. Raises EncodeError, which names the setting, if it cannot be used, and VkssimError.
        """
        recipe, store = recipe or self.recipe, None if output is not None else self._store
        if store is not None and (name, place) in store.trials:
            encoded, seconds = store.trials[name, place]
        else:
            start = time.monotonic()
            try:
                encoded = self._encode_samples(recipe, sampling, place, output)
            except EncodeError as error:
                raise EncodeError(f"{recipe.parameter.name} {recipe.parameter.text(place)}: {error}") from None
            seconds = round(time.monotonic() - start, 3)
            if store is not None:
                store.add_trial(name, place, encoded, seconds)
        return self._trial(recipe, sampling, place, encoded, seconds), encoded

    def _try_settings(self, history: TrialHistory, name: str, sampling: Sampling) -> Iterator[tuple[int, list[EncodedSample]]]:
        """Encode with the settings that are worth a trial, learn from each, and yield those that can be used."""
        while (place := history.next_of(self._options.trials)) is not None:
            try:
                trial, encoded = self._encode(name, sampling, place)
            except EncodeError as error:
                history.drop(place, error)
            else:
                history.add_trial(place, trial)
                yield place, encoded

    def _encode_samples(
        self, recipe: Recipe, sampling: Sampling, place: int, output: VideoOutput | None
    ) -> list[EncodedSample]:
        header = 0 if sampling.is_whole else header_bytes(recipe, place)
        done, total = 0, sum(sample.count for sample in sampling.samples)
        encoded: list[EncodedSample] = []
        scorer = self._scorer_for(recipe)
        for sample in sampling.samples:
            tally = EncodedSample({name: [] for name in scorer.names}, header)
            frames = partial(self.source.frames, sample.first - sample.lead, sample.encoded, self._scan)
            pairs = encoded_pairs(frames, sample, recipe, place, tally, output, planes=scorer.planes_per_frame)
            try:
                for frame in scorer.score(pairs):
                    done += 1
                    for name, value in frame.metrics.items():
                        tally.scores[name].append(value)
                    if self._options.progress is not None:
                        self._options.progress(done, total)
            except EncodeError:
                scorer.flush()  # else the next encode would get the scores of this one's frames
                raise
            if not any(tally.scores.values()):
                raise EncodeError("the encoder wrote no frame")
            encoded.append(tally)
        return encoded

    def _trial(self, recipe: Recipe, sampling: Sampling, place: int, encoded: Sequence[EncodedSample], seconds: float) -> Trial:
        weights, whole = [sample.weight for sample in sampling.samples], sampling.is_whole
        values = {target.name: target.value(encoded, weights) for target in self.targets}
        meets = all(values[target.name] >= target.limit for target in self.targets)
        deviations = {target.name: 0.0 if whole else target.deviation(encoded, weights) for target in self.targets}
        chances = [target.probability(values[target.name], deviations[target.name]) for target in self.targets if not whole]

        size = forecast_bytes(encoded, sampling, recipe)
        shown = self._scan.seconds(sampling.samples[0].first if whole else 0, sampling.frames, self.source.facts)
        return Trial(
            setting=recipe.parameter.values[place],
            values=values,
            meets=meets,
            bytes=size,
            kbps=round(size * 8 / shown / 1000, 3),
            frames=sum(sample.frames for sample in encoded),
            seconds=seconds,
            whole=whole,
            deviations=deviations,
            probability=min(chances, default=float(meets)),
        )

    def _command_line(self, recipe: Recipe, place: int, zones: str | None = None) -> str:
        return command_line(self.source.path, recipe, place, renumbered=self._scan.renumbered, zones=zones)

    def _finished(self) -> Decision:
        """Run to the end, and return the outcome. Raises VkssimError; OptionError if the search was closed early."""
        for _ in self:
            pass
        if self._outcome is None:
            raise OptionError("the search was closed, or failed, before it was done")
        return self._outcome

    def _scorer_for(self, recipe: Recipe) -> Scorer:
        """Return the scorer for encodes of the recipe's size, which are scaled back to that of the source.

        The scorer for an earlier size is closed, because each has the memory of a device for many frames.
        """
        options, facts = self._options, self.source.facts
        features = Scorer.features_for(options.metrics, fps=facts.fps, encoded_size=recipe.scaled)
        if self._scorer is None or features != self._features:
            self._close_scorer()
            self._scorer = Scorer(
                facts.width,
                facts.height,
                bits=recipe.bits,
                features=features,
                chroma=recipe.chroma,
                backend=options.backend,
                device=options.device,
            )
            self._features = features
        return self._scorer

    def _close_scorer(self) -> None:
        if self._scorer is not None:
            self._scorer.close()

    def _opened(self) -> Generator[Result, None, None]:
        options = self._options
        with ExitStack() as stack:
            stack.callback(self._close_scorer)
            # a target that cannot be is an error before the store is opened
            self.targets = targets_of(self._scorer_for(self.recipe), options.thresholds)
            if options.resume is not None:
                self._store = stack.enter_context(TrialStore(options.resume, self.source.path, self._identity()))
            if options.output is not None:
                remove_unfinished(Path(os.path.realpath(options.output)))
            self._look()
            self._outcome = yield from self._run()
            if self._store is not None:
                self._store.remove()

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
            "models": [[list(state) for state in input_states(file)] for file in Scorer.files_of(options.metrics)],
            "seconds": options.samples or 0.0,
            "backend": options.backend,
            "pictures": asdict(self.source.pictures),
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
        """Choose the samples of the clip: of the requested length, or of _SHARE of the clip if that is longer."""
        scan, rate = self._scan, self.source.facts.rate
        length, least = max(1, round(_SAMPLE_SECONDS * rate)), round((self._options.samples or 0.0) * rate)
        self.sampling = choose_samples(scan, length=length, most=max(length, least, round(_SHARE * scan.count)))
        return self.sampling
