"""Search the cheapest setting of an encoder that meets targets: try settings, learn from each trial, and choose."""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ..utils.wording import counted
from .command_line import command_line
from .defaults import LEAST_SECONDS, MOST_TRIALS, SAMPLE_SECONDS, SHARE, STEP
from .encoders import encoder_of
from .model import Curve, Settings, normal_cdf
from .options import SearchOptions, check_samples, check_trials, checked_targets, listed
from .output import VideoOutput, check_times, checked_output
from .recipe import Recipe, make_recipe, split_options
from .runner import TrialRunner
from .running import Running
from .samples import Sampling
from .source import Source
from .trial import HIGHEST, Progress, Target, Trial

_OF_RARE_FRAMES = ("min", "p1")  # pooled values that few frames decide
_MOST_WHOLE = 4  # trials of the whole clip
_OFF_WHOLE = 0.5  # how far the score of the whole clip may be from that of its samples beyond what these show, in dB
_SLOPE_OF_WHOLE = 0.15  # how far the slope of the whole clip may be from that of its samples, in parts of it


@dataclass(frozen=True)
class Choice:
    """Hold the outcome of a search.

    Parameters
    ----------
    encoder, parameter : str
        The encoder, and the parameter that was searched.
    setting : float
        The value of the parameter. Where no setting meets the targets, it is the one that comes nearest.
    meets : bool
        Whether the setting meets every target, on the frames that were encoded.
    trial : Trial
        The trial of that setting.
    certainty : float
        The probability that no cheaper setting would have met the targets on the same frames, 0 to 1.
    probability : float
        The probability that the whole clip meets the targets: 0 or 1 where it was encoded in one piece.
    spread : float
        How far the setting may be from the one of the whole clip, as a standard deviation; 0 where that was encoded.
    options : dict of str to str
        The setting and all options of the encode, by FFmpeg's names.
    command : str
        FFmpeg's command line for the encode, for a POSIX shell.
    notes : tuple of str
        What a file that was written could not take over from the source, and what is to be known of the answer.

    """

    encoder: str
    parameter: str
    setting: float
    meets: bool
    trial: Trial
    certainty: float
    probability: float
    spread: float
    options: dict[str, str]
    command: str
    notes: tuple[str, ...] = ()


