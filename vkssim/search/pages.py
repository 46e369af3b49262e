"""Show the result of a search as an HTML page: the answer, the curves with all trials, and the trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import OptionError
from ..page.answer import AnswerPage, Copied, Curve, Frames, Mark, Plot, Rule, Table, TableRow, json_to_copy, render_answer
from ..page.charts import score_chart
from ..page.moments import tick_times
from ..page.tables import Tile, rate_text, score_text
from ..report.numbers import percent, shortest, time_code
from ..utils.wording import counted
from .ladder import LadderSearch
from .rungs import FIXED, NEW, LadderTrial
from .search import Search, ShotSearch
from .search_run import SearchRun
from .trial import HIGHEST, Target, Trial


def ladder_page(search: LadderSearch) -> str:
    """Return the page of a search for a ladder that is done. Raises VkssimError."""
    choice, trials = search.choice, search.trials
    score, *targets = search.targets
    sizes = sorted({encode.size for encode in trials}, key=lambda size: size[1], reverse=True)

    def row(encode: LadderTrial, *more: str) -> TableRow:
        trial = encode.trial
        cells = (_size_text(encode.size), shortest(trial.setting), rate_text(trial.kbps), *_score_cells(trial, [score]))
        return TableRow((*cells, *more), sizes.index(encode.size), "pass" if targets and more == ("met",) else "")

    headings = ("size", search.parameter, "kbit/s", *_score_headings([score]))
    target = ", ".join(f"≥ {shortest(limit.limit)}" if limit.name == score.name else _target_text(limit) for limit in targets)
    met = [("met" if encode.trial.meets else "–",) if targets else () for encode in choice.rungs]
    rungs = Table(
        f"The ladder, {search.recipe.encoder.name}{_options_text(search)}",
        (*headings, *([target] if targets else [])),
        tuple(row(encode, *more) for encode, more in zip(choice.rungs, met, strict=True)),
    )
    listed = [
        {"width": encode.width, "height": encode.height, search.parameter: encode.trial.setting, "kbps": encode.trial.kbps}
        | encode.trial.values
        for encode in choice.rungs
    ]
    script = [Copied("FFmpeg's command for each rung", search.script())] if choice.rungs else []
    rows = sorted(map(row, sorted(trials, key=lambda encode: encode.trial.kbps)), key=lambda table_row: table_row.series or 0)
    folded = [Table(f"All trials ({len(trials)})", headings, tuple(rows))]
    if choice.fixed:
        folded.append(Table("The fixed ladder, as it was encoded", headings, tuple(map(row, choice.fixed))))
    rungs_text = counted(len(choice.rungs), "rung") if choice.rungs else "no rung"
    return render_answer(
        AnswerPage(
            title=f"Ladder of {Path(search.source.path).name}: {rungs_text}",
            lead=_lead(search),
            tiles=_ladder_tiles(search, targets),
            table=rungs if choice.rungs else None,
            copied=[*script, json_to_copy(listed)],
            notes=choice.notes,
            plots=[_ladder_plot(search, sizes, score, targets)],
            folded=folded,
        )
    )


def _ladder_tiles(search: LadderSearch, targets: Sequence[Target]) -> list[Tile]:
    choice = search.choice
    tiles = []
    if choice.deltas is not None:
        rate, score = choice.deltas.bd_rate, choice.deltas.bd_score
        unit = " dB" if search.targets[0].decibels else ""
        more = f"than the fixed ladder for the same score (BD-rate {rate:+.1f} %)"
        tiles.append(Tile("bit rate", f"{abs(rate):.1f} % {'less' if rate <= 0 else 'more'}", more))
        gain = f"{abs(score):.2f}{unit} {'higher' if score >= 0 else 'lower'}"
        tiles.append(Tile("score", gain, f"than the fixed ladder at the same bit rate ({_name(choice.score)})"))
    if choice.rungs:
        first, last = choice.rungs[0], choice.rungs[-1]
        tiles += [_target_tile(target, first.trial, "the first rung, " + _rung_name(search, first)) for target in targets]
        rates = f"{rate_text(last.trial.kbps)} to {rate_text(first.trial.kbps)} kbit/s"
        tiles.append(Tile("rungs", str(len(choice.rungs)), rates))
    return tiles


def _size_text(size: tuple[int, int]) -> str:
    return f"{size[0]}×{size[1]}"


def _rung_name(search: LadderSearch, encode: LadderTrial) -> str:
    return f"{_size_text(encode.size)} {search.parameter} {shortest(encode.trial.setting)}"


def _ladder_plot(search: LadderSearch, sizes: Sequence[tuple[int, int]], score: Target, targets: Sequence[Target]) -> Plot:
    choice = search.choice
    trials = [encode for encode in search.trials if encode.trial.kbps > 0 and math.isfinite(score.score(encode.trial))]
    chosen = {id(encode) for encode in choice.rungs}

    def points(of: Sequence[LadderTrial]) -> tuple[tuple[float, float], ...]:
        return tuple(sorted({(encode.trial.kbps, score.score(encode.trial)) for encode in of if encode in trials}))

    curves, legend = [], []
    for number, size in enumerate(sizes):
        curves.append(Curve(points([encode for encode in trials if encode.size == size]), "size", number))
        legend.append(("size", number, _size_text(size)))
    for kind, name, rungs in (("fixed", FIXED, choice.fixed), ("chosen", NEW, choice.rungs)):
        if rungs:
            curves.append(Curve(points(rungs), kind))
            legend.append((kind, 0, name))
    marks = tuple(
        Mark(
            encode.trial.kbps,
            score.score(encode.trial),
            sizes.index(encode.size),
            _mark_text(_rung_name(search, encode), encode.trial, score),
            f"{search.parameter} {shortest(encode.trial.setting)}" if id(encode) in chosen else "",
            id(encode) in chosen,
        )
        for encode in trials
    )
    rules = tuple(_rule(target) for target in targets if target.name == score.name)
    title = "Rate and quality"
    return Plot(title, "kbit/s", _axis_title(score), tuple(curves), marks, rules, tuple(legend), rate_across=True)


def search_page(search: Search) -> str:
    """Return the page of a search that is done. Raises VkssimError."""
    choice, trials, targets = search.choice, search.trials, search.targets
    name, setting = Path(search.source.path).name, f"{choice.parameter} {shortest(choice.setting)}"
    goal = " and ".join(map(_target_text, targets))
    trial = choice.trial

    tiles = [Tile("setting" if choice.meets else "nearest setting", setting, choice.encoder + _options_text(search))]
    tiles += [_target_tile(target, trial) for target in targets]
    about = "the whole clip" if trial.whole else "forecast for the whole clip"
    tiles.append(Tile("size", f"{_megabytes(trial.bytes)} MB", f"{rate_text(trial.kbps)} kbit/s, {about}"))
    if not trial.whole:
        tiles.append(Tile("probability", percent(choice.probability), "that the whole clip meets the target"))

    command = [Copied("FFmpeg's command", choice.command, is_open=True)] if choice.meets else []
    answer = {"encoder": choice.encoder, "options": choice.options, choice.parameter: choice.setting, **_facts(trial)}
    headings = (choice.parameter, "encoded", "kbit/s", "MB", *_score_headings(targets), "target")
    rows = []
    for tried in sorted(trials, key=lambda tried: tried.setting):
        met = tried.meets if tried.whole else tried.probability >= choice.sure
        encoded = "whole" if tried.whole else "samples"
        cells = shortest(tried.setting), encoded, *_size_cells(tried), *_score_cells(tried, targets)
        rows.append(_met_row(met, *cells, series=0))
    return render_answer(
        AnswerPage(
            title=f"{name}: {setting} meets {goal}" if choice.meets else f"{name}: no {choice.parameter} tried meets {goal}",
            lead=_lead(search),
            tiles=tiles,
            table=None,
            copied=[*command, json_to_copy(answer)],
            notes=choice.notes,
            plots=[
                _size_plot(search, target, [(trials, trial, setting)])
                for target in sorted(targets, key=lambda target: target.score(trial) - target.unit(target.limit))
            ],
            folded=[Table(f"All trials ({len(trials)})", headings, tuple(rows), 2)],
        )
    )


def shots_page(search: ShotSearch) -> str:
    """Return the page of a search for shots that is done. Raises VkssimError."""
    shots, targets, parameter = search.shots, search.targets, search.parameter
    try:
        zones = [Copied("Zones for Av1an", search.zones())]
    except OptionError:  # Av1an lacks the encoder
        zones = []

    listed = [{"first": shot.first, "count": shot.count, parameter: shot.setting, **_facts(shot.trial)} for shot in shots]
    headings = ("shot", parameter, "kbit/s", "MB", *_score_headings(targets), "target")
    trials = tuple(
        _met_row(tried.meets, number, shortest(tried.setting), *_size_cells(tried), *_score_cells(tried, targets))
        for number, shot in enumerate(shots, 1)
        for tried in shot.tried
    )
    return render_answer(
        AnswerPage(
            title=f"{Path(search.source.path).name}: a {parameter} for each of {counted(len(shots), 'shot')}",
            lead=_lead(search),
            tiles=_shot_tiles(search),
            table=_shot_table(search),
            copied=[*zones, json_to_copy(listed)],
            notes=tuple(search.notes),
            plots=[
                _size_plot(search, target, [(shot.tried, shot.trial, str(number)) for number, shot in enumerate(shots, 1)])
                for target in targets
            ],
            frames=_frames(search),
            folded=[Table(f"All trials ({len(trials)})", headings, trials)],
        )
    )


def _shot_tiles(search: ShotSearch) -> list[Tile]:
    shots, goal = search.shots, " and ".join(map(_target_text, search.targets))
    met, settings = sum(shot.meets for shot in shots), sorted(shot.setting for shot in shots)
    kbps = search.bytes * 8 / 1000 / (len(search.report.frames) / float(search.source.facts.rate))
    span = " to ".join(map(shortest, dict.fromkeys((settings[0], settings[-1]))))
    tiles = [
        Tile("shots that meet the target", f"{met} of {len(shots)}", goal, state="pass" if met == len(shots) else "fail"),
        Tile(search.parameter, span, search.recipe.encoder.name + _options_text(search)),
        Tile("size", f"{_megabytes(search.bytes)} MB", f"{rate_text(kbps)} kbit/s, each shot encoded by itself"),
    ]
    for target in search.targets:
        number, shot = min(enumerate(shots, 1), key=lambda entry: _margin(target, entry[1].trial))
        tiles.append(Tile(f"least margin, {_name(target.name)}", _margin_text(target, shot.trial), f"shot {number}"))
    return tiles


def _shot_table(search: ShotSearch) -> Table:
    times, targets = [frame.time for frame in search.report.frames], search.targets
    headings = ("shot", "frames", search.parameter, "kbit/s", *_score_headings(targets), "MB", "begins at", "target")
    rows = []
    for number, shot in enumerate(search.shots, 1):
        frames, (rate, size) = f"{shot.first} to {shot.first + shot.count - 1}", _size_cells(shot.trial)
        cells = (number, frames, shortest(shot.setting), rate, *_score_cells(shot.trial, targets), size)
        rows.append(_met_row(shot.meets, *cells, time_code(times[shot.first])))
    return Table("The shots", headings, tuple(rows), 2)


def _met_row(met: bool, *cells: object, series: int | None = None) -> TableRow:
    """Return a row that ends with whether the targets are met."""
    return TableRow((*map(str, cells), "met" if met else "missed"), series, "pass" if met else "fail")


def _frames(search: ShotSearch) -> Frames | None:
    """Return the scores over frames of the first target's metric, with the cuts between shots."""
    report, name = search.report, search.targets[0].threshold.name
    numbers = np.array([frame.index for frame in report.frames], np.float64)
    chart = score_chart([(0, numbers, report.column(name))])
    if chart is None:
        return None
    cuts = tuple(round(100 * chart.across.share(shot.first), 2) for shot in search.shots[1:])
    return Frames("Scores frame by frame, with the cuts between shots", name, chart, cuts, tick_times(report, chart.across))


