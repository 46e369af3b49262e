"""Read manifests: CSV with a header or JSON lines, with one row for each pair of clips."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..engine.options import Clips, ScoreOptions
from ..errors import InputError, VkssimError
from ..report.record import PictureOptions, RawDescription, Selection
from ..storage.folder import read_whole
from ..storage.location import PathOrUrl, is_url, join, parent_of, redact_url, suffix_of, unsupported_url
from ..types import PIXEL_FORMATS
from ..utils.choices import BIT_DEPTHS
from ..utils.limits import LARGEST_TABLE_BYTES, LONGEST_PATH, MAX_CELLS, MAX_COLUMNS, MAX_ROWS, abbreviated, whole_number
from ..utils.sanitize import encodable
from ..utils.wording import counted

Label = str | int | float | bool | None
"""The value of a column that labels a row."""

JSON_LINES = (".jsonl", ".ndjson")
"""The file endings that are read as JSON lines. Every other file is read as CSV."""

_CLIPS = ("reference", "distorted")
_SHORTEST = 3  # letters of a name's abbreviation
_PICTURES = ("scale", "crop", "film_grain")
_RAW = {"width": "width", "height": "height", "pixel_format": "pixel_format", "bitdepth": "bits"}
_LARGEST_NUMBER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Pair:
    """A row of a manifest: the clips to score, the labels of the row, and the options that it sets itself."""

    reference: str
    """The reference, as written in the manifest."""
    distorted: str
    """The distorted clip, as written in the manifest."""
    clips: Clips
    """Both as paths or URLs that can be opened."""
    labels: Mapping[str, Label] = field(default_factory=dict)
    offset: int | None = None
    pictures: Mapping[str, str] = field(default_factory=dict)
    merge: str | None = None
    """The path of a file whose scores are added to those of the pair."""

    def options(self, options: ScoreOptions) -> ScoreOptions:
        """Return the options of a run with those that the row sets in their place."""
        pictures = replace(options.pictures, **self.pictures) if self.pictures else options.pictures  # type: ignore[arg-type]
        selection = options.selection if self.offset is None else replace(options.selection, offset=self.offset)
        return replace(options, pictures=pictures, selection=selection)


def read_manifest(path: PathOrUrl, raw: RawDescription | None = None, *, urls: bool = False) -> list[Pair]:
    """Return the rows of a manifest.

    Columns `reference` and `distorted` are files, relative to the manifest's folder. `width`, `height`, `pixel_format` and
    `bitdepth` describe raw files and override `raw`. `offset`, `scale`, `crop`, `film_grain` and `merge` set these options for
    the row, if they are not empty. They are labels as well, as every other column is. Blanks around a text do not count. The
    manifest may be a URL. Its rows may name other URLs only with `urls`, otherwise its author could choose the servers that
    vkssim connects to. Raises InputError, which names the line.
    """
    name, folder = redact_url(path), parent_of(path)
    pairs = []
    for line, row in read_rows(path):
        stripped = {column: value.strip() if isinstance(value, str) else value for column, value in row.items()}
        pairs.append(_pair(f"{name}, line {line}", stripped, folder, raw or RawDescription()))
    for pair in () if urls else pairs:
        for clip in filter(is_url, (pair.reference, pair.distorted)):
            raise InputError(f"{name} names the URL {redact_url(clip)}; with `urls` vkssim connects to the URLs of a manifest")
    if not pairs:
        raise InputError(f"{name} has no rows; a manifest has a row for each pair, with columns reference and distorted")
    return pairs


def read_rows(path: PathOrUrl) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a CSV file or of JSON lines, by column, each with its line. Raises InputError."""
    name, is_json = redact_url(path), suffix_of(path) in JSON_LINES
    data = io.BytesIO(read_whole(path, LARGEST_TABLE_BYTES))
    # Each line is decoded by itself, which takes less memory. Line ends within cells of CSV stay unchanged.
    text = io.TextIOWrapper(data, "utf-8-sig", newline="\n" if is_json else "")
    values = 0
    try:
        for count, (line, row) in enumerate((_json_rows if is_json else _csv_rows)(name, text), 1):
            values += len(row)
            if count > MAX_ROWS or values > MAX_CELLS:
                raise InputError(f"{name}, line {line}: the limit is {MAX_ROWS} rows and {MAX_CELLS} cells")
            yield line, row
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not text in UTF-8: {error}") from None


