"""Refuse inputs that cannot be scored whatever their content is, before anything is read."""

from __future__ import annotations

import os
import stat

from ..errors import InputError
from ..storage.location import is_url, redact_url

_STANDARD_INPUT = "-"


def check_inputs(reference: str, distorted: str) -> None:
    """Raise InputError where both inputs are one pipe, which can be read only once, or one is a device such as /dev/zero."""
    if reference == distorted == _STANDARD_INPUT:
        raise InputError("reference and distorted are both standard input; one of them must be a file")
    states = [_state(name) for name in (reference, distorted)]
    for name, state in zip((reference, distorted), states, strict=True):
        if name != _STANDARD_INPUT and state is not None and stat.S_ISCHR(state.st_mode):
            raise InputError(
                f"{redact_url(name)} is a character device, not a video; give a file, a pipe, or - for standard input"
            )
    first, second = states
    if first is not None and second is not None and stat.S_ISFIFO(first.st_mode) and os.path.samestat(first, second):
        raise InputError(
            f"reference and distorted are the same pipe, {redact_url(reference)}; each frame goes to only one of them."
            " Give two pipes, or a file"
        )


def _state(name: str) -> os.stat_result | None:
    """Return the file status of an input. Return None for a URL and for a missing file, which is refused when it is opened."""
    if is_url(name):
        return None
    try:
        return os.fstat(0) if name == _STANDARD_INPUT else os.stat(name)
    except (OSError, ValueError):
        return None
