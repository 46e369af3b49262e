"""Score the pairs of a manifest, and write the table of their results; or estimate how long that takes."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from .. import errors
from ..clips import ClipFacts, pair_frames
from ..engine.engine import Job, RunSettings, score_jobs
from ..engine.journal import Journal, Record, open_journal
from ..engine.options import ScoreOptions, check_options
from ..engine.pools import WorkerOptions
from ..engine.ranges import DECODED_PIXELS_A_SECOND, PIXELS_A_SECOND
from ..engine.verdict import offset_of
from ..errors import DeviceError, DeviceMemoryError, HostMemoryError, InputError, OutputError, VkssimError, interrupted_run
from ..metrics import files_of
from ..report import render
from ..report.numbers import finite
from ..report.reading import merge_report
from ..report.record import RawDescription
from ..report.results import ScoreReport
from ..storage.folder import Folder, check_output, write_output
from ..storage.inputs import input_states
from ..storage.location import PathOrUrl, is_url, redact_url, suffix_of
from ..types import plane_shapes
from ..utils.choices import TASK_SECONDS
from ..utils.progress import ProgressBar
from ..utils.values import to_short_json
from ..utils.version import __version__
from .manifest import Pair
from .tables import CLIP_COLUMNS, SCORING, Row, as_rows, check_labels, check_results_path, render_rows

_LONGEST_NAME = 80
_NOT_OF_SCORES = ("decode", "decoder")  # options that no score depends on
_ASKED_AT_ONCE = 32
_as_json = partial(json.dumps, sort_keys=True)


def _keys_of(pairs: Sequence[Pair], options: ScoreOptions) -> list[str]:
    """Return the key of each pair: a digest of its files and of models' with their sizes and change times, and of the options.

    The device is no option, and every row names it. Each file is examined once, and many URLs at a time.
    """
    paths = list(dict.fromkeys(path for pair in pairs for path in pair.clips.paths))
    with ThreadPoolExecutor(_ASKED_AT_ONCE if any(map(is_url, paths)) else 1) as pool:
        states = dict(zip(paths, map(_as_json, pool.map(input_states, paths)), strict=True))

    @cache  # many rows have the same
    def how(own: ScoreOptions, merge: str | None, raw: RawDescription) -> tuple[str, str]:
        models = [input_states(file) for file in files_of(own.features)]
        scored = _as_json(asdict(own) | dict.fromkeys(_NOT_OF_SCORES) | {"models": models})
        return _as_json(asdict(raw)), scored + ("" if merge is None else _as_json(input_states(merge)))

    keys = []
    for pair in pairs:
        raw, scored = how(pair.options(options), pair.merge, pair.clips.raw)
        clips = ", ".join(states[path] for path in pair.clips.paths)
        keys.append(hashlib.sha256(f"[{_as_json(__version__)}, [{clips}], {raw}, {scored}]".encode()).hexdigest())
    return keys


def _frames_file(pair: Pair, key: str) -> str:
    """Return the name of the file with the scores of each frame: the distorted clip's, made harmless, and a part of the key."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(redact_url(pair.distorted)).stem)[:_LONGEST_NAME]
    return f"{stem}-{key[:12]}.json"


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """The settings of a batch besides its pairs and options, none of which changes a score."""

    workers: WorkerOptions
    seconds: float = TASK_SECONDS
    """The time that a range of frames takes, about, if several workers score them."""
    progress: ProgressBar | None = None
    """The bar that shows the frames, and how many pairs are finished."""
    on_note: Callable[[str], None] = lambda _text: None
    warn: Callable[[str], None] = lambda _text: None
    """It gets warnings about workers that fail."""
    worded: Callable[[str], str] = str
    """It rewrites the message of an error for its record: the command line inserts the names of its flags."""


def score_manifest(
    pairs: Sequence[Pair],
    path: PathOrUrl,
    options: ScoreOptions,
    settings: BatchSettings,
    *,
    frames: PathOrUrl | None = None,
    find_offsets: bool = False,
) -> list[Row]:
    """Score pairs with a journal beside `path`, write their table there, and return its rows.

    With `find_offsets`, each pair gets the offset that `offset_of` finds; one without a certain offset keeps its own, with a
    warning. `frames` is a folder for the scores of every frame. The errors are those of `score_pairs`. Raises OutputError
    before anything is scored if the table cannot be written.
    """
    check_results_path(path)
    check_labels(pairs)
    check_output(path)
    folder = None if frames is None else Folder(frames)
    if folder is not None:
        folder.check()

    if find_offsets:
        pairs = [_with_offset(pair, pair.options(options), settings.warn) for pair in pairs]

    with open_journal(path, settings.on_note) as journal:
        records = score_pairs(pairs, options, journal, folder, settings)
        reports = [
            folder.path(_frames_file(pair, record["key"])) if folder is not None and "frames" in record else None
            for pair, record in zip(pairs, records, strict=True)
        ]
        rows = as_rows(pairs, records, reports)
        try:
            write_output(render_rows(rows, suffix_of(path)), path)
        except OutputError as error:
            raise OutputError(f"{error}. All pairs are done: the same command writes them once that is possible") from None
    return rows


