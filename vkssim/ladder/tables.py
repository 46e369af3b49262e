"""Write and read the results of a batch as a table with one row for each pair: Parquet, CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from ..engine.journal import Record
from ..errors import InputError, OptionError
from ..metrics import FEATURES
from ..metrics.comparability import Scored
from ..report.reading import check_similarity
from ..report.record import ClipFacts, ScoringRecord
from ..report.thresholds import POOLINGS
from ..storage.folder import read_whole
from ..storage.location import PathOrUrl, redact_url, suffix_of
from ..utils.limits import LARGEST_TABLE_BYTES, MAX_CELLS, MAX_COLUMNS, MAX_ROWS, abbreviated
from ..utils.sanitize import cell, encodable, text_of_cell
from ..utils.values import from_json, values_of
from ..utils.version import require_extra
from ..utils.wording import counted, did_you_mean
from .manifest import Label, Pair, read_rows

FORMS = (".parquet", ".csv", ".jsonl")

CLIP_COLUMNS = tuple(name for name, entry in values_of(ClipFacts).items() if entry.column)
"""The facts of the distorted clip that have columns of their own, with ``distorted_`` before their names."""

SCORING = "scoring"
"""The column that records how a row was scored: a `ScoringRecord` as JSON, without defaults."""

_CLIP_FACTS_COMPARED = {
    clip: [name for name, entry in values_of(ClipFacts).items() if entry.is_compared(of_reference=clip == "reference")]
    for clip in ("reference", "distorted")
}

_OLDEST_COLUMNS = (
    "reference",
    "distorted",
    "width",
    "height",
    "bitdepth",
    "frames",
    "measured_kbps",
    "backend",
    "device",
    "driver",
    "warnings",
    "notes",
    "report",
    "error_type",
    "error",
)
"""The columns that identify results: those of the first version."""

RATES = ("bitrate", "measured_kbps")
"""The columns with bit rates: the one that a manifest may have, and the measured one of the video in kbit/s."""

COLUMNS = (*_OLDEST_COLUMNS, *(f"distorted_{name}" for name in CLIP_COLUMNS), SCORING)
"""The columns of every table besides labels and scores. A score has the columns `NAME_POOLING`, such as float_ssim_mean."""

Row = dict[str, Any]

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$")
_WHOLE = re.compile(r"-?\d{1,18}$")
_LARGEST_METADATA = 1 << 24  # bytes and entries of the file's metadata
_LONGEST_DECIMAL = 32  # bytes

_POOLED_ENDS = tuple(f"_{pooling}" for pooling in (*POOLINGS, "stddev") if pooling != "mean_db")

_require_arrow = partial(require_extra, extra="report", purpose="Parquet")


def check_results_path(path: PathOrUrl) -> None:
    """Raise OptionError if the ending of the path is not a form of results."""
    if suffix_of(path) not in FORMS:
        raise OptionError(f"`output={redact_url(path)}` does not end in {', '.join(FORMS)}")
    if suffix_of(path) == ".parquet":
        _require_arrow("pyarrow.parquet")


def check_labels(pairs: Sequence[Pair]) -> None:
    """Raise InputError if a label has the name of a column that the results themselves have."""
    scores = (*(f"{name}_" for name in FEATURES), "integer_")  # the second as libvmaf names the scores of vif and adm
    for name in dict.fromkeys(name for pair in pairs for name in pair.labels):
        if name in COLUMNS or name.startswith(scores):
            raise InputError(f"the manifest has a column {name}, which is also the name of a column of the results; rename it")


def as_rows(pairs: Sequence[Pair], records: Sequence[Record], reports: Sequence[str | None]) -> list[Row]:
    """Return flat rows that all have the same columns. `reports` are the files with the scores of each pair's frames."""
    names = dict.fromkeys(name for pair in pairs for name in pair.labels)
    labels = {name: _typed([pair.labels.get(name) for pair in pairs]) for name in names}
    scores = [
        {f"{name}_{pooling}": value for name, pooled in record.get("pooled", {}).items() for pooling, value in pooled.items()}
        for record in records
    ]
    missing = dict.fromkeys(column for own in scores for column in own)

    rows = []
    for place, (pair, record, report, own) in enumerate(zip(pairs, records, reports, scores, strict=True)):
        error = record["error"] or {}
        row: Row = {"reference": redact_url(pair.reference), "distorted": redact_url(pair.distorted)}
        row |= {name: column[place] for name, column in labels.items()}
        row |= {name: record.get(name) for name in COLUMNS[2:]}
        row |= {name: "; ".join(record.get(name) or []) or None for name in ("warnings", "notes")}
        row |= {"report": report, "error_type": error.get("type"), "error": error.get("message"), **missing, **own}
        rows.append(row)
    return rows


