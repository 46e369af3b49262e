"""Deprecated: `score_files(resume=PATH)` does what its names were for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .frames.options import PictureOptions, RawDescription, Selection
    from .scoring.run_store import Identity, RunStore


def run_identity(
    reference: str,
    distorted: str,
    *,
    features: Sequence[str],
    planes: str,
    raw: RawDescription,
    selection: Selection,
    sync: str,
    pictures: PictureOptions,
) -> Identity:
    """Return what the scores of two files depend on, but for the device; see `vkssim.scoring.run_store.run_identity`."""
    from .scoring.options import Clips, ScoreOptions
    from .scoring.run_store import run_identity as identity_of

    warnings.warn("run_identity is deprecated; score_files(resume=PATH) needs none", DeprecationWarning, stacklevel=2)
    return identity_of(Clips(reference, distorted, raw), ScoreOptions(tuple(features), planes, selection, sync, pictures))


def FrameJournal(path: Path, identity: Identity, *, resume: bool, tell: Callable[[str], None]) -> RunStore:  # noqa: N802
    """Return the store of a run whose journal has this path; see `vkssim.scoring.run_store.RunStore`."""
    from .scoring.run_store import RunStore
    from .storage.own_folder import parts_folder

    warnings.warn("FrameJournal is deprecated; score_files(resume=PATH) needs none", DeprecationWarning, stacklevel=2)
    return RunStore(path, parts_folder(path), identity, resume=resume, tell=tell)
