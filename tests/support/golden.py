"""libvmaf's own scores: frames with cases.json, clips with a JSON report each."""

from __future__ import annotations

import functools
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from .pictures import Picture

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CLIPS = ("bbb_576x324", "bbb_576x324_10bit")

FEATURES = {
    "libvmaf": ("float_ms_ssim=enable_lcs=true", "float_ssim=enable_lcs=true"),
    "libvmaf_scale1": ("float_ssim=enable_lcs=true:scale=1",),
    "libvmaf_clipped_db": ("float_ms_ssim=enable_db=true:clip_db=true", "float_ssim=enable_db=true:clip_db=true"),
    "libvmaf_psnr": ("float_psnr",),
    "libvmaf_vif": ("vif",),
    "libvmaf_adm": ("adm",),
}
"""The features that each key of a case holds the scores of."""

_CASES: dict[str, dict[str, Any]] = json.loads((FIXTURES / "cases.json").read_text())["cases"]


@dataclass(frozen=True)
class Case:
    """A pair of frames and libvmaf's scores of it; None if libvmaf writes null."""

    reference: Picture
    distorted: Picture
    bits: int
    scores: dict[str, float | None]


def case_keys() -> list[tuple[str, str]]:
    """All (case, key) that there are scores for."""
    return [(name, key) for name, case in _CASES.items() for key in FEATURES if key in case]


@functools.cache
def _frames() -> dict[str, Picture]:
    with np.load(FIXTURES / "cases.npz") as archive:
        return dict(archive)


def load_case(name: str, key: str) -> Case:
    """One case with the scores of one key."""
    case = _CASES[name]
    return Case(_frames()[f"{name}_ref"], _frames()[f"{name}_dis"], case["bitdepth"], case[key])


def clip_paths(name: str) -> tuple[Path, Path]:
    """The reference and the distorted file of a clip."""
    return FIXTURES / f"{name}_ref.mp4", FIXTURES / f"{name}_dis.mp4"


def clip_report(name: str, key: str = "libvmaf") -> dict[str, Any]:
    """Return libvmaf's own report of a clip: ``"libvmaf"`` of the similarities, ``"psnr"``, ``"vmaf"``, ``"vmaf_v1"``."""
    report: dict[str, Any] = json.loads((FIXTURES / f"{name}.{key}.json").read_text())
    return report


def clip_planes(name: str, count: int, plane: int = 0) -> list[list[npt.NDArray[Any]]]:
    """The first frames of the reference and of the distorted clip: one plane of each, (H, W), 0 for the luma."""
    clips = []
    for path in clip_paths(name):
        with av.open(str(path)) as container:
            frames = itertools.islice(container.decode(video=0), count)
            clips.append([_plane(frame.planes[plane], frame.format.components[plane].bits) for frame in frames])
    return clips


def _plane(plane: Any, bits: int) -> npt.NDArray[Any]:
    rows: npt.NDArray[Any] = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
    samples = rows.view(np.uint16 if bits > 8 else np.uint8)
    return samples[:, : plane.width].copy()
