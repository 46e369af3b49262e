"""Search the cheapest setting of an encoder that meets targets, for a clip or for each of its shots.

Settings are tried, and each trial says which one to try next.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from ..clips import UNCHANGED, SourcePictures
from ..errors import EncodeError, OptionError
from ..report.results import FrameScores, ScoreReport
from ..utils.progress import Progress
from ..utils.wording import counted
from .command_line import av1an_command, av1an_zones, x264_zones
from .defaults import ENCODER, MAX_TRIALS, MIN_SECONDS, SURE, TARGET
from .model import SettingCurve
from .options import SearchOptions, check_types, parse_targets
from .output import VideoOutput, checked_output
from .recipe import EncoderSpec, as_spec, make_recipe
from .search_run import SampledSearch, SearchRun
from .source import Sample, Sampling, Source, find_cuts
from .trial import Shot, Trial, TrialHistory, first_curves

_OF_RARE_FRAMES = ("min", "p1")  # pooled values that few frames decide
_MAX_WHOLE = 4  # trials of the whole clip
_OFF_WHOLE = 0.5  # how far the score of the whole clip may be from that of its samples beyond what these show, in dB
_SLOPE_OF_WHOLE = 0.15  # how far the slope of the whole clip may be from that of its samples, in parts of it


@dataclass(frozen=True)
class SettingChoice:
    """The outcome of a search."""

    encoder: str
    parameter: str
    """The parameter that was searched."""
    setting: float
    """Its value; if no setting meets the targets, the value that comes nearest."""
    meets: bool
    """Whether the whole clip meets every target with it, with a probability of `sure` or more."""
    trial: Trial
    """The trial of the setting."""
    certainty: float
    """The probability that no cheaper setting meets the targets on the same frames."""
    probability: float
    """The probability that the whole clip meets the targets: 0 or 1 if it was encoded in one piece."""
    sure: float
    """The requested probability."""
    options: dict[str, str]
    """The setting and all options of the encode, by FFmpeg's names."""
    command: str
    """FFmpeg's command line for it, for a POSIX shell; for bash if a name is no plain text."""
    notes: tuple[str, ...] = ()
    """Losses of the written file against the source, and remarks on the answer."""


