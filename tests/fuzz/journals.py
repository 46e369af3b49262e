"""Journals of a batch."""

from __future__ import annotations

from vkssim.scoring.journal import Journal

from .harness import refusals, scratch


def one_input(data: bytes) -> None:
    """Open a journal, write on, open it again."""
    path = scratch("journal", data)
    with refusals():
        with Journal(path) as journal:
            known, frames = dict(journal.records), journal.frames
            journal.finish("new", {"key": "new", "error": None})
        with Journal(path) as journal:
            assert (journal.records, journal.frames) == ({**known, "new": {"key": "new", "error": None}}, frames)
