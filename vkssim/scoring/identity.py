"""Name everything that the scores of a pair depend on, so that a run continues only from its own scores."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ..errors import OptionError
from ..frames.fingerprint import input_states
from ..frames.open import can_reopen
from ..storage.journal_file import journal_path
from ..storage.location import is_url, redact_url
from ..utils.version import __version__
from .journal import Identity, Journal
from .options import Clips, ScoreOptions


def run_identity(clips: Clips, options: ScoreOptions) -> Identity:
    """Return everything that the scores of two files depend on, except the device.

    Path, size and change time stand for a file.
    """
    return {
        "version of vkssim": __version__,
        "reference": _digest(clips.reference),
        "distorted clip": _digest(clips.distorted),
        "description of raw files": asdict(clips.raw),
        "features": list(options.features),
        "planes": options.planes,
        "selection of frames": asdict(options.selection),
        "sync": options.sync,
        "crop or scaling": asdict(options.pictures),
        "backend": options.backend,
    }


def _digest(path: str) -> str:
    return hashlib.sha256(json.dumps(input_states(path)).encode()).hexdigest()


def open_run_journal(
    output: str | os.PathLike[str],
    clips: Clips,
    options: ScoreOptions,
    *,
    resume: bool,
    tell: Callable[[str], None],
) -> Journal:
    """Open the journal of a pair beside its output. It need not exist. Use with `with`.

    Raises OptionError if the output is a URL or an input is a pipe, and the errors of `Journal`.
    """
    for name in clips.paths:
        if not can_reopen(name):
            raise OptionError(
                f"{redact_url(name)} cannot be read a second time, so an interrupted run could not continue; give a file"
            )
    if is_url(output):
        raise OptionError(
            f"{redact_url(output)} is a URL; the journal from which a run continues is beside a local path. Give one"
        )
    return Journal(journal_path(Path(output)), tell, identity=run_identity(clips, options), resume=resume)
