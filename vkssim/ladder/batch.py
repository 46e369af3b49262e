"""Score the pairs of a manifest, each reference together with its distorted clips."""

from __future__ import annotations

import hashlib
import json
import re
import signal
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeGuard

from .. import errors
from ..errors import DeviceError, DeviceLostError, DeviceMemoryError, HostMemoryError, InterruptedRunError
from ..frames.fingerprint import input_states
from ..frames.open import readable_again
from ..frames.options import RawDescription
from ..report import render
from ..report.numbers import NumberFormat
from ..report.results import ScoreReport
from ..scoring.offset import add_hint
from ..scoring.options import ScoreOptions, check_options
from ..storage.folder import Folder
from ..storage.journal_file import journal_path
from ..storage.location import PathOrUrl
from ..storage.remote import is_url, named
from ..utils.facts import brief
from ..utils.version import __version__
from .journal import Journal, Record
from .manifest import Pair
from .object_journal import ObjectJournal
from .tables import CLIP_COLUMNS, SCORING
from .together import MOST_IN_STEP, TogetherScorer

_EXACT = NumberFormat(None)
_LONGEST_NAME = 80
_NOT_OF_SCORES = ("decode", "decoder")  # options that no score depends on
_ASKED_AT_ONCE = 32
_REPEATED = "the device failed at first; it was opened again, and the pair was scored again"


Outcomes = Generator[tuple[tuple[str, Pair], ScoreReport | Exception], None, None]
"""Pairs with their keys, each with its report or its error, in the order in which they are finished."""

Scored = Callable[[Sequence[tuple[str, Pair]], ScoreOptions], Outcomes]
"""A function that scores pairs with their keys."""


def keys_of(pairs: Sequence[Pair], options: ScoreOptions) -> list[str]:
    """Return the key of each pair: a digest of its files with their sizes and change times, and of the options.

    The device is not part of the key, because every row names it. Each file is examined once, and many URLs at a time.
    """
    entries = [(pair.reference_path, pair.distorted_path, pair.raw) for pair in pairs]
    clips = list(dict.fromkeys(clip for reference, distorted, _ in entries for clip in (reference, distorted)))
    with ThreadPoolExecutor(_ASKED_AT_ONCE if any(map(is_url, clips)) else 1) as pool:
        states = dict(zip(clips, map(_as_json, pool.map(input_states, clips)), strict=True))
    how = _as_json({name: value for name, value in asdict(options).items() if name not in _NOT_OF_SCORES} | {"device": None})
    raws = {raw: _as_json(asdict(raw)) for raw in {raw for _, _, raw in entries}}
    keys = {entry: _key(states[entry[0]], states[entry[1]], raws[entry[2]], how) for entry in dict.fromkeys(entries)}
    return [keys[entry] for entry in entries]


def _key(reference: str, distorted: str, raw: str, how: str) -> str:
    """Return the digest of everything that the scores of a pair depend on. Each argument is JSON."""
    scored = f"[{_as_json(__version__)}, [{reference}, {distorted}], {raw}, {how}]"
    return hashlib.sha256(scored.encode()).hexdigest()


def _as_json(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def open_journal(results: PathOrUrl, tell: Callable[[str], None] = lambda _text: None) -> Journal | ObjectJournal:
    """Return the journal beside a file of results, local or by URL; use with `with`. `tell` gets notes about damaged records.

    Raises InputError or OutputError.
    """
    if is_url(results):
        return ObjectJournal(Folder(f"{results}.journal"), tell)
    return Journal(journal_path(Path(results)), tell)


def frames_file(pair: Pair, key: str) -> str:
    """Return the name of the file with the scores of each frame.

    It consists of the distorted clip's name, with harmless characters only, and of the start of the key.
    """
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(named(pair.distorted)).stem)[:_LONGEST_NAME]
    return f"{stem}-{key[:12]}.json"


def score_pairs(
    pairs: Sequence[Pair],
    options: ScoreOptions,
    journal: Journal | ObjectJournal,
    frames: Folder | None = None,
    progress: Callable[[int, int], None] | None = None,
    scored: Scored | None = None,
    worded: Callable[[str], str] = str,
) -> list[Record]:
    """Return the record of each pair. Pairs that the journal has are not scored again, unless they failed.

    Parameters
    ----------
    pairs
        The pairs to score.
    options
        The options for all pairs.
    journal
        Each record is written to it as soon as its pair is finished.
    frames
        A folder for files with the scores of every frame, one file for each pair, named by `frames_file`.
    progress
        A function that gets the number of finished pairs and the number of all pairs.
    scored
        A function that scores the pairs. The default scores them on one device, and decodes a reference once for several clips.
    worded
        A function that rewrites the message of an error for its record: the command line inserts the names of its flags.

    Raises
    ------
    OptionError
        A feature or an option does not exist. It is raised before anything is scored.
    DeviceError
        The device cannot be used, or fails. If a device is lost, its pairs are first scored again, once, with a warning in
        their records. If the device has not enough memory for a pair, only this pair fails.
    OutputError
        The journal or a file of `frames` cannot be written.
    InterruptedRunError
        The user stopped the run.

    """
    check_options(options)
    keys = keys_of(pairs, options)
    written = None if frames is None else frames.names()
    records = journal.records
    left = {key: pair for key, pair in zip(keys, pairs, strict=True) if not _is_done(records.get(key), pair, key, written)}
    todo = dict(sorted(left.items(), key=lambda entry: entry[0] in records))  # pairs that failed before come last
    total = len(set(keys))
    done = total - len(todo)
    report_progress = progress or (lambda _done, _total: None)
    report_progress(done, total)
    try:
        with closing((scored or _together)(list(todo.items()), options)) as outcomes:
            for (key, pair), outcome in outcomes:
                try:
                    _add_hint(pair, outcome, options)
                finally:  # the scores are recorded even if the user stops the run during the search for the hint
                    _keep(journal, key, pair, outcome, frames, worded)
                    done += 1
                report_progress(done, total)
    except (KeyboardInterrupt, InterruptedRunError) as stop:
        stopped = InterruptedRunError(f"stopped with {done} of {total} pairs done; the same command continues from there")
        stopped.signal = getattr(stop, "signal", signal.SIGINT)
        raise stopped from None
    return [journal.records[key] for key in keys]


