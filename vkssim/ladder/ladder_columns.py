"""Find the columns of results that tell ladders apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from .tables import Row, was_scored

_CODECS = ("codec", "distorted_codec")
_RATES = ("bitrate", "kbps", "rate", "maxrate", "bufsize")
_QUALITIES = ("crf", "cq", "cqp", "qp", "q", "qscale", "quality", "target")
_SIZES = ("height", "width", "size", "resolution", "scale")
_STEPS = frozenset(("rung", *_RATES, *_QUALITIES, *_SIZES))
"""Labels that number the steps of one ladder."""
_NOT_OF_ENCODERS = frozenset(("offset", "crop", "merge", "mos", "dmos"))

Entry = TypeVar("Entry")


def ladder_columns(rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    """Return the columns that tell the ladders of a reference apart: labels that differ besides the steps, and the codec."""
    named = [name for name in labels if name.casefold() not in _STEPS | _NOT_OF_ENCODERS]
    codec = [name for name in _CODECS if name in rows[0]][:1]
    references = grouped(filter(was_scored, rows), lambda row: row["reference"])
    found: list[str] = []
    # Texts first, and of each kind those with the fewest values: only together with these do numbers show whether each clip has
    # its own, as a time has, and texts whether they are names of clips.
    columns = [*named, *(name for name in codec if name not in named)]
    for name in sorted(columns, key=lambda name: (_is_numeric(rows, name), len({row[name] for row in rows}))):
        if any(_separates(name, found, of_reference) for of_reference in references):
            found.append(name)
    return sorted(found, key=list(rows[0]).index) or codec


def _is_numeric(rows: Sequence[Row], name: str) -> bool:
    try:
        return all(math.isfinite(float(str(row[name]))) for row in rows if row[name] not in (None, ""))
    except ValueError:
        return False


def _separates(name: str, found: Sequence[str], rows: Sequence[Row]) -> bool:
    """Return whether a column divides the ladders that columns have found before it.

    A number has to leave them two clips each, on average. A text of each clip's own is its name, if the ladders have steps.
    """
    before = grouped(rows, lambda row: tuple(row[column] for column in found))
    after = len(grouped(rows, lambda row: tuple(row[column] for column in (*found, name))))
    if after == len(before):
        return False
    if _is_numeric(rows, name):
        return after <= len(rows) / 2
    return not found or len({row[name] for row in rows}) < len(rows) or not all(map(_have_steps, before))


def _have_steps(rows: Sequence[Row]) -> bool:
    """Return whether no two of several rows have the same steps."""
    steps = [name for name in rows[0] if name.casefold() in _STEPS]
    return 1 < len(rows) == len({tuple(row[name] for name in steps) for row in rows})


def are_steps(labels: Sequence[Mapping[str, str]]) -> bool:
    """Return whether clips of one ladder's name are its steps. Of two clips a label such as ``crf`` has to say so."""
    first, *rest = labels
    steps = [name for name in first if name.casefold() in _STEPS]
    return len(rest) != 1 or any(first[name] != rest[0].get(name) for name in steps)


def grouped(entries: Iterable[Entry], key: Callable[[Entry], Hashable]) -> list[list[Entry]]:
    """Return entries in groups of equal keys, in the order of their first entries."""
    groups: dict[Hashable, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return list(groups.values())
