"""Run the trials of one clip: look at the clip once, encode its samples with a setting, score them, and store the result.

A search that was cut off continues from the stored trials.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import EncodeError, OptionError
from ..frames.inputs import input_states
from ..scorer import Scorer
from ..storage.checked_journal import SEARCH, CheckedJournal
from ..storage.journal_file import journal_path
from ..utils.limits import LARGEST_JOURNAL_BYTES
from ..utils.progress import Progress
from ..utils.version import __version__
from .defaults import SAMPLE_SECONDS, SHARE
from .encode import EncodedSample, encoded_pairs, header_bytes
from .output import VideoOutput
from .recipe import Recipe
from .samples import Sample, Sampling, choose_samples
from .source import Scan, Source
from .trial import Target, Trial, forecast_bytes


class TrialStore(CheckedJournal):
    """The journal beside a path, begun if there is none; use it with `with`.

    `scan` is the stored scan of the clip, None if there is none. `trials` has the samples and the seconds of each stored trial,
    by the name of its samples and its place. Raises OptionError if the journal belongs to another search, and the errors of
    `CheckedJournal`.
    """

    def __init__(self, path: str | os.PathLike[str], source: str, settings: Mapping[str, Any]) -> None:
        head = {"version": __version__, "source": [list(state) for state in input_states(source)], "settings": dict(settings)}
        self.scan: Scan | None = None
        self.trials: dict[tuple[str, int], tuple[list[EncodedSample], float]] = {}
        super().__init__(journal_path(Path(path)), SEARCH, self._take, most_bytes=LARGEST_JOURNAL_BYTES)
        try:
            if self.head is None:
                self.begin(head)
            elif self.head != head:
                raise OptionError(
                    f"{self.path} has the trials of another search: of another clip, with other options, or by another"
                    " version. Move it away, or give another `resume`"
                )
            else:
                self.go_on()
        except BaseException:
            self.close()
            raise

    def _take(self, entry: Any) -> None:
        if "scan" in entry:
            self.scan = Scan(**entry["scan"])
        else:
            self.trials[entry["ranges"], entry["place"]] = [EncodedSample(**one) for one in entry["encoded"]], entry["seconds"]

    def add_scan(self, scan: Scan) -> None:
        """Store the scan of the clip. Raises OutputError."""
        self.add({"scan": asdict(scan)})

    def add_trial(self, ranges: str, place: int, encoded: Sequence[EncodedSample], seconds: float) -> None:
        """Store the samples of a trial. Raises OutputError."""
        self.trials[ranges, place] = list(encoded), seconds
        self.add({"ranges": ranges, "place": place, "encoded": [asdict(one) for one in encoded], "seconds": seconds})


@dataclass
class TrialRunner:
    """The clip, the recipe and the scorer of all trials. `store` is None if nothing is stored."""

    source: Source
    recipe: Recipe
    scorer: Scorer
    targets: Sequence[Target]
    store: TrialStore | None = None
    progress: Progress | None = None
    scan: Scan | None = None

    def look(self) -> Scan:
        """Return the scan of the clip, the stored one if there is one."""
        if self.scan is None and self.store is not None:
            self.scan = self.store.scan
        if self.scan is None:
            self.scan = self.source.scan(self.progress)
            if self.store is not None:
                self.store.add_scan(self.scan)
        return self.scan

    def sampling(self, least: float) -> Sampling:
        """Return the samples of the clip: `least` seconds of them, or SHARE of the clip if that is longer."""
        scan, rate = self.look(), self.source.facts.rate
        length = max(1, round(SAMPLE_SECONDS * rate))
        return choose_samples(scan, length=length, most=max(length, round(least * rate), round(SHARE * scan.count)))

    def encode(self, name: str, sampling: Sampling, place: int, output: VideoOutput | None = None) -> Trial:
        """Return the trial of a setting over samples; arguments and errors as those of `run`."""
        return self.summarise(sampling, place, *self.run(name, sampling, place, output))

    def run(
        self, name: str, sampling: Sampling, place: int, output: VideoOutput | None = None
    ) -> tuple[list[EncodedSample], float]:
        """Return the samples as they were encoded with a setting, and the seconds that it took.

        They come from the store if it has them and nothing is to be written. `name` distinguishes the samples from others of
        the clip. Raises EncodeError, which names the setting, if it cannot be used, and VkssimError.
        """
        store = None if output is not None else self.store
        if store is not None and (name, place) in store.trials:
            return store.trials[name, place]
        start = time.monotonic()
        try:
            header = 0 if sampling.is_whole else header_bytes(self.recipe, place)
            encoded = self._encode_samples(sampling.samples, place, output, header)
        except EncodeError as error:
            raise EncodeError(f"{self.recipe.parameter.name} {self.recipe.parameter.text(place)}: {error}") from None
        seconds = round(time.monotonic() - start, 3)
        if store is not None:
            store.add_trial(name, place, encoded, seconds)
        return encoded, seconds

    def summarise(self, sampling: Sampling, place: int, encoded: Sequence[EncodedSample], seconds: float) -> Trial:
        """Return the trial of samples that were encoded with a setting, which took `seconds`."""
        weights, whole = [sample.weight for sample in sampling.samples], sampling.is_whole
        values = {target.name: target.value(encoded, weights) for target in self.targets}
        meets = all(values[target.name] >= target.limit for target in self.targets)
        deviations = {target.name: 0.0 if whole else target.deviation(encoded, weights) for target in self.targets}
        chances = (float(meets) if whole else one.probability(values[one.name], deviations[one.name]) for one in self.targets)
        size = forecast_bytes(encoded, sampling, self.recipe)
        shown = self.look().seconds(sampling.samples[0].first if whole else 0, sampling.frames, self.source.facts)
        return Trial(
            setting=self.recipe.parameter.values[place],
            values=values,
            meets=meets,
            bytes=size,
            kbps=round(size * 8 / shown / 1000, 3),
            frames=sum(one.frames for one in encoded),
            seconds=seconds,
            whole=whole,
            deviations=deviations,
            probability=min(chances, default=1.0),
        )

    def _encode_samples(
        self, samples: Sequence[Sample], place: int, output: VideoOutput | None, header: int
    ) -> list[EncodedSample]:
        done, total = 0, sum(sample.count for sample in samples)
        encoded: list[EncodedSample] = []
        for sample in samples:
            found = EncodedSample({name: [] for name in self.scorer.names}, header)
            frames = partial(self.source.frames, sample.first - sample.lead, sample.encoded, self.look())
            for frame in self.scorer.score(encoded_pairs(frames, sample, self.recipe, place, found, output)):
                done += 1
                for name, value in frame.metrics.items():
                    found.scores[name].append(value)
                if self.progress is not None:
                    self.progress(done, total)
            if not any(found.scores.values()):
                raise EncodeError("the encoder wrote no frame")
            encoded.append(found)
        return encoded
