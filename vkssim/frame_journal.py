"""Deprecated: `score_files(resume=PATH)` does what its names were for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .utils.deprecated import moved

if TYPE_CHECKING:
    from .frames.open import RawDescription
    from .frames.pictures import PictureOptions
    from .frames.selection import Selection
    from .scoring.frame_journal import Identity

__getattr__ = moved(__name__, "vkssim.scoring.frame_journal")


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
    """Return what the scores of two files depend on, but for the device; see `vkssim.scoring.frame_journal.run_identity`."""
    from .scoring.frame_journal import run_identity as identity_of
    from .scoring.options import Clips, ScoreOptions

    warnings.warn("run_identity is deprecated; score_files(resume=PATH) needs none", DeprecationWarning, stacklevel=2)
    return identity_of(Clips(reference, distorted, raw), ScoreOptions(tuple(features), planes, selection, sync, pictures))
