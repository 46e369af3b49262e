"""Manifests, CSV and JSON lines, and the tables of results that carry their labels."""

from __future__ import annotations

from vkssim.ladder.manifest import read_manifest
from vkssim.ladder.tables import FORMS, as_rows, check_labels, read_table, render_rows

from .harness import Choices, refusals, scratch


def one_input(data: bytes) -> None:
    """Read a manifest; write its rows in every form, as of pairs that all failed, and read them back."""
    choices = Choices(data)
    path = scratch(f"manifest.{choices.pick(['csv', 'jsonl'])}", choices.rest())
    with refusals():
        pairs = read_manifest(path)
        check_labels(pairs)
        records = [{"key": "", "error": {"type": "InputError", "message": "no such file"}} for _ in pairs]
        rows = as_rows(pairs, records, [None] * len(pairs))
        for form in FORMS:
            read_table(scratch(f"table{form}", render_rows(rows, form)))
