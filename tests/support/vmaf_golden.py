"""libvmaf's scores of vif, adm, motion and vmaf: the clips of vmaf_cases.npz, and the two coded clips."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from .golden import FIXTURES

CASES: dict[str, dict[str, Any]] = json.loads((FIXTURES / "vmaf_cases.json").read_text())["cases"]


@functools.cache
def _arrays() -> dict[str, npt.NDArray[Any]]:
    with np.load(FIXTURES / "vmaf_cases.npz") as archive:
        return dict(archive)


def vmaf_clips(name: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any], int]:
    """The reference and the distorted clip of a case, (N, H, W), and their bits."""
    return _arrays()[f"{name}_ref"], _arrays()[f"{name}_dis"], CASES[name]["bitdepth"]


def scores_of(frames: list[dict[str, float]], *names: str) -> npt.NDArray[np.float64]:
    """The scores of these names, (frames, names)."""
    return np.array([[frame[name] for name in names] for frame in frames])


def case_scores(case: str, *names: str) -> npt.NDArray[np.float64]:
    """The scores of a case, (frames, names)."""
    return scores_of(CASES[case]["libvmaf"]["frames"], *names)
