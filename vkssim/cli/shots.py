"""Search a setting for each shot: `vkssim search --shots`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, ThresholdError
from ..storage.folder import check_output, write_output
from ..utils.wording import counted
from .encoding import run_search, score_cells, scores_text
from .messages import say, say_written
from .output import check_target, json_text, print_text
from .report import check_page
from .tables import print_table

if TYPE_CHECKING:
    from ..search.shots import Shot, ShotSearch

_FORMS = (".txt", ".json")


def search_for_shots(
    source: str,
    zones: str,
    scores: str | None,
    *,
    output: str | None,
    html: str | None,
    as_json: bool,
    quiet: bool,
    **asked: Any,
) -> None:
    """Search, print a line for each shot, and write the list of zones and the scores. Raises ThresholdError and others."""
    from ..report import render
    from ..search.shots import search_shots

    if not zones.lower().endswith(_FORMS):
        raise OptionError(f"`shots` {zones}: the endings are .txt, for Av1an's zones, and .json")
    others = [source, *filter(None, [output])]
    check_target(zones, "--shots", others)
    check_output(zones)
    if scores is not None:
        check_target(scores, "--scores", [*others, zones])
        check_output(scores)
    check_page(html, [*others, zones, *filter(None, [scores])])
    is_list = zones.lower().endswith(".txt")
    running = search_shots(source, output=output, **asked)
    if is_list:
        running.zones()  # refuses an encoder that Av1an lacks before anything is encoded
    run_search(running, asked["progress"], partial(_line, running), quiet=quiet)
    report = running.report
    text = _json(running)
    write_output(running.zones() if is_list else text, zones)
    if scores is not None:
        write_output(render(report, "json"), scores)
    if html is not None:
        from ..search.pages import shots_page

        write_output(shots_page(running), html)
    if as_json:
        print_text(text)
    elif not quiet:
        _print(running)
    short = [shot for shot in running.shots if not shot.meets]
    if is_list and not (as_json or quiet or short):
        print_text("\n" + "\n\n".join(running.commands(zones)) + "\n")
    for path in filter(None, (zones, scores, html, None if short else output)) if not quiet else ():
        say_written(path)
    for note in running.notes:
        say(f"note: {note}")
    if short:
        raise ThresholdError(
            f"no {running.parameter} that was tried meets the targets in {counted(len(short), 'shot')} of {len(running.shots)};"
            f" the first one begins at frame {short[0].first}"
        )


def _line(running: ShotSearch, shot: Shot) -> str:
    frames, scores = f"frames {shot.first} to {shot.first + shot.count - 1}", scores_text(shot.trial, running.limits)
    size, trials = f"{shot.trial.kbps:,.0f} kbit/s", counted(shot.trials, "trial")
    return f"{frames}: {running.parameter} {shot.setting:g}, {scores}, {size}, {trials}"


def _print(running: ShotSearch) -> None:
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
    print_table(f"{counted(len(rows), 'shot')}, {running.bytes / 1e6:,.3f} MB", columns, rows, sys.stdout)


def _json(running: ShotSearch) -> str:
    shots = [{name: value for name, value in asdict(shot).items() if name not in ("scores", "tried")} for shot in running.shots]
    answer = {"parameter": running.parameter, "bytes": running.bytes, "shots": shots}
    return json_text(answer)