def _size_plot(search: SearchRun[Any, Any], target: Target, series: Sequence[tuple[Sequence[Trial], Trial, str]]) -> Plot:
    """Return the bit rate over the score; `series` has for each curve its trials, the chosen one and the label of that."""
    curves, marks = [], []
    for trials, chosen, label in series:
        drawn = [trial for trial in trials if trial.kbps > 0 and math.isfinite(target.score(trial))]
        curves.append(Curve(tuple(sorted((target.score(trial), trial.kbps) for trial in drawn if trial.whole == chosen.whole))))
        for trial in drawn:
            name, is_chosen = f"{search.parameter} {shortest(trial.setting)}", trial is chosen
            own = name if len(series) == 1 else label if is_chosen else ""
            marks.append(Mark(target.score(trial), trial.kbps, 0, _mark_text(name, trial, target), own, is_chosen))
    answer = "the answer" if len(series) == 1 else "the answer for a shot, with its number"
    legend, rules = (("size", 0, "a trial"), ("chosen", 0, answer)), (_rule(target, upright=True),)
    title = f"Bit rate over {_name(target.name)}"
    return Plot(title, _axis_title(target), "kbit/s", tuple(curves), tuple(marks), rules, legend, rate_up=True)


def _mark_text(name: str, trial: Trial, target: Target) -> str:
    value = score_text(trial.values[target.name], target.limit)
    return f"{name}: {rate_text(trial.kbps)} kbit/s, {_name(target.name)} {value}"