def render_rows(rows: Sequence[Row], form: str) -> bytes:
    """Return the table in the form of that ending. File names that are not UTF-8 are escaped, because no form can hold them."""
    entries = (
        {encodable(name): encodable(value) if isinstance(value, str) else value for name, value in row.items()} for row in rows
    )
    if form == ".parquet":
        return _parquet(list(entries))
    lines = _csv_lines(entries) if form == ".csv" else (json.dumps(entry, allow_nan=False) + "\n" for entry in entries)
    return b"".join(line.encode() for line in lines)


def _csv_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield rows as CSV. A text that a spreadsheet would read as a formula gets an apostrophe in front."""
    for number, row in enumerate(rows):
        for values in (row.values(),) if number else (row, row.values()):
            line = io.StringIO()
            csv.writer(line).writerow(cell(value) if isinstance(value, str) else value for value in values)
            yield line.getvalue().removesuffix("\r\n") + "\n"  # only \r\n as its line end lets the writer quote each \r and \n


def read_table(path: PathOrUrl) -> list[Row]:
    """Return the rows of a table or of a manifest, read by the ending of its name. Cells of CSV are text.

    All rows have the same columns, with a single value in each cell. Raises InputError.
    """
    if suffix_of(path) != ".parquet":
        rows = [
            {text_of_cell(name): text_of_cell(value) if isinstance(value, str) else value for name, value in row.items()}
            for _, row in read_rows(path)
        ]
    else:
        rows = _read_parquet(path)

    shown = redact_url(path)
    if not rows:
        raise InputError(f"{shown} has no rows")
    columns: Row = dict.fromkeys(name for row in rows for name in row)
    if len(rows) * len(columns) > MAX_CELLS:
        size = f"{counted(len(rows), 'row')} of {counted(len(columns), 'column')}"
        raise InputError(f"{shown} has {size}; the limit is {MAX_CELLS} cells")
    for line, row in enumerate(rows, 1):
        for name, value in row.items():
            if isinstance(value, list | dict):
                raise InputError(f"{shown}, row {line}: {abbreviated(name)} is {type(value).__name__}; a cell has one value")
    return [{**columns, **row} for row in rows]


def is_results(rows: Sequence[Row]) -> bool:
    """Return True for the rows of a batch's results, False for the rows of a manifest."""
    return rows[0].keys() >= set(_OLDEST_COLUMNS)


def how_scored(rows: Iterable[Row]) -> list[Scored]:
    """Return the record of each row of results, as far as comparisons need it. Raises InputError."""
    return [Scored(str(row["distorted"]), str(row["reference"]), scoring_of(row, compared=True)) for row in rows]