class Search(Running[Trial, Choice]):
    """Search a setting; iterate over it to get each trial as soon as it is done, or ask for its `choice`.

    It is what `search` returns. The device is open until all trials are done, or until `close`.
    """

    def __init__(self, source: Source, recipe: Recipe, options: SearchOptions) -> None:
        super().__init__(source, recipe, options)
        self.sampling: Sampling | None = None

    @property
    def trials(self) -> list[Trial]:
        """Return the trials that are done."""
        return self._results

    @property
    def choice(self) -> Choice:
        """Return the outcome, after all trials. Raises VkssimError."""
        return self._finished()

    def _run(self, runner: TrialRunner) -> Generator[Trial, None, Choice]:
        options, targets = self._options, runner.targets
        self.sampling = sampling = runner.sampling(SAMPLE_SECONDS, options.seconds, SHARE)
        check_times(options.output, self._source.path, self._source.facts, runner.look())
        settings = Settings(len(self._recipe.parameter.values), first_curves(self._recipe, targets))
        found: dict[int, Trial] = {}
        while len(found) < options.most_trials and (place := settings.next()) is not None:
            found[place] = runner.encode("samples", sampling, place)
            learn(settings, place, found[place], targets)
            yield found[place]
        place = nearest(found, settings, targets)
        notes = [*self._source.facts.notes]
        if len(found) >= options.most_trials and settings.next() is not None:
            done = counted(len(found), "trial")
            notes.append(f"the search ended after {done}, as many as `trials` allows: another setting may be the answer")
        if options.output is not None or (options.whole and not sampling.is_whole):
            whole = Sampling.whole(sampling.frames, sampling.cuts)
            if not sampling.is_whole:
                curves = [curve.around(place, _OFF_WHOLE, _SLOPE_OF_WHOLE) for curve in settings.curves]
                settings, found = Settings(settings.count, curves), {}
            if sampling.is_whole and not found[place].meets:
                notes.append("no file is written, since no setting meets the targets")
            else:
                yield from self._check_whole(runner, whole, place, found, settings, notes)
            place = nearest(found, settings, targets)
        rare = [target.name for target in targets if target.threshold.pooling in _OF_RARE_FRAMES]
        if rare and not found[place].whole:
            notes.append(f"{', '.join(rare)}: samples seldom have the worst frames of a clip; `whole` looks at all of them")
        return self._choose(place, found, settings, targets, notes)

    def _check_whole(
        self, runner: TrialRunner, whole: Sampling, place: int, found: dict[int, Trial], settings: Settings, notes: list[str]
    ) -> Iterator[Trial]:
        """Encode the whole clip with a setting, and with better ones until one meets the targets; write the file if asked."""
        chosen: int | None = place
        for _ in range(_MOST_WHOLE):
            if chosen is None:
                break
            with ExitStack() as stack:
                output = None
                if self._options.output is not None:
                    written = VideoOutput(self._options.output, self._source.path, self._source.facts, self._recipe)
                    output = stack.enter_context(written)
                trial = runner.encode("whole", whole, chosen, output)
                if trial.meets and output is not None:
                    output.keep()
                    notes += output.notes
            found[chosen] = trial
            learn(settings, chosen, trial, runner.targets)
            yield trial
            if trial.meets:
                return
            chosen = settings.likely()
        if self._options.output is not None:
            notes.append("no file is written, since no setting meets the targets on the whole clip")

    def _choose(
        self, place: int, found: dict[int, Trial], settings: Settings, targets: Sequence[Target], notes: Sequence[str]
    ) -> Choice:
        trial, parameter = found[place], self._recipe.parameter
        step = abs(parameter.values[min(place + 1, len(parameter.values) - 1)] - parameter.values[max(0, place - 1)]) / 2
        probability, spread = 1.0, 0.0
        for target, curve in zip(targets, settings.curves, strict=True):
            margin = target.unit(trial.values[target.name]) - target.unit(target.limit)
            deviation = trial.deviations[target.name]
            sure = float(trial.meets) if trial.whole else normal_cdf(margin / math.hypot(deviation, curve.prior.noise))
            probability = min(probability, sure)
            spread = max(spread, step * deviation / abs(curve.slope(place)))
        return Choice(
            encoder=self._recipe.encoder.name,
            parameter=parameter.name,
            setting=trial.setting,
            meets=trial.meets,
            trial=trial,
            certainty=settings.certainty() if trial.meets else 0.0,
            probability=probability,
            spread=0.0 if trial.whole else spread,
            options=self._recipe.options_of(self._source.facts, place),
            command=command_line(self._source.path, self._source.facts, self._recipe, place),
            notes=tuple(notes),
        )


def first_curves(recipe: Recipe, targets: Sequence[Target]) -> list[Curve]:
    """Return a curve without trials for each target."""
    curves = []
    for target in targets:
        name, pooling = target.threshold.name, target.threshold.pooling
        prior = recipe.encoder.prior(recipe.parameter, name, pooling, decibels=target.decibels)
        curves.append(Curve(prior, target.unit(target.limit), HIGHEST if target.decibels else math.inf))
    return curves


def learn(settings: Settings, place: int, trial: Trial, targets: Sequence[Target]) -> None:
    """Add a trial to the settings that were tried, with the value of each target in the unit of its curve."""
    settings.add(place, [target.unit(trial.values[target.name]) for target in targets], meets=trial.meets)


def nearest(found: dict[int, Trial], settings: Settings, targets: Sequence[Target]) -> int:
    """Return the cheapest setting that met the targets, else the one that missed them by least."""
    if settings.best is not None:
        return settings.best

    def missing(place: int) -> tuple[float, int]:
        values = found[place].values
        short = [target.unit(target.limit) - target.unit(values[target.name]) for target in targets]
        return max(math.inf if math.isnan(one) else one for one in short), -place

    return min(found, key=missing)