def _json_rows(path: str, text: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, entry in enumerate(text, 1):
        if not entry.strip():
            continue

        def as_object(entries: list[tuple[str, Any]], line: int = line) -> dict[str, Any]:
            if twice := _twice(key for key, _ in entries):  # JSON itself leaves open which of the values counts
                raise InputError(f"{path}, line {line} has more than one key {twice}")
            return dict(entries)

        try:
            row = json.loads(entry, object_pairs_hook=as_object)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {line} is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise InputError(f'{path}, line {line} is not an object, such as {{"reference": "a.mp4", "distorted": "b.mp4"}}')
        yield line, row


def _twice(names: Iterable[str]) -> str:
    """Return the names that are there more than once, as a list for a message; "" if there are none."""
    return ", ".join(sorted(repr(name) for name, count in Counter(names).items() if count > 1))


def _csv_rows(path: str, text: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(text, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if len(header) > MAX_COLUMNS:
            raise InputError(f"{path} has {len(header)} columns; the limit is {MAX_COLUMNS}")
        if twice := _twice(header):
            raise InputError(f"{path} has more than one column {twice}")
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise InputError(f"{path}, line {reader.line_num} has {counted(len(cells), 'cell')}, the header {len(header)}")
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num} is not CSV: {error}") from None


def _pair(row_name: str, row: dict[str, Any], folder: PathOrUrl, raw: RawDescription) -> Pair:
    reference, distorted = (_file(row_name, row, name) for name in ("reference", "distorted"))
    merge = str(row.get("merge") or "").strip()
    if merge and (is_url(merge) or not _is_file_name(merge)):
        raise InputError(f"{row_name}: merge is {redact_url(merge)[:80]!r}; it must be the name of a file on this machine")

    labels = {name: value for name, value in row.items() if name not in ("reference", "distorted", *_RAW)}
    for name, value in labels.items():
        if any(encodable(text) != text for text in (name, value) if isinstance(text, str)):
            raise InputError(f"{row_name}: {abbreviated(name)} is {abbreviated(value)}; half a surrogate pair is not text")
        if not isinstance(value, Label):
            raise InputError(f"{row_name}: {name} is {type(value).__name__}; a label is text, a number, true, false or null")
        if isinstance(value, int | float) and not abs(value) <= _LARGEST_NUMBER:
            raise InputError(f"{row_name}: {name} is {value:.3g}; numbers go up to {_LARGEST_NUMBER:.3g}")
    clips = Clips(_place(row_name, reference, folder), _place(row_name, distorted, folder), _described(row_name, row, raw))
    added = _place(row_name, merge, folder) if merge else None
    return Pair(reference, distorted, clips, labels, *_own_options(row_name, row), added)


def _place(row_name: str, name: str, folder: PathOrUrl) -> str:
    """Return the path or URL of a file that a manifest in this folder names. Raises InputError for an unsupported URL."""
    if is_url(name):
        return name
    place, refusal = join(folder, name), unsupported_url(name)
    if refusal is not None and not os.path.exists(place):
        raise InputError(f"{row_name}: {refusal}")
    return place


def _file(row_name: str, row: dict[str, Any], name: str) -> str:
    if name not in row:
        columns = ", ".join(row) or "none"
        meant = {column: needed for column in row for needed in _CLIPS if _abbreviates(column, needed)}
        cure = f". Rename {', '.join(f'{column} to {needed}' for column, needed in meant.items())}" if meant else ""
        raise InputError(f"{row_name}: no column {name}. The columns are {columns}; reference and distorted are needed{cure}")
    value = row[name]
    if not isinstance(value, str) or not _is_file_name(value):
        raise InputError(f"{row_name}: {name} is {redact_url(str(value))[:80]!r}; it must be the name of a file")
    if value == "-":
        raise InputError(f"{row_name}: {name} is standard input; a manifest names files")
    return value


def _abbreviates(column: str, name: str) -> bool:
    """Return whether a column seems to be meant by a name: ref, Ref, reference_file; dis, dist."""
    start = column.lower().split("_")[0]
    return column != name and len(start) >= _SHORTEST and name.startswith(start)


def _is_file_name(text: str) -> bool:
    """Return True for names that the system allows. Bytes that are not text appear in them as half surrogate pairs."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return 0 < len(text) <= LONGEST_PATH and "\0" not in text


def _own_options(row_name: str, row: dict[str, Any]) -> tuple[int | None, dict[str, str]]:
    """Return the offset and the options of pictures that the row sets. Raises InputError for a value that is not possible."""
    offset, pictures = None, {}
    for name in ("offset", *_PICTURES):
        text = "" if row.get(name) is None else str(row[name]).strip()
        try:
            if text and name == "offset":
                number = whole_number(text.removeprefix("-"))
                if number is None:
                    raise InputError(f"{text[:80]!r} is not a whole number")
                offset = Selection(offset=-number if text.startswith("-") else number).offset
            elif text:
                replace(PictureOptions(), **{name: text})  # type: ignore[arg-type] # not every field is a text
                pictures[name] = text
        except VkssimError as error:
            raise InputError(f"{row_name}: {name}: {error}") from None
    return offset, pictures


def _described(row_name: str, row: dict[str, Any], raw: RawDescription) -> RawDescription:
    """Return a description of raw files with the fields that the row sets."""
    values: dict[str, Any] = {}
    for column, field_name in _RAW.items():
        text = str(row.get(column) or "").strip()
        choices: Any = {"pixel_format": PIXEL_FORMATS, "bits": BIT_DEPTHS}.get(field_name)
        value: Any = text if field_name == "pixel_format" else whole_number(text)
        if text and not (value in choices if choices else value):
            allowed = f"one of {', '.join(map(str, choices))}" if choices else "a whole number over 0"
            raise InputError(f"{row_name}: {column} is {text[:80]!r}; it must be {allowed}")
        if text:
            values[field_name] = value
    return replace(raw, **values) if values else raw
