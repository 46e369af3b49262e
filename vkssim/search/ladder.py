"""Search a ladder: the sizes and settings whose scores are best for their bit rates, and the rungs to take of them."""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import numpy as np

from ..clips import UNCHANGED, SourcePictures, VideoFacts
from ..errors import EncodeError, OptionError
from ..report.bd_rate import ENOUGH_POINTS
from ..report.results import decibel
from ..report.thresholds import parse_pooled
from ..utils.progress import Progress
from .command_line import encode_name, shell_script
from .defaults import (
    APPLE_H264,
    ENCODER,
    LADDER_TRIALS,
    MAX_BITRATE,
    MIN_BITRATE,
    MIN_SECONDS,
    RATE_FACTOR,
    TOP_SIMILARITY,
    TOP_VMAF,
)
from .model import SettingCurve
from .options import SearchOptions, check_types, parse_targets
from .recipe import EncoderSpec, Recipe, as_spec, make_recipe, values_of
from .rungs import (
    LadderChoice,
    LadderOptions,
    LadderTrial,
    Rendition,
    cheapest_that_meets,
    choose,
    learn_from,
    next_for_rate,
    next_for_targets,
    rate_prior,
    rung_rates,
)
from .search_run import SampledSearch
from .source import Sampling, Source
from .trial import MAX_UNUSABLE, Target, TrialHistory, damage_notes, first_curves, pooled_values

_MIN_MS_SSIM = 176  # samples of a side
_BITRATES = 1e-6, 1e9  # kbit/s, beyond any that a video has
_MIN_SIDE = 64  # of a rendition; SVT-AV1 encodes no smaller ones


