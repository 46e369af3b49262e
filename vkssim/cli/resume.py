"""The journal of `vkssim score`: where it has one, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import OptionError
from ..storage.remote import is_url
from .messages import say
from .output import check_target, to_standard_output

if TYPE_CHECKING:
    from ..distributed.kept import KeptParts
    from ..scoring.frame_journal import FrameJournal


def open_journal(
    paths: Sequence[str],
    form: str | None,
    inputs: Sequence[str],
    what: Mapping[str, Any],
    *,
    resume: bool,
    quiet: bool,
    parts: bool,
) -> FrameJournal | KeptParts | None:
    """Return the journal beside the first output, closed with the command; None where that is no file, or an input a pipe.

    `what` is how the inputs are scored, see `run_identity`. With `parts` it keeps parts, as several devices score them. Raises
    OptionError where there is nothing to resume by.
    """
    path = paths[0] if paths else None
    reason = _why_none(path, form, inputs)
    if reason is not None:
        if resume:
            raise OptionError(f"--resume is not possible: {reason}")
        return None
    from ..scoring.frame_journal import FrameJournal, run_identity
    from ..storage.journal_file import journal_path
    from ..storage.own_folder import OwnFolder, parts_folder

    def tell(text: str) -> None:
        if not quiet:
            say(f"note: {text}")

    assert path is not None
    place = journal_path(Path(path))
    check_target(place, "the journal", [*inputs, *paths])
    identity = run_identity(*inputs, **what)
    if parts:
        from ..distributed.kept import KeptParts

        return click.get_current_context().with_resource(KeptParts(Path(path), identity, resume=resume, tell=tell))
    left = OwnFolder(parts_folder(path))
    left.exists()  # an error here leaves no journal behind
    journal = click.get_current_context().with_resource(FrameJournal(place, identity, resume=resume, tell=tell))
    if not resume:
        left.discard()
    return journal


def _why_none(path: str | None, form: str | None, inputs: Sequence[str]) -> str | None:
    from ..frames.open import readable_again

    for name in inputs:
        if not readable_again([name]):
            return f"{'standard input' if name == '-' else name} cannot be read a second time; give the file itself"
    if path is None or to_standard_output([path], form) or is_url(path) or (Path(path).exists() and not Path(path).is_file()):
        return "it goes on from the journal beside a local output file, which --output names"
    return None