def _rule(target: Target, *, upright: bool = False) -> Rule:
    return Rule(target.unit(target.limit), f"target {shortest(target.limit)}", upright)


def _facts(trial: Trial) -> dict[str, Any]:
    return {name: getattr(trial, name) for name in ("values", "meets", "bytes", "kbps", "whole")}


def _name(pooled: str) -> str:
    """Return the name of a pooled value without the mean, which goes without saying."""
    return pooled.removesuffix(":mean")


def _target_text(target: Target) -> str:
    return f"{_name(target.name)} ≥ {shortest(target.limit)}"


def _axis_title(target: Target) -> str:
    return _name(target.name) + (", dB" if target.decibels else "")


def _margin(target: Target, trial: Trial) -> float:
    margin = trial.values[target.name] - target.limit
    return -math.inf if math.isnan(margin) else margin


def _margin_text(target: Target, trial: Trial) -> str:
    margin = _margin(target, trial)
    if not math.isfinite(margin):
        return "no score"
    decibels = f" ({target.score(trial) - target.unit(target.limit):+.2f} dB)" if target.decibels else ""
    return f"{margin:+.4f}{decibels}"


def _target_tile(target: Target, trial: Trial, of: str = "") -> Tile:
    value = trial.values[target.name]
    met = value >= target.limit
    more = f"target {shortest(target.limit)} {'met' if met else 'missed'}, margin {_margin_text(target, trial)}"
    more += f"; {of}" if of else ""
    return Tile(_name(target.name), score_text(value, target.limit), more, state="pass" if met else "fail")