def scoring_of(row: Row, *, compared: bool = False) -> ScoringRecord | None:
    """Return the record of a row; None if the row has no record. Raises InputError, which names the row.

    `compared` leaves out the facts that may differ in every row.
    """
    text = row.get(SCORING)
    if text in (None, ""):
        return None
    try:
        data = json.loads(str(text))
        if not compared:
            return from_json(ScoringRecord, data, SCORING)
        data["command"] = ""
        for clip, names in _CLIP_FACTS_COMPARED.items():
            data[clip] = {name: value for name, value in data[clip].items() if name in names}
        return _record_of(json.dumps(data, sort_keys=True))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{row['distorted']}: the column {SCORING} is not a record of how it was scored ({error})") from None


@lru_cache(maxsize=1024)
def _record_of(text: str) -> ScoringRecord:
    return from_json(ScoringRecord, json.loads(text), SCORING)


def was_scored(row: Row) -> bool:
    """Return whether the pair of a row did not fail in the batch."""
    return row["error"] in (None, "")


def check_scored(rows: Sequence[Row]) -> None:
    """Raise InputError if a pair failed in the batch."""
    for row in rows:
        if not was_scored(row):
            cure = "repair the cause and score it again, or leave its row out"
            raise InputError(f"{row['distorted']} was not scored ({row['error']}); {cure}")


def scores_of(rows: Sequence[Row]) -> list[str]:
    """Return the names of the scores that have columns in the results."""
    pooled = "_harmonic_mean"  # the one pooling with which no label is likely to end
    return [name.removesuffix(pooled) for name in rows[0] if name.endswith(pooled)]


def labels_of(rows: Sequence[Row]) -> list[str]:
    """Return the columns that are neither scores nor columns of every table."""
    scores = tuple(f"{name}_" for name in scores_of(rows))
    return [name for name in rows[0] if name not in COLUMNS and not (scores and name.startswith(scores))]


def score_columns(rows: Sequence[Row], names: Sequence[str], pooling: str) -> dict[str, str]:
    """Return the columns of the scores in `names`, or of all scores if it is empty, with that pooling, by score.

    Raises OptionError, which names the available ones, for a score or a pooling that the results do not have.
    """
    available = scores_of(rows)
    unknown = [name for name in names if name not in available]
    if unknown or not available:
        hint = did_you_mean(unknown[0], available) if unknown else ""
        listed = ", ".join(available) or "none"
        raise OptionError(f"no score {', '.join(unknown) or 'at all'} in the results{hint}. Available scores: {listed}")
    columns = {name: f"{name}_{pooling}" for name in names or available}
    for name, column in columns.items():
        if column not in rows[0]:
            available = [heading.removeprefix(f"{name}_") for heading in rows[0] if heading.startswith(f"{name}_")]
            hint = did_you_mean(pooling, available)
            raise OptionError(f"{name} is not pooled as {pooling!r}{hint}. Available: {', '.join(available)}")
    return columns


def is_similarity(rows: Sequence[Row], score: str) -> bool:
    """Return whether a score of results is a similarity, 1 at most. Only these have a mean in dB."""
    return any(row.get(f"{score}_mean_db") not in (None, "") for row in rows)


def number(row: Row, column: str) -> float:
    """Return a cell of a pair as a finite number, a pooled similarity as one that is possible.

    Raises InputError, which names the pair, for every other cell.
    """
    if column not in row:
        raise InputError(f"{row['distorted']}: no column {column!r}. The columns are {', '.join(row)}")
    value = row[column]
    try:
        parsed = math.nan if value is None or isinstance(value, bool) else float(value)
    except (ValueError, TypeError, OverflowError):
        parsed = math.nan
    if not math.isfinite(parsed):
        shown = "empty" if value in (None, "") else abbreviated(value)
        raise InputError(f"{row['distorted']}: {column} is {shown}; it must be a number")
    # Only a similarity has a column for its mean in dB.
    if any(f"{column.removesuffix(end)}_mean_db" in row for end in _POOLED_ENDS if column.endswith(end)):
        try:
            check_similarity(parsed)
        except ValueError as error:
            raise InputError(f"{row['distorted']}: {column} is {error}") from None
    return parsed


