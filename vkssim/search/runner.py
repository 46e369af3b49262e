"""Run the trials of one clip: look at the clip once, encode its samples with a setting, score them, and store the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ..errors import EncodeError
from ..utils.progress import Progress
from .encode import Stream, encoded_pairs, header_bytes
from .output import VideoOutput
from .recipe import Recipe
from .samples import Sample, Sampling, choose_samples
from .source import Scan, Source
from .store import TrialStore
from .trial import EncodedSample, Stopwatch, Target, TargetScorer, Trial, summarise


@dataclass
class TrialRunner:
    """The clip, the recipe and the scorer of all trials. `store` is None if nothing is stored."""

    source: Source
    recipe: Recipe
    scorer: TargetScorer
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

    def sampling(self, piece: float, least: float, share: float) -> Sampling:
        """Return the samples of the clip: pieces of `piece` seconds, `least` seconds of them or that `share` of the clip."""
        scan, rate = self.look(), self.source.facts.rate
        length = max(1, round(piece * rate))
        return choose_samples(scan, length=length, most=max(length, round(least * rate), round(share * scan.count)))

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
        stored = None if self.store is None or output is not None else self.store.find(name, place)
        if stored is None:
            clock = Stopwatch()
            try:
                header = 0 if sampling.is_whole else header_bytes(self.source.facts, self.recipe, place)
                encoded = self._encode_samples(sampling.samples, place, output, header)
            except EncodeError as error:
                raise EncodeError(f"{self.recipe.parameter.name} {self.recipe.parameter.text(place)}: {error}") from None
            stored = encoded, clock.seconds()
            if self.store is not None and output is None:
                self.store.add(name, place, *stored)
        return stored

    def summarise(self, sampling: Sampling, place: int, encoded: Sequence[EncodedSample], seconds: float) -> Trial:
        """Return the trial of samples that were encoded with a setting, which took `seconds`."""
        setting = self.recipe.parameter.values[place]
        first = sampling.samples[0].first if sampling.is_whole else 0
        shown = self.look().seconds(first, sampling.frames, self.source.facts)
        return summarise(setting, encoded, sampling, self.targets, self.recipe, shown, seconds)

    def _encode_samples(
        self, samples: Sequence[Sample], place: int, output: VideoOutput | None, header: int
    ) -> list[EncodedSample]:
        total = sum(sample.count for sample in samples)
        encoded: list[EncodedSample] = []
        done = 0
        for sample in samples:
            stream = Stream(header)
            pairs = encoded_pairs(
                partial(self.source.frames, sample.first - sample.lead, sample.encoded, self.look()),
                sample,
                self.source.facts,
                self.recipe,
                place,
                stream,
                output,
            )
            encoded.append(self.scorer.sample(pairs, stream, self.progress, done, total))
            done += sample.count
        return encoded
