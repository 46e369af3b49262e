"""Read Parquet within limits. It can unpack to far more than its file size, so the declared sizes are checked first."""

from __future__ import annotations

import io
from typing import Any

from ..errors import InputError
from ..storage.location import PathOrUrl, redact_url
from ..storage.reading import read_whole
from ..utils.extras import require_extra
from ..utils.limits import LARGEST_TABLE_BYTES, MOST_CELLS, MOST_COLUMNS, MOST_ROWS
from ..utils.wording import counted

_LARGEST_METADATA = 1 << 24  # bytes and entries of the file's metadata
_LONGEST_DECIMAL = 32  # bytes


def read_parquet(place: PathOrUrl) -> list[dict[str, Any]]:
    """Return the rows of a flat table. Raises InputError if it is not a flat table, or is larger than the limits."""
    parquet, arrow = require_extra("pyarrow.parquet", "report", "Parquet"), require_extra("pyarrow", "report", "Parquet")
    data, path = read_whole(place, LARGEST_TABLE_BYTES), redact_url(place)
    try:
        limits = {"thrift_string_size_limit": _LARGEST_METADATA, "thrift_container_size_limit": _LARGEST_METADATA}
        texts = _check_declared(path, parquet.ParquetFile(io.BytesIO(data), **limits))
        # Texts are read as a dictionary with indices, so a long text that repeats is in memory once.
        table = parquet.ParquetFile(io.BytesIO(data), read_dictionary=texts, **limits).read(use_threads=False)
        _check_read(path, table, arrow)
        return list(table.to_pylist())
    except (arrow.ArrowException, ValueError, OverflowError, MemoryError, OSError) as error:
        raise InputError(f"{path} is not Parquet that can be read: {error}") from None


def _check_declared(path: str, file: Any) -> list[str]:
    """Return the names of the columns of text. Raises InputError."""
    metadata, schema = file.metadata, file.schema
    columns = [schema.column(number) for number in range(min(len(schema), MOST_COLUMNS + 1))]
    rows = metadata.num_rows
    if len(columns) > MOST_COLUMNS or rows > MOST_ROWS or rows * len(columns) > MOST_CELLS:
        raise InputError(
            f"{path} has {counted(len(schema), 'column')} and {counted(rows, 'row')};"
            f" the limits are {MOST_COLUMNS} columns, {MOST_ROWS} rows and {MOST_CELLS} cells"
        )
    for column in columns:
        if column.max_repetition_level or column.max_definition_level > 1:
            raise InputError(f"{path}: the column {column.path} is nested; a table has one value in a cell")
        if column.physical_type == "FIXED_LEN_BYTE_ARRAY" and column.length > _LONGEST_DECIMAL:
            raise InputError(f"{path}: the column {column.path} has values of {column.length} bytes, which are not numbers")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    unpacked = sum(abs(group.total_byte_size) for group in groups)
    if unpacked > LARGEST_TABLE_BYTES:
        raise InputError(f"{path} unpacks to {unpacked} bytes; the limit is {LARGEST_TABLE_BYTES}")
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def _check_read(path: str, table: Any, arrow: Any) -> None:
    compute = require_extra("pyarrow.compute", "report", "Parquet")
    size = table.nbytes
    for column in table.columns:
        for chunk in column.chunks:
            if arrow.types.is_dictionary(chunk.type):
                lengths = compute.binary_length(chunk.dictionary).take(chunk.indices)
                size += compute.sum(lengths).as_py() or 0
    if size > LARGEST_TABLE_BYTES:
        raise InputError(f"{path} unpacks to {size} bytes; the limit is {LARGEST_TABLE_BYTES}")