def search(
    source: str | os.PathLike[str],
    *,
    encoder: str,
    targets: Sequence[str] | str,
    parameter: str | None = None,
    least: float | None = None,
    most: float | None = None,
    step: float = STEP,
    enc: Sequence[str] | str = (),
    bits: int | None = None,
    two_pass: bool = False,
    features: Sequence[str] | str = (),
    samples: float = LEAST_SECONDS,
    whole: bool = False,
    output: str | os.PathLike[str] | None = None,
    backend: str = "vulkan",
    device: str | int | None = None,
    trials: int = MOST_TRIALS,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Search:
    """Search the cheapest setting of an encoder whose scores meet targets.

    Samples of the clip are encoded with PyAV, and scored against their source. A model of score against setting says which
    setting to try next.

    Parameters
    ----------
    source : str or path
        The clip, a file that FFmpeg reads, in Y'CbCr or grey.
    encoder : str
        FFmpeg's name: libx264, libx265, libsvtav1, libvpx-vp9, h264_nvenc, hevc_nvenc or av1_nvenc.
    targets : str or sequence of str
        Pooled scores that the encode must reach: ``"float_ms_ssim=0.98"`` for the mean, ``"float_ms_ssim:p5=0.97"`` for another
        pooled value. All of them must hold.
    parameter : str, optional
        The parameter to search: ``"crf"``, ``"qp"``, for NVENC ``"cq"``, or ``"bitrate"`` in kbit/s. The default is the first
        that the encoder has.
    least, most : float, optional
        The least and the largest value of it.
    step : float
        The distance of two values; bit rates are 3 % apart.
    enc : str or sequence of str
        Options of the encoder, ``"preset=6:film-grain=8"``.
    bits : int, optional
        The depth of the encode. The default is that of the source.
    two_pass : bool
        Encode in two passes, which needs `parameter` ``"bitrate"``, and libx264 or libx265.
    features : str or sequence of str
        Metrics with their options, such as ``"float_ssim=scale=1"``. The default is those that the targets name.
    samples : float
        The length of all samples together, in seconds; 1 % of a longer clip. A clip that is not much longer is encoded whole.
    whole : bool
        Check the setting on the whole clip, and take a better one where it fails there.
    output : str or path, optional
        A file for the encode of the whole clip, .mkv, .mp4 or .webm, with sound and subtitles copied. It implies `whole`.
    backend : {"vulkan", "cpu"}
        The backend that computes the scores. No other backend ever replaces it.
    device : str or int, optional
        Index, part of the name, or UUID of the Vulkan device.
    trials : int
        The most trials of samples, 1 or more.
    resume : str or path, optional
        A path beside which trials are stored until the search is done, in ``PATH.journal``. If an equal search was cut off,
        this one continues from its trials.
    progress : callable, optional
        A function that is called with the number of finished frames of a step and the expected number, which is None where it
        is not known.

    Returns
    -------
    Search
        Iterate over it to get each `Trial` as soon as it is done. Its `choice` is the outcome, a `Choice`.

    Raises
    ------
    OptionError
        An encoder, an option, a target or a range is not possible.
    InputError
        The source cannot be read, or cannot be encoded.
    OutputError
        The output cannot be written.

    Notes
    -----
    Scores compare the luma that the encoder got with the luma that a decoder gives. A search that finds no setting raises no
    error: `Choice.meets` is False.

    """
    clip, recipe = prepare(source, encoder, parameter, least, most, step, enc, bits, two_pass)
    check_samples(samples)
    check_trials(trials)
    options = SearchOptions(
        thresholds=checked_targets(targets),
        features=listed(features),
        seconds=samples,
        whole=whole,
        output=checked_output(output, recipe),
        backend=backend,
        device=device,
        most_trials=trials,
        resume=resume,
        progress=progress,
    )
    return Search(clip, recipe, options)


def prepare(
    source: str | os.PathLike[str],
    encoder: str,
    parameter: str | None,
    least: float | None,
    most: float | None,
    step: float,
    enc: Sequence[str] | str,
    bits: int | None,
    two_pass: bool,
) -> tuple[Source, Recipe]:
    """Return the clip and how it is encoded; arguments and errors as those of `search`."""
    kind = encoder_of(encoder)
    values = kind.parameter(parameter, step, least, most)
    options = split_options(listed(enc))
    clip = Source(os.fspath(source))
    return clip, make_recipe(kind, values, clip.facts, options, bits=bits, two_passes=two_pass)