class Search(SampledSearch[Trial, SettingChoice]):
    """A search for a setting, as `search_setting` returns it."""

    def _run(self) -> Generator[Trial, None, SettingChoice]:
        options, targets = self._options, self.targets
        sampling = self._sample()
        checked = options.whole or options.output is not None  # trials of the whole clip leave no doubt
        curves = first_curves(self.recipe, targets)
        history = TrialHistory(targets, self.recipe.parameter, curves, 0.5 if checked else options.sure)
        for place, _ in self._try_settings(history, "samples", sampling):
            yield history[place]
        if len(history) >= options.trials and history.next() is not None:
            done = counted(len(history), "trial")
            self._notes.append(f"the search ended after {done}, as many as `trials` allows: another setting may be the answer")

        best = history.nearest
        if not sampling.is_whole and checked:
            self._notes += history.notes
            curves = [curve.around(best, _OFF_WHOLE, _SLOPE_OF_WHOLE) for curve in history.curves]
            history = TrialHistory(targets, history.parameter, curves)
            yield from self._encode_whole(sampling, best, history)
        elif options.output is not None and history[best].meets:
            yield from self._encode_whole(sampling, best, history)  # once more, to the file
        elif options.output is not None:
            self._notes.append("no file is written, since no setting meets the targets")
        self._notes += history.notes

        place, meets = history.nearest, history.best is not None
        trial, rare = history[place], [target.name for target in targets if target.threshold.pooling in _OF_RARE_FRAMES]
        if rare and not trial.whole:
            seldom = "samples seldom have the worst frames of a clip; `whole` looks at all of them"
            self._notes.append(f"{', '.join(rare)}: {seldom}")
        return SettingChoice(
            encoder=self.recipe.encoder.name,
            parameter=self.parameter,
            setting=trial.setting,
            meets=meets,
            trial=trial,
            certainty=history.certainty() if meets else 0.0,
            probability=trial.probability,
            sure=options.sure,
            options=self.recipe.options_of(place),
            command=self._command_line(self.recipe, place),
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def _encode_whole(self, sampling: Sampling, place: int | None, history: TrialHistory) -> Iterator[Trial]:
        """Encode the whole clip with a setting, and with better ones until one meets the targets; write the file if asked.

        A setting between one that meets them and one that does not is tried as well.
        """
        whole, path, met = Sampling.whole(sampling.frames, sampling.cuts), self._options.output, False
        for _ in range(_MAX_WHOLE):
            if place is None:
                break
            try:
                with nullcontext() if path is None else VideoOutput(path, self.source.path, self.recipe) as output:
                    trial, _ = self._encode("whole", whole, place, output=output)
                    if trial.meets and output is not None:
                        output.keep()
                        self._notes += output.notes
            except EncodeError as error:
                history.drop(place, error)
            else:
                history.add_trial(place, trial)
                met |= trial.meets
                yield trial

            better = history.likely() if history.best is None else history.best
            place = history.between() if met else better
        if path is not None and not met:
            self._notes.append("no file is written, since no setting meets the targets on the whole clip")


def search_setting(
    source: str | os.PathLike[str],
    *,
    encoder: EncoderSpec | str = ENCODER,
    pictures: SourcePictures = UNCHANGED,
    targets: Sequence[str] | str = TARGET,
    sure: float = SURE,
    features: Sequence[str] | str = (),
    samples: float = MIN_SECONDS,
    whole: bool = False,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    backend: str = "vulkan",
    device: str | int | None = None,
    trials: int = MAX_TRIALS,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Search:
    """Search the cheapest setting of an encoder whose scores meet targets.

    Samples of the clip are encoded with PyAV, and the luma that a decoder gives is scored against that which the encoder got,
    with chroma if a metric reads it. A model of score against setting says which setting to try next. If no setting meets the
    targets, `SettingChoice.meets` is False.

    Parameters
    ----------
    source : str or path
        The clip, a file that FFmpeg reads, in Y'CbCr or grey.
    encoder : EncoderSpec or str
        The encoder with its options and the parameter to search, or FFmpeg's name of the encoder alone.
    pictures : SourcePictures
        The changes of the clip before it is encoded: deinterlaced, cropped, scaled. Scores compare with the changed clip.
    targets : str or sequence of str
        Pooled scores that the encode must reach: ``"float_ms_ssim=0.98"`` for the mean, ``"float_ms_ssim:p5=0.97"`` for another
        pooled value. All of them must hold.
    sure : float
        The least probability that the whole clip meets the targets, 0.5 to 0.999. It decides between settings of which samples
        alone were encoded, and it chooses the last trial if there may be no more.
    features : str or sequence of str
        Metrics with their options, such as ``"float_ssim=scale=1"``. The default is those that the targets name.
    samples : float
        The length of all samples together, in seconds; 1 % of a longer clip. A clip that is not much longer is encoded whole.
    whole : bool
        Check the setting on the whole clip, and take a better one if it fails there.
    output : str or path, optional
        A file for the encode of the whole clip, .mkv, .mp4 or .webm, with sound and subtitles copied. It implies `whole`.
    force : bool
        Write the encode of Dolby Vision of profile 5 too, which players show in wrong colours without its metadata.
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
        A function that is called with the number of finished frames of a step and the expected number, which is None if it is
        not known.

    Returns
    -------
    Search
        Iterate over it to get each `Trial` as soon as it is done. Its `choice` is the outcome, a `SettingChoice`.

    Raises
    ------
    OptionError
        An encoder, an option, a target or a range is not possible.
    InputError
        The source cannot be read, or cannot be encoded.
    OutputError
        The output cannot be written.

    """
    arguments = dict(locals())
    check_types(search_setting, arguments)
    clip = Source(os.fspath(source), pictures)
    recipe = make_recipe(as_spec(encoder), clip.facts)
    path = checked_output(output, clip.path, recipe, force=force)
    options = SearchOptions.of(arguments, thresholds=parse_targets(targets), output=path)
    return Search(clip, recipe, options)


# -- shots --------------------------------------------------------------------------------------------------------------

_OFF_SHOT = 3.0  # how far the score of a shot may be from that of the shot before it, in dB
_SLOPE_OF_SHOT = 0.25  # how far its slope may be, in parts of it


class ShotSearch(SearchRun[Shot, ScoreReport]):
    """A search for a setting of each shot, as `search_shots` returns it. Iterate over it to get each `Shot`."""

    @property
    def shots(self) -> list[Shot]:
        """Return the shots that are done."""
        return self._results

    @property
    def notes(self) -> list[str]:
        """Return remarks on the answer, and the losses of the written file against the source."""
        return self._notes

    @property
    def report(self) -> ScoreReport:
        """Return the scores of all frames, each encoded with the setting of its shot. Raises VkssimError."""
        return self._finished()

    @property
    def bytes(self) -> int:
        """Return the bytes of the shots that are done, each encoded by itself."""
        return sum(shot.trial.bytes for shot in self.shots)

    def zones(self) -> str:
        """Return the shots in the form that Av1an reads with ``--zones``. Raises OptionError for options that Av1an lacks."""
        return av1an_zones(self.shots, self.recipe)

    def commands(self, zones: str) -> list[str]:
        """Return the command lines that encode the shots with their settings, for a POSIX shell; [] if there are none.

        The first one is Av1an's, which reads `zones()` from a file `zones`. For libx264, FFmpeg's with x264's zones follows.
        """
        recipe, path = self.recipe, self.source.path
        try:
            self.zones()
        except OptionError:
            return []
        lines = [av1an_command(path, zones, recipe)]
        if recipe.encoder.name == "libx264":
            place = recipe.parameter.values.index(self.shots[0].setting)
            lines.append(self._command_line(recipe, place, x264_zones(self.shots)))
        return lines

    def _run(self) -> Generator[Shot, None, ScoreReport]:
        cuts = find_cuts(self._scan.changes)
        curves = first_curves(self.recipe, self.targets)
        for first, end in zip(cuts, [*cuts[1:], self._scan.count], strict=True):
            shot, curves = self._search_shot(Sample(first, end - first), curves)
            yield shot
        if self._options.output is not None and not all(shot.meets for shot in self.shots):
            self._notes.append("no file is written, since not every shot meets the targets")
        elif self._options.output is not None:
            with VideoOutput(self._options.output, self.source.path, self.recipe, parts=True) as output:
                for shot in self.shots:
                    sampling = Sampling((Sample(shot.first, shot.count),), shot.count)
                    self._encode("", sampling, self.recipe.parameter.values.index(shot.setting), output=output)
                output.keep()
                self._notes += output.notes
        return self._report()

    def _search_shot(self, sample: Sample, curves: Sequence[SettingCurve]) -> tuple[Shot, list[SettingCurve]]:
        """Return the outcome for a shot, and the curves that are expected for the next one."""
        history = TrialHistory(self.targets, self.recipe.parameter, curves)
        tried = self._try_settings(history, f"shot {sample.first}+{sample.count}", Sampling((sample,), sample.count))
        scores = {place: encoded[0].scores for place, encoded in tried}
        self._notes += [f"frames {sample.first} to {sample.first + sample.count - 1}: {note}" for note in history.notes]
        best = history.nearest
        trial, every = history[best], tuple(history[place] for place in sorted(scores))
        shot = Shot(sample.first, sample.count, trial.setting, trial.meets, trial, len(history), scores[best], every)
        return shot, [curve.around(best, _OFF_SHOT, _SLOPE_OF_SHOT) for curve in history.curves]

    def _report(self) -> ScoreReport:
        facts, scorer, scan = self.source.facts, self._scorer_for(self.recipe), self._scan
        frames = [
            {name: shot.scores[name][number] for name in shot.scores} for shot in self.shots for number in range(shot.count)
        ]
        times = [float((time - scan.times[0]) * facts.time_base) for time in scan.times]
        return ScoreReport(
            reference=self.source.path,
            distorted=f"{self.source.path} ({self.recipe.encoder.name}, a {self.parameter} for each shot)",
            width=facts.width,
            height=facts.height,
            bits=self.recipe.bits,
            names=scorer.names,
            backend=scorer.info,
            notes=list(facts.notes),
            frames=[FrameScores(index, metrics, time) for index, (metrics, time) in enumerate(zip(frames, times, strict=True))],
            rate=float(facts.rate),
            similarities=scorer.similarities,
        )


def search_shots(
    source: str | os.PathLike[str],
    *,
    encoder: EncoderSpec | str = ENCODER,
    pictures: SourcePictures = UNCHANGED,
    targets: Sequence[str] | str = TARGET,
    features: Sequence[str] | str = (),
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    backend: str = "vulkan",
    device: str | int | None = None,
    trials: int = MAX_TRIALS,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> ShotSearch:
    """Search the cheapest setting of an encoder for each shot of a clip, on all of its frames.

    Parameters
    ----------
    source, encoder, pictures, targets, features : as in `search_setting`
        The clip, its encoder, the changes of its pictures, and the scores that each shot must reach. Shots are encoded in one
        pass.
    output : str or path, optional
        A file for the clip, each shot encoded with its setting: .mkv, .mp4 or .webm, with sound and subtitles copied. Every
        shot begins with a key frame. It is written only if every shot meets the targets.
    force : bool
        As in `search_setting`.
    backend, device : as in `search_setting`
        The device that computes the scores.
    trials : int
        The most trials of a shot, 1 or more.
    resume, progress : as in `search_setting`
        The stored trials, and a function that is called with the number of finished frames.

    Returns
    -------
    ShotSearch
        Iterate over it to get each `Shot` as soon as it is done. Then `zones()` is the list for Av1an, and `report` has the
        scores of all frames.

    Raises
    ------
    OptionError, InputError, OutputError
        As in `search_setting`.

    """
    arguments = dict(locals())
    check_types(search_shots, arguments)
    spec = as_spec(encoder)
    if spec.two_pass:
        raise OptionError("`two_pass` is for one setting of a clip; shots are encoded in one pass")
    clip = Source(os.fspath(source), pictures)
    recipe = make_recipe(spec, clip.facts)
    path = checked_output(output, clip.path, recipe, force=force)
    options = SearchOptions.of(arguments, thresholds=parse_targets(targets), output=path)
    return ShotSearch(clip, recipe, options)
