"""Search a setting for each shot of a clip: the cheapest one that meets the targets on the frames of the shot."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence

from ..clips import UNCHANGED, SourcePictures
from ..errors import OptionError
from ..report.results import FrameScores, ScoreReport
from ..utils.progress import Progress
from .command_line import av1an_command, av1an_zones, x264_zones
from .defaults import ENCODER, MAX_TRIALS, TARGET
from .model import SettingCurve
from .options import SearchOptions, check_types, parse_targets
from .output import VideoOutput, checked_output
from .recipe import EncoderSpec, as_spec, make_recipe
from .search_run import SearchRun
from .source import Sample, Sampling, Source, find_cuts
from .trial import Shot, TrialHistory, first_curves

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
        facts, scorer, scan = self.source.facts, self._scorer, self._scan
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