def _together(todo: Sequence[tuple[str, Pair]], options: ScoreOptions) -> Outcomes:
    groups = list(_groups(todo))
    with TogetherScorer(options, max(map(len, groups), default=1)) as scorer:
        for group in groups:
            with closing(_scored(scorer, group)) as outcomes:
                yield from outcomes


def _scored(scorer: TogetherScorer, group: Sequence[tuple[str, Pair]]) -> Outcomes:
    """Yield each pair of a group with its report or its error, in the order in which they are finished.

    Pairs whose device failed are scored again where `failure_policy` allows it.
    """
    left, failed = group, False
    while left:
        on_failed_device: list[tuple[tuple[str, Pair], DeviceError]] = []
        for entry, outcome in _scored_once(scorer, left):
            if _can_be_repeated(outcome, entry[1]):
                on_failed_device.append((entry, outcome))
                continue
            if failed and isinstance(outcome, ScoreReport):
                outcome.warnings.append(_REPEATED)
            yield entry, outcome
        if not (on_failed_device and scorer.reopen_after(on_failed_device[0][1])):
            yield from on_failed_device
            break
        left, failed = [entry for entry, _ in on_failed_device], True
    if failed:
        scorer.reopen()


def _scored_once(scorer: TogetherScorer, group: Sequence[tuple[str, Pair]]) -> Outcomes:
    first = group[0][1]
    distorted = [pair.distorted_path for _, pair in group]
    with closing(scorer.score(first.reference_path, distorted, first.raw)) as outcomes:
        for place, outcome in outcomes:
            yield group[place], outcome


def _can_be_repeated(outcome: ScoreReport | Exception, pair: Pair) -> TypeGuard[DeviceError]:
    """Return whether the device was lost or ran out of memory later in a run whose files can be read again."""
    lost = isinstance(outcome, DeviceLostError)
    full = isinstance(outcome, DeviceMemoryError) and outcome.report is not None  # the memory was enough at the start
    return (lost or full) and readable_again([pair.reference_path, pair.distorted_path])


def _groups(todo: Iterable[tuple[str, Pair]]) -> Iterable[list[tuple[str, Pair]]]:
    """Yield pairs of one reference, at most MOST_IN_STEP in a group, in the order of the references."""
    by_reference: dict[tuple[str, RawDescription], list[tuple[str, Pair]]] = {}
    for key, pair in todo:
        by_reference.setdefault((pair.reference_path, pair.raw), []).append((key, pair))
    for group in by_reference.values():
        for start in range(0, len(group), MOST_IN_STEP):
            yield group[start : start + MOST_IN_STEP]


def _add_hint(pair: Pair, outcome: ScoreReport | Exception, options: ScoreOptions) -> None:
    """Add a warning if the clips of a pair scored low and seem to be shifted."""
    add_hint(outcome, pair.clips, options, of_many=True)


def _keep(
    journal: Journal | ObjectJournal,
    key: str,
    pair: Pair,
    outcome: ScoreReport | Exception,
    frames: Folder | None,
    worded: Callable[[str], str],
) -> None:
    if isinstance(outcome, InterruptedRunError) or (
        isinstance(outcome, DeviceError) and not isinstance(outcome, DeviceMemoryError)
    ):
        raise outcome
    if isinstance(outcome, MemoryError):
        outcome = HostMemoryError()
    error, report = (outcome, getattr(outcome, "report", None)) if isinstance(outcome, Exception) else (None, outcome)
    if report is not None and not report.frames:
        report = None
    if report is not None and frames is not None:
        frames.write(frames_file(pair, key), render(report, "json", "max").encode())
    # A row of results without a message counts as scored, so an error without one gets its name.
    failure = None if error is None else {"type": _kind(error), "message": worded(str(error) or _kind(error))}
    journal.add(_record(key, pair, report, failure))


def _kind(error: Exception) -> str:
    """Return the name of an error's type; of a type that is internal, that of the public one which it derives from."""
    return next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in errors.__all__), type(error).__name__)


def _record(key: str, pair: Pair, report: ScoreReport | None, failure: dict[str, str] | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "key": key,
        "reference": named(pair.reference),
        "distorted": named(pair.distorted),
        "error": failure,
    }
    if report is not None and report.scoring is not None:
        distorted = report.scoring.distorted
        record |= {
            "width": report.width,
            "height": report.height,
            "bitdepth": report.bits,
            "frames": len(report.frames),
            "measured_kbps": distorted.kbps,
            **{f"distorted_{name}": getattr(distorted, name) for name in CLIP_COLUMNS},
            "backend": report.backend.backend,
            "device": report.backend.device,
            "driver": report.backend.driver,
            "warnings": report.warnings,
            "notes": report.notes,
            "pooled": {
                name: {pooling: _EXACT.number(value) for pooling, value in pooled.items()}
                for name, pooled in report.pooled().items()
            },
            SCORING: json.dumps(brief(report.scoring), separators=(",", ":")),
        }
    return record


def _is_done(record: Record | None, pair: Pair, key: str, written: Collection[str] | None) -> bool:
    if record is None or record["error"] is not None:
        return False
    return written is None or frames_file(pair, key) in written
