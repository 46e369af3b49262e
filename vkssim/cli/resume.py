"""Open the journal of `vkssim score`, or say why there can be none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import OptionError
from ..storage.location import is_url
from .messages import say
from .output import check_target, to_standard_output

if TYPE_CHECKING:
    from ..scoring.journal import Journal
    from ..scoring.options import Clips, ScoreOptions


def open_journal(
    paths: Sequence[str], form: str | None, clips: Clips, options: ScoreOptions, *, resume: bool, quiet: bool
) -> Journal | None:
    """Return the journal beside the first output, closed with the command; None if that is no file, or an input is a pipe.

    Raises OptionError if `resume` is requested and there can be no journal.
    """
    path = paths[0] if paths else None
    reason = _why_none(path, form, clips.paths)
    if reason is not None:
        if resume:
            raise OptionError(f"--resume is not possible: {reason}")
        return None
    from ..scoring.journal import open_run_journal
    from ..storage.journal_file import journal_path

    def tell(text: str) -> None:
        if not quiet:
            say(f"note: {text}")

    assert path is not None
    check_target(journal_path(Path(path)), "the journal", [*clips.paths, *paths])
    journal = open_run_journal(path, clips, options, resume=resume, tell=tell)
    click.get_current_context().with_resource(journal)
    return journal


def _why_none(path: str | None, form: str | None, inputs: Sequence[str]) -> str | None:
    from ..frames.open import can_reopen

    for name in inputs:
        if not can_reopen(name):
            return f"{'standard input' if name == '-' else name} cannot be read a second time; give the file itself"
    if path is None or to_standard_output([path], form) or is_url(path) or (Path(path).exists() and not Path(path).is_file()):
        return "it goes on from the journal beside a local output file, which --output names"
    return None
