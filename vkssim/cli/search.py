"""Search the cheapest setting of an encoder that meets targets: the command `vkssim search`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..errors import OptionError, ThresholdError
from ..report.numbers import percent, shortest
from ..search.defaults import MAX_TRIALS, SURE, TARGET
from ..utils.values import Section
from ..utils.wording import counted
from .command import make_command, option
from .encoding import EncodeProgress, encoder_options, encoder_spec, print_search, score_cells, scores_text, write_files
from .options import backend_options, single_device
from .output import check_targets, json_text, print_text, say
from .tables import print_table

if TYPE_CHECKING:
    from ..search.search import Search, SettingChoice, ShotSearch
    from ..search.trial import Shot, Trial

_OF_ONE_SETTING = ("sure", "samples", "whole", "two_pass")
"""The options of a search for one setting that a search for shots has no use for."""

_ZONE_FORMS = (".txt", ".json")
_USUAL_TRIALS = 4  # the means in the proof of docs/notes/2026-11-29-how-good-a-search-is.md are 2.6 to 4.3


@make_command(
    "search",
    brief="Find the cheapest setting of an encoder that meets a score.",
    examples=f"""
        vkssim search reference.mp4
            Find the highest CRF of libx264 with which the clip meets {TARGET}.
        vkssim search reference.mp4 --encoder libx264 --target float_ms_ssim:p5=0.985
            Find the highest CRF whose 5th percentile is 0.985 or more.
        vkssim search reference.mp4 --encoder libsvtav1 --enc preset=6 --target float_ms_ssim=0.98 -o small.mkv
            Find it, encode the clip with it, check the score of the whole clip, and copy the sound.
        vkssim search reference.mp4 --encoder libsvtav1 --target float_ms_ssim=0.98 --shots zones.txt --scores shots.json
            Find a CRF for each shot, for Av1an; `vkssim report shots.json -o page.html` draws the scores over time.
    """,
)
@click.argument("source", type=click.Path())
@option(
    "--target targets",
    Section.VERDICT,
    "Find a setting where that score is X or more; POOLING is mean, min, p5 and so on. May be repeated: all must hold.",
    multiple=True,
    default=(TARGET,),
    metavar="NAME[:POOLING]=X",
)
@option(
    "--sure",
    Section.VERDICT,
    "If only samples were encoded, take the cheapest setting with which the whole clip meets the targets with a"
    " probability of P or more.",
    default=SURE,
    metavar="P",
)
@option("--least", Section.ENCODER, "Try no value of --parameter below X.", type=float, metavar="X")
@option("--most", Section.ENCODER, "Try no value of --parameter above X.", type=float, metavar="X")
@option("--two-pass", Section.ENCODER, "Encode in two passes: with --parameter bitrate, of libx264 and libx265.", is_flag=True)
@option(
    "--trials",
    Section.FRAMES,
    "Encode the samples with N settings at most.",
    default=MAX_TRIALS,
    metavar="N",
)
@option(
    "--whole", Section.FRAMES, "Check the setting on the whole clip, and take a better one if it fails there.", is_flag=True
)
@option(
    "-o --output",
    Section.OUTPUTS,
    "Write the encode there, .mkv, .mp4 or .webm, with sound and subtitles copied. Implies --whole; with --shots each shot"
    " has its setting.",
    metavar="FILE",
)
@option("--force", Section.OUTPUTS, "Write the encode of Dolby Vision of profile 5 too, without its metadata.", is_flag=True)
@option(
    "--shots",
    Section.OUTPUTS,
    "Find a setting for each shot, and write the list there: .txt for Av1an's --zones, or .json.",
    metavar="FILE",
)
@option(
    "--scores",
    Section.OUTPUTS,
    "With --shots: write the scores of every frame there, JSON that `vkssim report` draws over time.",
    metavar="FILE",
)
@option(
    "--html",
    Section.OUTPUTS,
    "Write a page there: the setting, its score against the target, and the bit rate over the score of all trials.",
    metavar="FILE",
)
@encoder_options
@backend_options
def command(
    source: str,
    output: str | None,
    shots: str | None,
    scores: str | None,
    html: str | None,
    selector: dict[str, Any],
    as_json: bool,
    quiet: bool,
    **arguments: Any,
) -> None:
    """Find the cheapest setting of an encoder whose scores against the SOURCE meet every target.

    Samples of the clip are encoded with a few settings and scored. The exit code is 1 if no setting meets the targets; the best
    one that was found is printed all the same.
    """
    from ..search.pages import search_page
    from ..search.search import search_setting

    if shots is None and scores is not None:
        raise OptionError("--scores goes with --shots; `vkssim score` writes the scores of an encode")
    progress = EncodeProgress(quiet=quiet, usual=0 if shots else _USUAL_TRIALS)
    arguments |= {"encoder": encoder_spec(arguments), "progress": progress, "output": output, **single_device(selector)}
    if shots is not None:
        _search_for_shots(source, shots, scores, html, as_json=as_json, **arguments)
        return
    check_targets([("--html", html)], [source, *filter(None, [output])])
    running = search_setting(source, **arguments)
    progress.run(running, _line)
    choice = running.choice
    details = partial(_print, running, choice)
    written = write_files([(html, partial(search_page, running))])
    print_search(running, as_json=as_json, quiet=quiet, brief=f"{choice.setting:g}\n", print_details=details)
    progress.say_files(*written, output if choice.meets else None)
    if not choice.meets:
        nearest = f"{choice.setting:g} comes nearest, with {scores_text(choice.trial, running.limits)}"
        raise ThresholdError(f"no {running.parameter} that was tried meets the targets; {nearest}")


def _line(running: Search, trial: Trial) -> str:
    kind, scores = "the whole clip" if trial.whole else "samples", scores_text(trial, running.limits)
    return f"{running.parameter} {trial.setting:g}: {scores}, {trial.kbps:,.0f} kbit/s, {kind}, {trial.seconds:.1f} s"


def _print(running: Search, choice: SettingChoice) -> None:
    names = list(choice.trial.values)
    trials = {(trial.whole, trial.setting): trial for trial in running.trials}  # a short clip is encoded again to be written
    columns = (running.parameter, "encoded", *names, "met", "kbit/s", "MB", "seconds")
    rows = [
        [
            f"{trial.setting:g}",
            "whole" if trial.whole else "samples",
            *score_cells(trial, running.limits),
            ("yes" if trial.meets else "no") if trial.whole else percent(trial.probability),
            f"{trial.kbps:,.0f}",
            f"{trial.bytes / 1e6:,.3f}",
            f"{trial.seconds:.1f}",
        ]
        for _, trial in sorted(trials.items())
    ]
    title = f"{choice.encoder}, {counted(len(rows), 'trial')}"
    print_table(title, columns, rows, texts=2, elsewhere="--json has all")
    print_text(_sentences(running, choice))


def _sentences(running: Search, choice: SettingChoice) -> str:
    trial, setting = choice.trial, f"{choice.parameter} {choice.setting:g}"
    targets = " and ".join(f"{name}={shortest(limit)}" for name, limit in running.limits.items())
    sure = f"with a probability of {100 * choice.sure:g} % or more"
    if not choice.meets:
        often, near = ("", "") if trial.whole else (f" {sure}", f", with {percent(choice.probability)}")
        return f"No setting of {choice.encoder} meets {targets}{often}; {setting} comes nearest{near}.\n"
    size = f"{trial.bytes / 1e6:,.3f} MB, {trial.kbps:,.0f} kbit/s"
    cheapest = f"{setting} of {choice.encoder} is the cheapest setting with which the whole clip meets {targets}"
    if not trial.whole:
        answer = f"{cheapest} {sure} ({percent(choice.probability)}): about {size}. --whole checks it."
    elif choice.certainty >= choice.sure:
        answer = f"{cheapest}: {size}."
    else:
        answer = (
            f"With {setting} of {choice.encoder} the whole clip meets {targets}: {size}. A cheaper setting may do so as well."
        )
    return f"{answer}\n\n{choice.command}\n"


# -- shots ------------------------------------------------------------------------------------------------------------------


def _search_for_shots(
    source: str, zones: str, scores: str | None, html: str | None, *, as_json: bool, progress: EncodeProgress, **arguments: Any
) -> None:
    """Search, print a line for each shot, and write the files. Raises ThresholdError if a shot misses a target."""
    from ..report import render
    from ..search.pages import shots_page
    from ..search.search import search_shots

    for name in _OF_ONE_SETTING:
        if click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise OptionError(
                f"`{name}` is for one setting of the whole clip; --shots finds one for each shot, which it encodes whole in one"
                " pass"
            )
        arguments.pop(name, None)
    if not zones.lower().endswith(_ZONE_FORMS):
        raise OptionError(f"`shots` {zones}: the endings are .txt, for Av1an's zones, and .json")
    check_targets([("--shots", zones), ("--scores", scores), ("--html", html)], [source, *filter(None, [arguments["output"]])])
    is_list = zones.lower().endswith(".txt")
    running = search_shots(source, progress=progress, **arguments)
    if is_list:
        running.zones()  # refuses an encoder that Av1an lacks before anything is encoded
    progress.run(running, _shot_line)
    shots = [{name: value for name, value in asdict(shot).items() if name not in ("scores", "tried")} for shot in running.shots]
    text = json_text({"parameter": running.parameter, "bytes": running.bytes, "shots": shots})
    written = write_files(
        [
            (zones, running.zones if is_list else lambda: text),
            (scores, lambda: render(running.report, "json")),
            (html, partial(shots_page, running)),
        ]
    )
    short = [shot for shot in running.shots if not shot.meets]
    if as_json:
        print_text(text)
    elif not progress.quiet:
        _print_shots(running)
        if is_list and not short:
            print_text("\n" + "\n\n".join(running.commands(zones)) + "\n")
    progress.say_files(*written, None if short else arguments["output"])
    for note in running.notes:
        say(f"note: {note}")
    if short:
        shots_of = f"{counted(len(short), 'shot')} of {len(running.shots)}; the first one begins at frame {short[0].first}"
        raise ThresholdError(f"no {running.parameter} that was tried meets the targets in {shots_of}")


def _shot_line(running: ShotSearch, shot: Shot) -> str:
    frames, scores = f"frames {shot.first} to {shot.first + shot.count - 1}", scores_text(shot.trial, running.limits)
    size, trials = f"{shot.trial.kbps:,.0f} kbit/s", counted(shot.trials, "trial")
    return f"{frames}: {running.parameter} {shot.setting:g}, {scores}, {size}, {trials}"


def _print_shots(running: ShotSearch) -> None:
    names = list(running.shots[0].trial.values)
    columns = ("frames", running.parameter, *names, "met", "kbit/s", "MB", "trials")
    rows = [
        [
            f"{shot.first} to {shot.first + shot.count - 1}",
            f"{shot.setting:g}",
            *score_cells(shot.trial, running.limits),
            "yes" if shot.meets else "no",
            f"{shot.trial.kbps:,.0f}",
            f"{shot.trial.bytes / 1e6:,.3f}",
            str(shot.trials),
        ]
        for shot in running.shots
    ]
    print_table(f"{counted(len(rows), 'shot')}, {running.bytes / 1e6:,.3f} MB", columns, rows)
