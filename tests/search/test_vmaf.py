"""Searches by VMAF's models of version 1, which read chroma and take the size of the encode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vkssim import score_files, search_ladder, search_setting

from ..frames.encoding import encode_colours
from .clips import QUICK, arguments

QUICKEST: dict[str, Any] = {
    "encoder": "libx264",
    "options": QUICK["libx264"],
    "targets": "vmaf=1",
    "backend": "cpu",
    "trials": 1,
}


@pytest.fixture(scope="module")
def coloured(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("vmaf") / "coloured.mkv"
    encode_colours(path, (384, 240), 3, codec="ffv1")
    return str(path)


def test_an_encode_has_the_promised_score(tmp_path: Path, coloured: str) -> None:
    output, v1 = tmp_path / "encode.mkv", "vmaf=model=v1"
    choice = search_setting(coloured, **arguments(features=v1, output=output, **QUICKEST)).choice
    report = score_files(coloured, output, features=v1, backend="cpu")
    assert choice.trial.values["vmaf:mean"] == report.pooled()["vmaf"]["mean"] < 99


def test_a_rung_has_the_score_of_its_size(coloured: str) -> None:
    """It is the score that the model has with `enc_width` and `enc_height`, as libvmaf's guide advises."""
    scores = []
    for model in ("v1", "v1:enc_width=240:enc_height=150", "vmaf_v1.0.16_3d0h"):
        asked = arguments(features=f"vmaf=model={model}", score="vmaf", heights=[150], fixed=None, **QUICKEST)
        (trial,) = search_ladder(coloured, **asked)
        scores.append(trial.pooled["vmaf"]["mean"])
    assert scores[0] == scores[1] != scores[2]
