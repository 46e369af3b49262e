"""Search a ladder of sizes and settings: the command `vkssim ladder`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..errors import OptionError, ThresholdError
from ..search.defaults import LADDER_TRIALS, MAX_BITRATE, MIN_BITRATE, RATE_FACTOR, TOP_SIMILARITY, TOP_VMAF
from ..utils.values import Section
from ..utils.wording import counted
from .command import make_command, option
from .encoding import EncodeProgress, encoder_options, encoder_spec, print_search, score_cells, scores_text, write_files
from .options import backend_options, single_device
from .output import check_targets, print_text, say
from .tables import print_table

if TYPE_CHECKING:
    from ..search.ladder import LadderSearch
    from ..search.rungs import LadderChoice, LadderTrial

_APPLE, _NONE = "apple", "none"


@make_command(
    "ladder",
    brief="Find sizes and settings of an encoder for streaming.",
    examples="""
        vkssim ladder reference.mp4 --heights 1080,720,540,360 --encoder libx264 --target float_ms_ssim=0.99
            Find rungs from 145 kbit/s up to the lowest bit rate that has the score, and compare them with Apple's ladder.
        vkssim ladder reference.mp4 --heights 1080,720 --encoder libsvtav1 --fixed 1080:4000,720:2000 --html page.html
            Compare with another ladder, and draw the scores over the bit rates of every size.
    """,
)
@click.argument("source", type=click.Path())
@option(
    "--heights",
    Section.ENCODER,
    "Encode with these heights; those above the source's are left out, and the widths keep the shape.",
    required=True,
    metavar="N,N…",
)
@option(
    "--target targets",
    Section.VERDICT,
    "Let the first rung be the cheapest one where that score is X or more. May be repeated: all must hold. Default:"
    f" {TOP_SIMILARITY:g} of --score, or {TOP_VMAF:g} of vmaf, if --most-bitrate allows it.",
    multiple=True,
    metavar="NAME[:POOLING]=X",
)
@option(
    "--score",
    Section.METRICS,
    "Make the ladder for that score. Default: that of the first target, else the mean of float_ms_ssim.",
    metavar="NAME[:POOLING]",
)
@option(
    "--least-bitrate",
    Section.ENCODER,
    "Let the lowest rung have about that bit rate.",
    default=MIN_BITRATE,
    metavar="KBPS",
)
@option(
    "--most-bitrate",
    Section.ENCODER,
    "Let the first rung have about that bit rate, or less.",
    default=MAX_BITRATE,
    metavar="KBPS",
)
@option(
    "--factor",
    Section.ENCODER,
    "Let a rung have at most X times the bit rate of the next lower one.",
    default=RATE_FACTOR,
    metavar="X",
)
@option(
    "--fixed",
    Section.VERDICT,
    "Compare with that ladder: apple is Apple's for H.264, from its HLS authoring specification; none skips the comparison.",
    default=_APPLE,
    metavar="HEIGHT:KBPS,…",
)
@option(
    "--trials",
    Section.FRAMES,
    "Encode the samples N times at most, all sizes together.",
    default=LADDER_TRIALS,
    metavar="N",
)
@option(
    "--html",
    Section.OUTPUTS,
    "Write a page there: the rungs, the fixed ladder, and the scores over the bit rates of every size.",
    metavar="FILE",
)
@option("--commands", Section.OUTPUTS, "Write FFmpeg's command for each rung there, as a shell script.", metavar="FILE")
@encoder_options
@backend_options
def command(
    source: str,
    heights: str,
    fixed: str,
    html: str | None,
    commands: str | None,
    selector: dict[str, Any],
    as_json: bool,
    quiet: bool,
    **arguments: Any,
) -> None:
    """Find the sizes and settings of an encoder that have the best scores for their bit rates, against the SOURCE.

    Samples of the clip are made smaller, encoded, scaled back and scored. The exit code is 1 if the first rung misses a
    target.
    """
    from ..search.defaults import APPLE_H264
    from ..search.ladder import search_ladder
    from ..search.pages import ladder_page

    check_targets([("--html", html), ("--commands", commands)], [source])
    progress = EncodeProgress(quiet=quiet)
    ladder = {_APPLE: APPLE_H264, _NONE: None}.get(fixed, fixed)
    arguments |= {"encoder": encoder_spec(arguments), "heights": _heights(heights), "fixed": ladder, "progress": progress}
    running = search_ladder(source, **arguments, **single_device(selector))
    progress.run(running, _line)
    choice = running.choice
    brief = "".join(f"{rung.height} {rung.trial.setting:g} {rung.trial.kbps:.0f}\n" for rung in choice.rungs)
    written = write_files([(html, partial(ladder_page, running)), (commands if choice.commands else None, running.script)])
    print_search(running, as_json=as_json, quiet=quiet, brief=brief, print_details=partial(_print, running, choice))
    progress.say_files(*written)
    if commands is not None and not choice.commands:
        say(f"note: {commands} is not written, since there are no rungs")
    if not choice.rungs:
        raise ThresholdError("no encode that was tried has a bit rate between --least-bitrate and --most-bitrate")
    if not choice.meets:
        tried = f"no encode of at most {arguments['most_bitrate']:g} kbit/s"
        scores = scores_text(choice.rungs[0].trial, running.limits)
        raise ThresholdError(f"{tried} meets the targets; the first rung has {scores}")


def _heights(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(f"`heights` {text!r} is not of the form N,N: whole numbers with commas between them") from None


def _line(running: LadderSearch, tried: LadderTrial) -> str:
    trial, size = tried.trial, f"{tried.width}x{tried.height}"
    scores = scores_text(trial, running.limits)
    return f"{size}, {running.parameter} {trial.setting:g}: {scores}, {trial.kbps:,.0f} kbit/s, {trial.seconds:.1f} s"


def _print(running: LadderSearch, choice: LadderChoice) -> None:
    """Print the rungs, the fixed ladder, and the deltas between them."""
    names = list(choice.rungs[0].trial.values) if choice.rungs else []
    columns = ("size", running.parameter, *names, "kbit/s")
    made = f"the new ladder, {counted(len(running.trials), 'trial')}"
    for title, rungs in ((made, choice.rungs), ("the fixed ladder, as it was encoded", choice.fixed)):
        rows = [
            [
                f"{rung.width}x{rung.height}",
                f"{rung.trial.setting:g}",
                *score_cells(rung.trial, running.limits),
                f"{rung.trial.kbps:,.0f}",
            ]
            for rung in rungs
        ]
        if rows:
            print_table(title, columns, rows, elsewhere="--json has all")
    if choice.deltas is not None:
        rate, score = choice.deltas.bd_rate, choice.deltas.bd_score
        print_text(f"BD-rate of the new ladder against the fixed one: {rate:+.1f} %, BD-score {score:+.2f} dB.\n")
