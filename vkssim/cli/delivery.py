"""Deliver the scores of `vkssim score`: lines while it runs, its journal, then files, tables, bare values and SSIM maps."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from ..errors import InterruptedRunError, OptionError, OutputError, ThresholdError, VkssimError
from ..report.numbers import NumberFormat, time_code
from ..utils.interruption import check
from ..utils.values import Section
from ..utils.wording import counted
from .command import option
from .options import option_group
from .output import STANDARD_OUTPUT, check_target, check_targets, form_of, print_text, say, say_written
from .tables import print_line, print_table

if TYPE_CHECKING:
    from ..engine.journal import Journal
    from ..engine.options import Clips, ScoreOptions
    from ..frames.options import RawDescription
    from ..report.results import FrameScores, ScoreReport
    from ..report.thresholds import Threshold

TABLE_WORST = 3
"""The worst frames in the table below the summary."""

_POOLINGS = ("mean", "mean_db", "harmonic_mean", "min", "p5", "p50", "max", "stddev")
_HEADS = {pooling: {"mean_db": "mean dB", "harmonic_mean": "harmonic"}.get(pooling, pooling) for pooling in _POOLINGS}
"""The pooled values that are shown, and their headings."""

_MAP_FRAMES = "worst:5"
_MAP_NAME = re.compile(r"frame_\d{6,}\.(png|npy)")


@dataclass(frozen=True)
class OutputOptions:
    """The options that choose what is printed and written, as the command line names them."""

    paths: tuple[str, ...]
    form: str | None
    html: str | None
    budget: float
    precision: str
    merge: tuple[Path, ...]
    live: bool
    worst: int | None
    profile: bool
    printed: tuple[str, ...]
    quiet: bool

    @property
    def prints_report(self) -> bool:
        """Return whether the report goes to standard output: by the name of an output, or by a form without any output."""
        return any(path in STANDARD_OUTPUT for path in self.paths) or (not self.paths and self.form is not None)

    def outputs(self, inputs: Sequence[str]) -> list[tuple[str | None, str]]:
        """Return the outputs of the report, a path or None for standard output and a form. They and the page are checked.

        Without `form` each has the form of its ending (see `form_of`). Raises OptionError or OutputError if an output cannot
        be written, or if two would go to standard output.
        """
        if self.live and self.prints_report:
            raise OptionError("--live and the report both go to standard output; give the report a file with --output")
        if self.printed and (self.live or self.prints_report):
            second = "--live" if self.live else "the report"
            raise OptionError(f"--print and {second} both go to standard output; --output gives the report a file of its own")
        NumberFormat.parse(self.precision)
        forms = [self.form or form_of(path) for path in self.paths]
        files = [path for path in self.paths if path not in STANDARD_OUTPUT]
        check_targets([*(("--output", path) for path in files), ("--html", self.html)], inputs)
        if len(self.paths) - len(files) > 1:
            raise OutputError("two reports would go to standard output; give one of them a file with --output")
        if not self.paths and self.form is not None:
            return [(None, self.form)]
        return [(None if path in STANDARD_OUTPUT else path, form) for path, form in zip(self.paths, forms, strict=True)]

    def deliver(
        self,
        done: Deliveries,
        outputs: Sequence[tuple[str | None, str]],
        merged: Mapping[Path, ScoreReport],
        limits: Sequence[Threshold],
        pooled: Sequence[Threshold],
        journal: Journal | None,
    ) -> None:
        """Write the report to its outputs, with the scores of other reports, and print tables and pooled values.

        `limits` are thresholds on scores of other reports, on which the run had no verdict.
        """
        from ..report.reading import merge_report
        from ..report.thresholds import check_limits

        report = done.report
        for merged_path, scores in merged.items():
            done.attempt(merge_report, report, merged_path, scores)
        for path, form in outputs:
            done.attempt(self._write, report, path, form, name=path)
        if journal is not None:
            journal.discard_frames(done.failures)
        for note in report.notes if not self.quiet else ():
            say(f"note: {note}")
        for warning in [*report.worker_warnings, *report.warnings]:
            say(f"warning: {warning}")
        if not self.quiet:
            done.attempt(self._print_tables, report)
        if not done.complete or any(threshold.name not in report.names for threshold in (*limits, *pooled)):
            return  # the scores are not complete, or could not be merged
        done.attempt(check_limits, limits, report)
        if pooled:
            numbers, values = NumberFormat.parse(self.precision), [threshold.value(report) for threshold in pooled]
            texts = (numbers.text(value, "null" if math.isnan(value) else str(value)) for value in values)
            done.attempt(print_text, "".join(f"{text}\n" for text in texts))

    def _write(self, report: ScoreReport, path: str | None, form: str) -> None:
        from ..report import render
        from ..storage.folder import write_output

        text = render(report, form, self.precision)
        if path is None:
            print_text(text)
        else:
            write_output(text, path)

    def _print_tables(self, report: ScoreReport) -> None:
        file = sys.stderr if self.live or self.printed or self.prints_report else sys.stdout
        print_summary(report, file)
        print_worst(report, TABLE_WORST if self.worst is None else self.worst, file)
        if self.profile:
            print_profile(report, file)


class Deliveries:
    """The outputs of a report, of which each is written although another fails. `written` has their names."""

    def __init__(self, report: ScoreReport, failure: VkssimError | InterruptedRunError | None) -> None:
        self.report = report
        self.complete = failure is None or isinstance(failure, ThresholdError)
        self.failures: list[VkssimError | InterruptedRunError] = [] if failure is None else [failure]
        self.written: list[str] = []

    def check(self) -> None:
        """Stop if the user interrupts. After a failure, the rest is written all the same."""
        if not self.failures:
            check()

    def attempt(self, write: Callable[..., object], *what: object, name: str | None = None) -> None:
        """Write something, whose `name` is printed at the end; a failure is noted."""
        try:
            write(*what)
            self.written += [] if name is None else [name]
        except VkssimError as error:
            self.failures.append(error)

    def end(self, *, quiet: bool) -> None:
        """Print the names of the outputs. Raises the last failure."""
        for name in self.written if not quiet else ():
            say_written(name)
        for failure in self.failures[:-1]:
            say(failure)
        if self.failures:
            raise self.failures[-1]


class LiveLines:
    """A printer of each frame's line, as soon as the frame is scored.

    If a line cannot be written, the run goes on without lines, and `failure` says why; with `ends_run` a call raises it.
    """

    def __init__(self, precision: str, *, ends_run: bool) -> None:
        self._numbers = NumberFormat.parse(precision)
        self._ends_run = ends_run
        self.failure: OutputError | None = None

    def __call__(self, frames: Sequence[FrameScores]) -> None:
        """Print the lines of these frames. Raises OutputError."""
        if self.failure is not None:
            return
        entries = [
            {
                "frameNum": frame.index,
                "time": None if frame.time is None else round(frame.time, 6),
                "metrics": {name: self._numbers.number(value) for name, value in frame.metrics.items()},
            }
            for frame in frames
        ]
        try:
            print_text("".join(json.dumps(entry, allow_nan=False) + "\n" for entry in entries))
        except OutputError as error:
            self.failure = OutputError(f"{error}; {'the run ended there' if self._ends_run else 'the run went on without it'}")
            if self._ends_run:
                raise self.failure from None


def open_journal(paths: Sequence[str], clips: Clips, options: ScoreOptions, *, resume: bool, quiet: bool) -> Journal | None:
    """Return the journal beside the first output, closed with the command; None, or OptionError to resume, if none can be."""
    from ..engine.journal import open_run_journal
    from ..storage.checked_journal import journal_path

    def note(text: str) -> None:
        if not quiet:
            say(f"note: {text}")

    path = Path(paths[0]) if paths else None
    try:
        if path is None or paths[0] in STANDARD_OUTPUT or (path.exists() and not path.is_file()):
            raise OptionError("the run continues from the journal beside a local output file, which --output names")
        check_target(journal_path(path), "the journal", [*clips.paths, *paths])
        journal = open_run_journal(paths[0], clips, options, resume=resume, note=note)
    except OptionError as error:
        if resume:
            raise OptionError(f"--resume is not possible: {error}") from None
        return None
    click.get_current_context().with_resource(journal)
    return journal


def print_summary(report: ScoreReport, file: TextIO) -> None:
    """Print the pooled scores, and below them what was compared and how fast."""
    rows = [
        [name, *(_number(pooled[column], column) if column in pooled else "" for column in _HEADS)]
        for name, pooled in report.pooled().items()
    ]
    title, narrow = f"{report.distorted} against {report.reference}", ("stddev", "p50", "harmonic", "max", "mean dB", "p5")
    print_table(title, ["score", *_HEADS.values()], rows, file, optional=narrow)
    pictures = f"{counted(len(report.frames), 'frame')} of {report.width}x{report.height}, {report.bits} bit"
    backend = report.backend
    print_line(file, f"{pictures}, {report.fps:.1f} frames/s on {backend.device} ({backend.driver}), {backend.backend}")


def print_worst(report: ScoreReport, count: int, file: TextIO) -> None:
    """Print the frames with the lowest scores of the first metric, with all scores and, if known, presentation times."""
    from ..metrics import FEATURES
    from ..report.results import worst_frames

    if not (count and report.frames):
        return
    names = [name for name in report.names if name in FEATURES] or list(report.names)
    frames = worst_frames(report, names[0], count)
    timed = any(frame.time is not None for frame in frames)
    rows = [
        [str(frame.index), *([time_code(frame.time)] if timed else []), *(_number(frame.metrics[name]) for name in names)]
        for frame in frames
    ]
    print_line(file, (f"worst frames by {names[0]}", "italic"))
    print_table("", ["frame", *(["time"] if timed else []), *names], rows, file, texts=0, optional=names[:0:-1])


def print_profile(report: ScoreReport, file: TextIO) -> None:
    """Print the milliseconds a frame of each stage, which overlap, and the decoder of each clip."""
    frames = max(1, len(report.frames) - report.resumed)
    seconds = {**report.stage_seconds, "whole run": report.seconds}
    rows = [[stage, f"{value / frames * 1000:.3f}"] for stage, value in seconds.items()]
    print_table("where the time goes", ["stage", "ms a frame"], rows, file, sections=[len(rows) - 1])
    if report.scoring is not None:
        for clip in (report.scoring.reference, report.scoring.distorted):
            reason = f" ({clip.decoder_reason})" if clip.decoder_reason else ""
            print_line(file, f"{clip.path}: decoder {clip.decoder or 'unknown'}{reason}")


def _number(value: float, column: str = "") -> str:
    if math.isnan(value):
        return "null"
    return f"{value:.3f}" if column == "mean_db" else f"{value:.6f}"


# -- maps --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MapOutput:
    """The folder of SSIM maps, and the frames that have maps; None if they were not given."""

    folder: str | None
    frames: str | None

    def check(self, inputs: Sequence[str]) -> None:
        """Make the folder, and raise as OptionError or OutputError what would else be found out after scoring."""
        if self.folder is None:
            if self.frames is not None:
                raise OptionError(f"--map-frames {self.frames} says which maps are written; --map DIR has to say where")
            return
        from ..maps.frames import check_can_reopen, check_pictures, parse_choice
        from ..storage.atomic import check_writable
        from ..storage.inputs import input_states

        parse_choice(self.frames or _MAP_FRAMES)
        for picture, *_ in chain.from_iterable(map(input_states, inputs)):
            path = Path(picture)
            if _MAP_NAME.fullmatch(path.name) and path.parent.resolve() == Path(self.folder).resolve():
                raise OutputError(f"--map {self.folder} would overwrite {picture}, which is read; give a folder of its own")
        check_can_reopen(inputs)
        check_pictures()
        folder = Path(self.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"--map {folder} cannot be made: {error.strerror}") from None
        check_writable(folder / "frame_000000.png")

    def write(self, report: ScoreReport, *, raw: RawDescription, backend: str, device: str | None) -> None:
        """Write a PNG and an NPY file for each of the frames chosen, of the window that float_ssim was asked for."""
        if self.folder is None:
            return
        import io

        import numpy as np

        from ..maps.frames import choose_frames, png, scored_pictures
        from ..maps.picture import map_picture
        from ..storage.atomic import write_file

        folder = Path(self.folder)
        chosen = choose_frames(report, self.frames or _MAP_FRAMES)
        for frame in scored_pictures(report, chosen, raw=raw, backend=backend, device=device, urls=True):
            path = folder / f"frame_{frame.index:06d}.png"
            png(path, map_picture(frame, report))
            numbers = io.BytesIO()
            np.save(numbers, frame.ssim_map, allow_pickle=False)
            write_file(numbers.getvalue(), path.with_suffix(".npy"))


map_options = option_group(
    "maps",
    MapOutput,
    option("--map folder", Section.OUTPUTS, "Write SSIM maps of some frames there, as PNG and NPY.", metavar="DIR"),
    option(
        "--map-frames frames",
        Section.OUTPUTS,
        f"Choose the frames that have maps: the worst, every N-th scored, or numbers such as 3,17. Default: {_MAP_FRAMES}.",
        metavar="worst:N|every:N|LIST",
    ),
)