def _score_headings(targets: Sequence[Target]) -> list[str]:
    return [heading for target in targets for heading in (_name(target.name), *(["dB"] if target.decibels else []))]


def _score_cells(trial: Trial, targets: Sequence[Target]) -> list[str]:
    cells = []
    for target in targets:
        cells.append(score_text(trial.values[target.name], target.limit))
        if target.decibels:
            score = target.score(trial)
            cells.append(f"{score:.2f}" if score < HIGHEST else f"over {HIGHEST:g}")
    return cells


def _size_cells(trial: Trial) -> tuple[str, str]:
    return rate_text(trial.kbps), _megabytes(trial.bytes)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.3f}" if size < 10_000_000 else f"{size / 1e6:,.1f}"


def _options_text(search: SearchRun[Any, Any]) -> str:
    """Return the options of the encoder, such as its preset, after a space."""
    given = {**search.recipe.options, **search.recipe.own}
    return "".join(f" {name}={value}" for name, value in given.items()) + ("" if "preset" in given else ", default preset")


def _lead(search: SearchRun[Any, Any]) -> str:
    facts, sampling = search.source.facts, getattr(search, "sampling", None)
    size = _size_text((facts.width, facts.height))
    parts = [search.source.path, size, f"{float(facts.rate):g} frames/s", f"{search.recipe.bits} bit"]
    if sampling is not None and sampling.is_whole:
        parts.append(counted(sampling.frames, "frame"))
    elif sampling is not None:
        parts.append(f"samples of {sum(sample.count for sample in sampling.samples)} of {sampling.frames} frames")
    return " · ".join(parts)
