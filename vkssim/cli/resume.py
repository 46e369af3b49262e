"""Open the journal of `vkssim score`, or say why there can be none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import OptionError
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
    from ..scoring.journal import open_run_journal
    from ..storage.journal_file import journal_path

    def tell(text: str) -> None:
        if not quiet:
            say(f"note: {text}")

    path = Path(paths[0]) if paths else None
    try:
        if path is None or to_standard_output([paths[0]], form) or (path.exists() and not path.is_file()):
            raise OptionError("the run continues from the journal beside a local output file, which --output names")
        check_target(journal_path(path), "the journal", [*clips.paths, *paths])
        journal = open_run_journal(paths[0], clips, options, resume=resume, tell=tell)
    except OptionError as error:
        if resume:
            raise OptionError(f"--resume is not possible: {error}") from None
        return None
    click.get_current_context().with_resource(journal)
    return journal