class LadderSearch(SampledSearch[LadderTrial, LadderChoice]):
    """A search for a ladder, as `search_ladder` returns it."""

    def __init__(
        self,
        source: Source,
        recipes: dict[tuple[int, int], Recipe],
        options: SearchOptions,
        ladder: LadderOptions,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(source, next(iter(recipes.values())), options)
        self._recipes = recipes
        self._ladder = ladder
        self._notes += notes

    def script(self) -> str:
        """Return a shell script that encodes each rung with FFmpeg; "" if there are none. Raises VkssimError."""
        rungs = self.choice.rungs
        return shell_script(dict(map(self._command, rungs))) if rungs else ""

    def _run(self) -> Generator[LadderTrial, None, LadderChoice]:
        sampling, parameter, most = self._sample(), self.recipe.parameter, self._options.trials
        score, *targets = self.targets
        required = bool(targets)
        if not required:
            targets = _top(score)
            self.targets = (score, *targets)
        renditions = [self._rendition(size, score, targets) for size in self._recipes]
        unusable: list[EncodeError] = []

        for rendition, place in islice(self._wanted(renditions, targets), most):
            try:
                done = self._ladder_trial(sampling, rendition, place)
            except EncodeError as error:
                rendition.history.drop(place, error)
                unusable.append(EncodeError(f"{_text(rendition.size)}, {error}"))
                if not self.trials and len(unusable) >= MAX_UNUSABLE:
                    break
                continue
            rendition.add(place, done.trial, score.score(done.trial))
            tried = [size for size in renditions if size.history.tried]
            for untried in renditions:
                if not untried.history.tried:
                    learn_from(untried, min(tried, key=lambda size: abs(math.log(size.pixels / untried.pixels))))
            yield done

        if not self.trials:
            raise unusable[0]
        limited = len(self.trials) + len(unusable) >= most
        choice = choose(self.trials, self._ladder, score, targets, limited=limited, required=required)
        commands = tuple(self._command(rung)[1] for rung in choice.rungs)
        left_out = [f"{error}; it is left out" for error in unusable]
        for rendition in renditions:
            left_out += [f"{_text(rendition.size)}, {note}" for note in damage_notes(parameter, rendition.outdone)]
        return replace(choice, commands=commands, notes=(*self._notes, *left_out, *choice.notes))

    def _rendition(self, size: tuple[int, int], score: Target, targets: Sequence[Target]) -> Rendition:
        recipe = self._recipes[size]
        curve = replace(first_curves(recipe, [score])[0], limit=math.inf)
        rate = rate_prior(recipe.encoder, recipe.parameter, curve.prior, size[0] * size[1], float(self.source.facts.rate))
        history = TrialHistory(targets, recipe.parameter, first_curves(recipe, targets))
        return Rendition(size, SettingCurve(rate, -math.inf), curve, history, size in self._ladder.sizes)

    def _wanted(self, renditions: Sequence[Rendition], targets: Sequence[Target]) -> Iterator[tuple[Rendition, int]]:
        """Yield the encodes that are worth it, each after the one before was learned from."""
        candidates = [rendition for rendition in renditions if rendition.is_rung]
        while targets and (encode := next_for_targets(candidates)) is not None:
            yield encode
        for rate in rung_rates(self._ladder, cheapest_that_meets(self.trials, self._ladder, targets)):
            while (encode := next_for_rate(candidates, math.log2(rate))) is not None:
                yield encode
        for height, rate in self._ladder.fixed:
            rendition = next(rendition for rendition in renditions if rendition.size[1] == height)
            while (place := rendition.place_of(math.log2(rate))) not in rendition.history.tried:
                yield rendition, place

    def _ladder_trial(self, sampling: Sampling, rendition: Rendition, place: int) -> LadderTrial:
        """Return the trial of a rendition with a setting. Raises EncodeError."""
        size, weights = rendition.size, [sample.weight for sample in sampling.samples]
        trial, encoded = self._encode(f"samples {_text(size)}", sampling, place, recipe=self._recipes[size])
        scorer = self._scorer
        assert scorer is not None
        pooled = {
            name: pooled_values([sample.column(name) for sample in encoded], weights, similarity=name in scorer.similarities)
            for name in scorer.names
        }
        return LadderTrial(*size, trial, pooled)

    def _command(self, rung: LadderTrial) -> tuple[str, str]:
        """Return the file of a rung, and FFmpeg's command that writes it."""
        recipe = self._recipes[rung.size]
        place = recipe.parameter.values.index(rung.trial.setting)
        return encode_name(self.source.path, recipe, place), self._command_line(recipe, place)


def search_ladder(
    source: str | os.PathLike[str],
    *,
    heights: Sequence[int],
    encoder: EncoderSpec | str = ENCODER,
    pictures: SourcePictures = UNCHANGED,
    targets: Sequence[str] | str = (),
    score: str | None = None,
    least_bitrate: float = MIN_BITRATE,
    most_bitrate: float = MAX_BITRATE,
    factor: float = RATE_FACTOR,
    fixed: str | None = APPLE_H264,
    features: Sequence[str] | str = (),
    samples: float = MIN_SECONDS,
    backend: str = "vulkan",
    device: str | int | None = None,
    trials: int = LADDER_TRIALS,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> LadderSearch:
    """Search the sizes and settings of an encoder that have the best scores for their bit rates: a ladder for streaming.

    Samples of the clip are made smaller, encoded with PyAV, decoded, scaled back to the size of the source, and scored against
    it. Both ways libswscale scales with its bicubic filter.

    Parameters
    ----------
    source : as in `search_setting`
        The clip.
    heights : sequence of int
        The heights that the ladder may have, in samples; those above the source's are left out. The widths keep the shape.
    encoder : EncoderSpec or str
        The encoder with its options and the parameter to search, or FFmpeg's name of the encoder alone. The parameter is no bit
        rate, `least` and `most` do not limit it, and the encodes have one pass.
    pictures : as in `search_setting`
        The changes of the clip before its renditions are made.
    targets : str or sequence of str
        Pooled scores that the first rung must reach; see `search_setting`. Without them it is the cheapest encode with 0.995 of
        the score, or with 95 of VMAF; it has about `most_bitrate` if none reaches that, or if the score is of another kind.
    score : str, optional
        The score that the ladder is made for, ``"float_ms_ssim"`` for its mean or ``"float_ms_ssim:p5"``. The default is that
        of the first target, else float_ms_ssim, for frames that are too small for it float_ssim.
    least_bitrate, most_bitrate : float
        The bit rates of the lowest and the highest rung in kbit/s.
    factor : float
        The bit rate of a rung over that of the next lower one, at most.
    fixed : str, optional
        The ladder to compare with, as ``"1080:5800,720:3000"``: height and kbit/s. The default is Apple's for H.264; rungs
        above the source's height, or with a side below 64, are left out. None compares with nothing.
    features, samples, backend, device : as in `search_setting`
        The metrics, by default those that `score` and the targets name, the length of all samples, and the device.
    trials : int
        The most trials of all sizes together, 1 or more.
    resume, progress : as in `search_setting`
        The stored trials, and a function that is called with the number of finished frames.

    Returns
    -------
    LadderSearch
        Iterate over it to get each `LadderTrial` as soon as it is done. Its `choice` is the outcome, a `LadderChoice`.

    Raises
    ------
    OptionError, InputError
        As in `search_setting`.

    """
    arguments = dict(locals())
    check_types(search_ladder, arguments)
    low, high = _BITRATES
    if not low <= least_bitrate <= most_bitrate <= high:
        given = f"`least_bitrate` is {least_bitrate:g} and `most_bitrate` {most_bitrate:g} kbit/s"
        raise OptionError(f"{given}; both must be {low:g} to {high:g}, the least one no larger")
    if not 1.05 <= factor <= 10:
        raise OptionError(f"`factor` is {factor:g}; it must be 1.05 to 10")

    spec = as_spec(encoder)
    if values_of(spec).is_bitrate:
        raise OptionError("`parameter` bitrate: a ladder is searched by the quality of its encodes, such as crf or qp")
    if spec != replace(spec, least=None, most=None):
        raise OptionError("`least` and `most` are for one setting of a clip; the bit rates of a ladder limit its settings")

    thresholds = parse_targets(targets)
    clip = Source(os.fspath(source), pictures)
    sizes, notes = _sizes(heights, clip.facts)
    compared, more_notes = _rungs_to_compare(parse_fixed(fixed), clip.facts)
    all_sizes = dict.fromkeys([*sizes, *(_size(height, clip.facts, "fixed") for height, _ in compared)])
    recipes = {size: make_recipe(spec, clip.facts, size) for size in all_sizes}

    if score is None:
        large = min(clip.facts.width, clip.facts.height) >= _MIN_MS_SSIM
        score = f"{thresholds[0].name}:{thresholds[0].pooling}" if thresholds else "float_ms_ssim" if large else "float_ssim"
    options = SearchOptions.of(arguments, thresholds=[parse_pooled(score, "score"), *thresholds])
    ladder = LadderOptions(sizes, compared, least_bitrate, most_bitrate, factor)
    return LadderSearch(clip, recipes, options, ladder, [*notes, *more_notes])


def _top(score: Target) -> list[Target]:
    """Return the target of a ladder for which none was named; a score whose scale is unknown has none."""
    if score.decibels:
        limit = TOP_SIMILARITY
    elif score.threshold.pooling == "mean_db":
        limit = float(decibel(np.array(TOP_SIMILARITY)))
    elif score.threshold.name.startswith("vmaf"):
        limit = TOP_VMAF
    else:
        return []
    return [replace(score, threshold=replace(score.threshold, limit=limit))]


def _sizes(heights: Sequence[int], facts: VideoFacts) -> tuple[list[tuple[int, int]], list[str]]:
    """Return the sizes of a ladder, and a note if some heights are left out. Raises OptionError if no size is left."""
    if not heights:
        raise OptionError("a ladder needs sizes: `heights` 1080,720,540 for instance")
    above = [height for height in heights if height > facts.height]
    sizes = [_size(height, facts) for height in dict.fromkeys(heights) if height <= facts.height]
    larger = f"the source's height is {facts.height}"
    if not sizes:
        raise OptionError(f"`heights` {', '.join(map(str, above))}: {larger}; a ladder needs a size that is no larger")
    return sizes, _left_out("sizes of the ladder", above, larger)


def _rungs_to_compare(rungs: Sequence[tuple[int, float]], facts: VideoFacts) -> tuple[list[tuple[int, float]], list[str]]:
    """Return the rungs of a fixed ladder that are encoded for comparison, and notes about the other rungs."""
    low = [height for height, _ in rungs if height < facts.height and min(_scaled(height, facts)) < _MIN_SIDE]
    larger = [height for height, _ in rungs if height > facts.height]
    notes = _left_out("rungs of the fixed ladder", low, f"no side may be below {_MIN_SIDE}")
    compared = [(height, rate) for height, rate in rungs if height not in (*low, *larger)]
    if rungs and len(compared) < ENOUGH_POINTS:  # too few for a reliable Bjøntegaard delta, so nothing is encoded for it
        has = f"there {'is' if len(compared) == 1 else 'are'} {len(compared)}"
        needed = f"it needs {ENOUGH_POINTS} rungs of the fixed ladder that are no larger than the source"
        return [], [*notes, f"no BD-rate: {needed}; {has}"]
    return compared, notes + _left_out("rungs of the fixed ladder", larger, f"the source's height is {facts.height}")


def _left_out(what: str, heights: Sequence[int], why: str) -> list[str]:
    """Return a note if heights are left out."""
    return [f"{what} are left out, heights {', '.join(map(str, dict.fromkeys(heights)))}: {why}"] if heights else []


def parse_fixed(text: str | None) -> list[tuple[int, float]]:
    """Return the rungs of a fixed ladder, (height, kbit/s), from ``HEIGHT:KBPS,HEIGHT:KBPS``. Raises OptionError."""
    rungs = []
    for part in text.split(",") if text else ():
        with suppress(ValueError):
            height, rate = part.strip().split(":")
            rungs.append((int(height), float(rate)))
            if rungs[-1][0] > 0 and 0 < rungs[-1][1] < math.inf:
                continue
        raise OptionError(f"`fixed` {part!r} is not of the form HEIGHT:KBPS; several have commas between them")
    return rungs


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def _scaled(height: int, facts: VideoFacts) -> tuple[int, int]:
    """Return the size of a height in the shape of the source, with an even width if it is another size."""
    return (facts.width if height == facts.height else round(facts.width * height / facts.height / 2) * 2), height


def _size(height: int, facts: VideoFacts, name: str = "heights") -> tuple[int, int]:
    """Return the size of a rendition; the chroma of most formats needs it to be even. Raises OptionError."""
    width, _ = size = _scaled(height, facts)
    if height == facts.height:
        return size
    if height % 2 or not _MIN_SIDE <= height < facts.height:
        limits = f"between {_MIN_SIDE} and the source's height, which is {facts.height}"
        raise OptionError(f"`{name}` {height}: it must be even, {limits}")
    if width < _MIN_SIDE:
        raise OptionError(f"`{name}` {height}: the width would be {width}, and it must be {_MIN_SIDE} or more")
    return size