def _typed(values: list[Label]) -> list[Label]:
    """Return a column in one type: numbers if every text is a number, text if types are mixed; an empty value is None."""
    given = [value for value in values if value not in (None, "")]
    types = {type(value) for value in given}
    if types == {str} and all(_NUMBER.match(str(value)) for value in given):
        kind: type = int if all(_WHOLE.match(str(value)) for value in given) else float
    elif types <= {int, float}:
        kind = float if float in types else int
    else:
        kind = types.pop() if len(types) == 1 else str
    return [None if value is None or value == "" else kind(value) for value in values]


def _parquet(rows: Sequence[Row]) -> bytes:
    parquet, arrow = _require_arrow("pyarrow.parquet"), _require_arrow("pyarrow")
    arrays = {name: arrow.array([row[name] for row in rows]) for name in rows[0]}
    columns = {name: array.cast(arrow.string()) if array.type == arrow.null() else array for name, array in arrays.items()}
    target = io.BytesIO()
    parquet.write_table(arrow.table(columns), target)
    return target.getvalue()


def _read_parquet(place: PathOrUrl) -> list[dict[str, Any]]:
    """Return the rows of a flat table. Raises InputError if it is not a flat table, or is larger than the limits.

    Parquet can unpack to far more than its file size, so the declared sizes are checked first.
    """
    parquet, arrow, compute = map(_require_arrow, ("pyarrow.parquet", "pyarrow", "pyarrow.compute"))
    data, path = read_whole(place, LARGEST_TABLE_BYTES), redact_url(place)
    limits = {"thrift_string_size_limit": _LARGEST_METADATA, "thrift_container_size_limit": _LARGEST_METADATA}
    try:
        texts = _check_declared(path, parquet.ParquetFile(io.BytesIO(data), **limits))
        # Texts are read as a dictionary with indices, so a long text that repeats is in memory once.
        table = parquet.ParquetFile(io.BytesIO(data), read_dictionary=texts, **limits).read(use_threads=False)
        size = table.nbytes
        for chunk in (chunk for column in table.columns for chunk in column.chunks):
            if arrow.types.is_dictionary(chunk.type):
                lengths = compute.binary_length(chunk.dictionary).take(chunk.indices)
                size += compute.sum(lengths).as_py() or 0
        _check_unpacked(path, size)
        return list(table.to_pylist())
    except (arrow.ArrowException, ValueError, OverflowError, MemoryError, OSError) as error:
        raise InputError(f"{path} is not Parquet that can be read: {error}") from None


def _check_declared(path: str, file: Any) -> list[str]:
    """Return the names of the columns of text. Raises InputError."""
    metadata, schema = file.metadata, file.schema
    columns = [schema.column(number) for number in range(min(len(schema), MAX_COLUMNS + 1))]
    rows = metadata.num_rows
    if len(columns) > MAX_COLUMNS or rows > MAX_ROWS or rows * len(columns) > MAX_CELLS:
        limits = f"{MAX_COLUMNS} columns, {MAX_ROWS} rows and {MAX_CELLS} cells"
        raise InputError(f"{path} has {counted(len(schema), 'column')} and {counted(rows, 'row')}; the limits are {limits}")
    for column in columns:
        if column.max_repetition_level or column.max_definition_level > 1:
            raise InputError(f"{path}: the column {column.path} is nested; a table has one value in a cell")
        if column.physical_type == "FIXED_LEN_BYTE_ARRAY" and column.length > _LONGEST_DECIMAL:
            raise InputError(f"{path}: the column {column.path} has values of {column.length} bytes, which are not numbers")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    _check_unpacked(path, sum(abs(group.total_byte_size) for group in groups))
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def _check_unpacked(path: str, size: int) -> None:
    if size > LARGEST_TABLE_BYTES:
        raise InputError(f"{path} unpacks to {size} bytes; the limit is {LARGEST_TABLE_BYTES}")
