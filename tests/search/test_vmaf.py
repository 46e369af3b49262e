"""Searches by VMAF's models of version 1, which read chroma and take the frame rate and the size of the encode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vkssim import score_files, search_ladder, search_setting
from vkssim.errors import OptionError
from vkssim.types import plane_shapes

from ..frames.encoding import encode_colours, encode_frames, video_frame
from ..support.pictures import clip
from .clips import QUICK, arguments

V1 = "vmaf=model=v1"
QUICKEST: dict[str, Any] = {
    "encoder": "libx264",
    "options": QUICK["libx264"],
    "targets": "vmaf=1",
    "features": V1,
    "backend": "cpu",
    "trials": 1,
}
RUNGS: dict[str, Any] = {**QUICKEST, "score": "vmaf", "heights": [240, 150], "fixed": None, "trials": 2}


@pytest.mark.parametrize(("rate", "pixel_format"), [(25, "yuv420p"), (50, "yuv444p"), (300, "yuv420p")])
def test_an_encode_has_the_promised_score(tmp_path: Path, rate: int, pixel_format: str) -> None:
    """By the model for its frame rate, also if no encoder has that rate."""
    source, output = tmp_path / "source.mkv", tmp_path / "encode.mkv"
    planes = [clip(4, *shape) for shape in plane_shapes(384, 240, pixel_format[3:6])]
    frames = [video_frame(384, 240, pixel_format, [plane[number] for plane in planes]) for number in range(4)]
    encode_frames(source, frames, "ffv1", rate=rate)
    choice = search_setting(source, **arguments(**{**QUICKEST, "output": output})).choice
    report = score_files(source, output, features=V1, backend="cpu")
    assert choice.trial.values["vmaf:mean"] == report.pooled()["vmaf"]["mean"] < 99
    assert report.scoring is not None
    assert ("hfr" in str(report.scoring.features[0].options["model"])) == (rate > 25)


@pytest.fixture(scope="module")
def coloured(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("vmaf") / "coloured.mkv"
    encode_colours(path, (384, 240), 3, codec="ffv1")
    return str(path)


def test_each_rung_has_the_score_of_its_size(coloured: str) -> None:
    """It is the score that the model has with `enc_width` and `enc_height`, as libvmaf's guide advises."""

    def scores(model: str) -> dict[int, float]:
        trials = search_ladder(coloured, **arguments(**{**RUNGS, "features": f"vmaf=model={model}"}))
        return {trial.height: trial.pooled["vmaf"]["mean"] for trial in trials}

    found, told, untold = (scores(model) for model in ("v1", "v1:enc_width=240:enc_height=150", "vmaf_v1.0.16_3d0h"))
    assert found[240] == untold[240] != told[240]
    assert found[150] == told[150] != untold[150]


def test_one_side_of_an_encoding_is_an_error(coloured: str) -> None:
    with pytest.raises(OptionError, match="the size of the encoding is enc_width and enc_height, got enc_width"):
        list(search_ladder(coloured, **arguments(**{**RUNGS, "features": f"{V1}:enc_width=300"})))


def test_an_unknown_metric_is_an_error(coloured: str) -> None:
    with pytest.raises(OptionError, match="unknown feature 'vmf'"):
        list(search_ladder(coloured, **arguments(**{**RUNGS, "features": "vmf=model=v1"})))
