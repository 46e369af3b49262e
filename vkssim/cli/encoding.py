"""Options of the commands that encode clips, their progress and their files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..frames.options import SourcePictures
from ..search.defaults import ENCODER, ENCODER_NAMES, MIN_SECONDS, STEP
from ..storage.folder import write_output
from ..utils.progress import ProgressBar
from ..utils.values import Section
from .command import Choice, add_options, option
from .options import declared_options, feature_option, json_option
from .output import json_text, print_text, say, say_written
from .tables import decimals

if TYPE_CHECKING:
    from ..search.ladder import LadderSearch
    from ..search.recipe import EncoderSpec
    from ..search.search import Search
    from ..search.search_run import SearchRun
    from ..search.trial import Trial

encoder_options = add_options(
    option("--encoder", Section.ENCODER, "Encode with that encoder of FFmpeg.", type=Choice(ENCODER_NAMES), default=ENCODER),
    option(
        "--enc options",
        Section.ENCODER,
        "Give the encoder these options: preset=6:film-grain=8. May be repeated.",
        multiple=True,
        metavar="NAME=VALUE[:…]",
    ),
    option(
        "--parameter",
        Section.ENCODER,
        "Search that parameter: crf, qp, cq, or bitrate in kbit/s. Default: crf, of NVENC cq.",
        metavar="NAME",
    ),
    declared_options("pictures", SourcePictures),
    option("--step", Section.ENCODER, "Try values that are X apart; bit rates are 3 % apart.", default=STEP, metavar="X"),
    option("--bits", Section.ENCODER, "Encode with that depth. Default: that of the source.", type=int, metavar="N"),
    feature_option("the metrics that the targets name"),
    option(
        "--samples",
        Section.FRAMES,
        "Encode samples of that length altogether; 1 % of a longer clip. A clip that is not much longer is encoded whole.",
        default=MIN_SECONDS,
        metavar="SECONDS",
    ),
    option(
        "--resume",
        Section.OUTPUTS,
        "Store trials in PATH.journal until the search is done, and go on from those that are there.",
        metavar="PATH",
    ),
    json_option,
    option("-q --quiet", Section.OUTPUTS, "Print no progress and no table, only what was found.", is_flag=True),
)
"""The options of encoder, parameter, samples and outputs that all searches have."""


def encoder_spec(values: dict[str, Any]) -> EncoderSpec:
    """Take the values of an encoder's options out of those of a command, and return them as one. Raises OptionError."""
    from ..search.recipe import EncoderSpec

    names = ("options", "parameter", "least", "most", "step", "bits", "two_pass")
    return EncoderSpec(values.pop("encoder"), **{name: values.pop(name) for name in names if name in values})


def score_cells(trial: Trial, limits: Mapping[str, float]) -> list[str]:
    """Return the scores of a trial as a table has them, told from the limits of the targets."""
    return [decimals(value, limits.get(name)) for name, value in trial.values.items()]


def scores_text(trial: Trial, limits: Mapping[str, float]) -> str:
    """Return the scores of a trial as a sentence has them."""
    return ", ".join(f"{name} {text}" for name, text in zip(trial.values, score_cells(trial, limits), strict=True))


def print_search(
    running: Search | LadderSearch, *, as_json: bool, quiet: bool, brief: str, print_details: Callable[[], None]
) -> None:
    """Print the outcome of a search as JSON, or if `quiet` in `brief`, or in detail, and then its notes."""
    if as_json:
        sampling = running.sampling
        answer = {
            "choice": asdict(running.choice),
            "pictures": asdict(running.source.pictures),
            "trials": [asdict(trial) for trial in running.trials],
            "samples": [] if sampling is None else [asdict(sample) for sample in sampling.samples],
            "frames": None if sampling is None else sampling.frames,
            "shots": None if sampling is None else len(sampling.cuts),
        }
        print_text(json_text(answer))
    elif quiet:
        print_text(brief)
    else:
        print_details()
    for note in running.choice.notes:
        say(f"note: {note}")


def write_files(files: Sequence[tuple[str | None, Callable[[], str]]]) -> list[str]:
    """Write the files that were asked for, each with its text, and return their names. Raises OutputError."""
    for path, text in files:
        if path is not None:
            write_output(text(), path)
    return [path for path, _ in files if path is not None]


class EncodeProgress:
    """The output of a search: a bar for each step, which names the step, a line for each result, and the names of the files.

    Nothing is shown with `quiet`, and no bar without a terminal. `usual` is the number of trials that most runs need, if known.
    """

    def __init__(self, *, quiet: bool, usual: int = 0) -> None:
        self.quiet = quiet
        self._usual = usual
        self._shows = sys.stderr.isatty() and not quiet
        self._bar: ProgressBar | None = None
        self._scans = False
        self._trials = 0

    def run(self, running: SearchRun[Any, Any], line: Callable[[Any, Any], str]) -> None:
        """Run a search to its end, and print a `line` for each result as soon as it is there. Raises VkssimError."""
        try:
            with running:
                for result in running:
                    self.close()
                    if not self.quiet:
                        say(line(running, result))
        finally:
            self.close()

    def say_files(self, *names: str | None) -> None:
        """Print which files were written; None is a file that was not."""
        for name in names if not self.quiet else ():
            if name is not None:
                say_written(name)

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` frames of `total` are finished; while the clip is scanned, the total is None."""
        if not self._shows:
            return
        if self._scans != (total is None):
            self.close()
        if self._bar is None:
            self._scans = total is None
            self._trials += not self._scans
            rest = f" of about {self._usual}" if self._trials <= self._usual else ""
            self._bar = ProgressBar()
            self._bar.say("scanning" if self._scans else f"trial {self._trials}{rest}")
        self._bar(done, total)

    def close(self) -> None:
        """Remove the bar; the next step has a new one."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
