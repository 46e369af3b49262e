"""Score several distorted clips of one reference as a small batch, for `vkssim score`."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import platformdirs
from click.core import ParameterSource

from ..errors import InputError, OptionError, OutputError, ThresholdError
from ..page import WORST
from .batch import deliver_rows, score_rows
from .options import single_device
from .output import check_targets, say_written
from .report import PageOptions

if TYPE_CHECKING:
    from ..engine.options import ScoreOptions
    from ..frames.options import RawDescription
    from .delivery import OutputOptions

_OF_ONE = ("merge", "folder", "frames", "live", "profile", "printed", "resume", "precision", "form")
"""The options that do not go with several distorted clips."""


def score_several(
    reference: str,
    encodes: Sequence[str],
    raw: RawDescription,
    options: ScoreOptions,
    output: OutputOptions,
    selector: dict[str, Any],
    *,
    fail_under: Sequence[str],
    find_offset: bool,
) -> None:
    """Score distorted clips, of which each has a row of a table. The errors are those of `vkssim batch`."""
    from ..engine.options import Clips, check_options
    from ..engine.pools import WorkerOptions
    from ..ladder.manifest import Pair
    from ..report.thresholds import parse_threshold

    _check_flags(len(encodes))
    thresholds = [parse_threshold(text) for text in fail_under]
    check_options(options, thresholds)
    clips = [reference, *encodes]
    if "-" in clips:
        raise InputError("- is standard input, which is read once; with several distorted clips each is a file")
    if len(output.paths) > 1:
        raise OptionError("several distorted clips have one table, and --output is given more than once")
    check_targets([("--html", output.html)], [*clips, *output.paths])

    worst = WORST if output.worst is None else output.worst
    page = PageOptions(raw, single_device(selector), worst, output.budget, thresholds)
    pairs = [Pair(reference, encode, Clips(reference, encode, raw)) for encode in encodes]
    workers, kept = WorkerOptions(**selector, processes=True), bool(output.paths)
    with nullcontext(Path(output.paths[0])) if kept else _unkept_table(clips, raw, options) as path:
        frames = None if kept else path.parent / "frames"
        rows = score_rows(None, path, pairs, options, workers, quiet=output.quiet, frames=frames, find_offsets=find_offset)
        if kept and not output.quiet:
            say_written(path)
        deliver_rows(rows, path, output.html, page, quiet=output.quiet, kept=kept)


def _check_flags(count: int) -> None:
    """Raise OptionError for options that do not go with so many distorted clips."""
    context = click.get_current_context()
    flags: dict[str, str] = {}
    for option in context.command.params:
        if option.name in _OF_ONE:
            flags.setdefault(option.name, max(option.opts, key=len))
    given = [flag for name, flag in flags.items() if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    if given:
        raise OptionError(
            f"{', '.join(given)}: possible with one distorted clip, and {count} are given. Several have a table, which -o FILE"
            f" writes as .csv, .jsonl or .parquet, and --html; they do not go with {', '.join(flags.values())}"
        )


@contextmanager
def _unkept_table(clips: Sequence[str], raw: RawDescription, options: ScoreOptions) -> Iterator[Path]:
    """Return the path of a table that is not kept, in the user's state folder: a run that is cut off continues there.

    Runs with other options have other folders, so that they may score the same clips at once. Raises OutputError if the folder
    cannot be made.
    """
    identity = "\n".join([*map(os.path.abspath, clips), repr(raw), repr(options)])
    digest = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()
    folder = platformdirs.user_state_path("vkssim") / f"score-{digest[:32]}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made ({error.strerror}); -o FILE.csv names another place") from None
    try:
        yield folder / "scores.jsonl"
    except ThresholdError:  # the scores are complete
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)  # nothing else writes there