def _with_offset(pair: Pair, options: ScoreOptions, warn: Callable[[str], None]) -> Pair:
    try:
        offset = offset_of(pair.clips, options)
    except InputError as error:
        warn(f"{redact_url(pair.distorted)}: {error}")
        return pair
    return replace(pair, offset=offset, labels={**pair.labels, "offset": offset})


def score_pairs(
    pairs: Sequence[Pair], options: ScoreOptions, journal: Journal, frames: Folder | None, settings: BatchSettings
) -> list[Record]:
    """Return the record of each pair. Pairs that the journal has are not scored again, unless they failed.

    The journal gets each frame as soon as it is scored, and the record of a pair as soon as the pair is finished. Raises
    OptionError, before anything is scored, for a feature or an option that does not exist; DeviceError if the device cannot be
    used, or fails; OutputError if the journal or a file of `frames` cannot be written; InterruptedRunError if the user stopped
    the run. If a device is lost, its pairs continue once, with a warning in their records. If the device has not enough memory
    for a pair, only this pair fails.
    """
    check_options(options)
    progress, keys, records = settings.progress, _keys_of(pairs, options), journal.records
    written = None if frames is None else frames.names()

    def is_done(key: str, pair: Pair) -> bool:
        if key not in records or records[key]["error"] is not None:
            return False
        return written is None or _frames_file(pair, key) in written

    left = {key: pair for key, pair in zip(keys, pairs, strict=True) if not is_done(key, pair)}
    todo = dict(sorted(left.items(), key=lambda entry: entry[0] in records))  # pairs that failed before come last
    total = len(set(keys))
    done = total - len(todo)
    jobs = [Job(key, pair.clips, pair.options(options)) for key, pair in todo.items()]
    run = RunSettings(progress=progress, journal=journal, seconds=settings.seconds, warn=settings.warn)

    def say_finished() -> None:
        if progress is not None:
            progress.say(f"{done} of {total} pairs are finished")

    try:
        with closing(score_jobs(jobs, options, settings.workers, run)) as outcomes:
            say_finished()
            for job, outcome in outcomes if jobs else ():
                pair, key = todo[job.key], job.key
                report, error = _report_of(pair, outcome)
                if report is not None and frames is not None:
                    frames.write(_frames_file(pair, key), render(report, "json", "max").encode())
                journal.finish(key, _record(key, pair, report, error, settings.worded))
                done += 1
                say_finished()
    except KeyboardInterrupt as stop:
        problem = f"stopped with {done} of {total} pairs done; the same command continues from there"
        raise interrupted_run(stop, problem) from None
    except OutputError as error:
        raise OutputError(
            f"{error}. {done} of {total} pairs are done; the same command continues from there once it can write"
        ) from None
    return [journal.records[key] for key in keys]


def _report_of(pair: Pair, outcome: ScoreReport | Exception) -> tuple[ScoreReport | None, Exception | None]:
    """Return the report of a pair, which an error may have as well, and its error. Raises an error that ends the batch."""
    if isinstance(outcome, DeviceError) and not isinstance(outcome, DeviceMemoryError):
        raise outcome
    if isinstance(outcome, MemoryError):
        outcome = HostMemoryError()
    error, report = (outcome, getattr(outcome, "report", None)) if isinstance(outcome, Exception) else (None, outcome)
    if report is None or not report.frames:
        return None, error
    try:
        if pair.merge is not None:
            merge_report(report, Path(pair.merge))
    except InputError as failure:
        error = error or failure
    return report, error


def _record(
    key: str, pair: Pair, report: ScoreReport | None, error: Exception | None, worded: Callable[[str], str]
) -> dict[str, Any]:
    failure = None
    if error is not None:
        # The name of the error's type; of a type that is internal, that of the public one from which it derives.
        names = (kind.__name__ for kind in type(error).__mro__)
        kind = next(filter(errors.__all__.__contains__, names), type(error).__name__)
        # A row of results without a message counts as scored, so an error without one gets its name.
        failure = {"type": kind, "message": worded(str(error) or kind)}

    clips = {"reference": redact_url(pair.reference), "distorted": redact_url(pair.distorted)}
    record: dict[str, Any] = {"key": key, **clips, "error": failure}
    if report is not None and report.scoring is not None:
        distorted = report.scoring.distorted
        record |= {
            "width": report.width,
            "height": report.height,
            "bitdepth": report.bits,
            "frames": len(report.frames),
            "measured_kbps": distorted.kbps,
            **{f"distorted_{name}": getattr(distorted, name) for name in CLIP_COLUMNS},
            **asdict(report.backend),
            "warnings": report.warnings,
            "notes": report.notes,
            "pooled": finite(report.pooled()),
            SCORING: json.dumps(to_short_json(report.scoring), separators=(",", ":")),
        }
    return record


# -- estimate -----------------------------------------------------------------------------------------------------------

MAX_OPENED = 1000
"""The number of pairs that are opened; larger batches are estimated from these."""

_RAW = "raw"  # the decoder of raw files, as reports name it


@dataclass(frozen=True)
class Forecast:
    """The estimate for the pairs of a batch."""

    pairs: int
    opened: int
    """The number of pairs that were opened; the estimate follows from them."""
    failed: tuple[str, ...]
    """The errors of those that cannot be scored."""
    frames: int
    tasks: int
    bytes: int
    """The bytes to read."""
    seconds: float
    """The time on one worker of the first kind."""
    elapsed: float
    """The time on all workers together."""


def forecast(pairs: Sequence[Pair], options: ScoreOptions, kinds: Sequence[str], cores: int, task_seconds: float) -> Forecast:
    """Return the estimate for pairs on workers of these `kinds` (`WorkerSpec.kind`), which share `cores` cores.

    Clips are opened, but nothing is scored. The time is right within a factor, not within percents.
    """
    chosen = pairs if len(pairs) <= MAX_OPENED else [pairs[len(pairs) * n // MAX_OPENED] for n in range(MAX_OPENED)]

    def look(pair: Pair) -> tuple[int, int, float] | str:
        try:
            return _expected(pair, pair.options(options), kinds[0], cores / len(kinds))
        except (VkssimError, OSError) as error:
            return str(error)

    with ThreadPoolExecutor(min(32, 4 * (os.cpu_count() or 1))) as pool:
        estimates = list(pool.map(look, chosen))

    failed = tuple(estimate for estimate in estimates if isinstance(estimate, str))
    readable = [estimate for estimate in estimates if not isinstance(estimate, str)]
    scale = len(pairs) / len(chosen)
    frames, read, seconds = (scale * sum(column) for column in zip(*readable, strict=True)) if readable else (0, 0, 0.0)
    tasks = scale * sum(max(1, round(seconds / task_seconds)) for _, _, seconds in readable)
    elapsed = seconds / sum(PIXELS_A_SECOND[kind] / PIXELS_A_SECOND[kinds[0]] for kind in kinds)
    return Forecast(len(pairs), len(chosen), failed, round(frames), round(tasks), round(read), seconds, elapsed)


def _expected(pair: Pair, options: ScoreOptions, kind: str, cores: float) -> tuple[int, int, float]:
    """Return the frames, the bytes to read and the seconds of a pair."""
    selection, raw = options.selection, pair.clips.raw
    pictures = replace(options.pictures, crop=None)  # the search for black bars would take longer than all the rest here
    pairs = pair_frames(
        *pair.clips.paths, raw=raw, selection=selection, sync=options.sync, pictures=pictures, chroma=options.chroma
    )
    frames, clips = pairs.count or 0, (pairs.reference, pairs.distorted)

    pixels = frames * (pairs.reference.width or 0) * (pairs.reference.height or 0)
    compressed = any(clip.stream is not None for clip in clips)  # only containers have streams
    decoding = pixels * selection.subsample / DECODED_PIXELS_A_SECOND / cores if compressed else 0.0
    scoring = pixels / PIXELS_A_SECOND[kind]
    read = sum(_bytes(clip, frames * selection.subsample, options.planes) for clip in clips)
    return frames, read, max(scoring, decoding) if kind == "gpu" else scoring + decoding


def _bytes(clip: ClipFacts, frames: int, planes: str) -> int:
    """Return the bytes that will be read of a clip for its first frames: of raw files only the planes that are scored."""
    if clip.decoder == _RAW:
        shapes = plane_shapes(clip.width or 0, clip.height or 0, clip.chroma or "400")
        samples = sum(height * width for height, width in shapes[: 1 if planes == "y" else 3])
        return frames * samples * (1 if clip.bits == 8 else 2)
    share = min(1.0, frames / clip.frames) if clip.frames else 1.0
    return round((clip.file_bytes or 0) * share)
