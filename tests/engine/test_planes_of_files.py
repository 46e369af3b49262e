"""All planes of files: the scores are those of the planes that were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vkssim import RawDescription, Scorer, score_files
from vkssim.errors import InputError
from vkssim.types import Planes

from ..frames.encoding import noise_planes
from ..support.clips import write

pytestmark = pytest.mark.usefixtures("shared_device")

WIDTH, HEIGHT, FRAMES = 61, 47, 5
HEADER = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip A1:1 C{{}}\n"


def _clip(chroma: str, bits: int, seed: int) -> list[Planes]:
    return [noise_planes(WIDTH, HEIGHT, chroma, bits, seed=100 * seed + number) for number in range(FRAMES)]


def _write(path: Path, frames: list[Planes], y4m: str | None) -> str:
    data = [b"".join(plane.tobytes() for plane in frame) for frame in frames]
    if y4m is None:
        return write(path.with_suffix(".yuv"), b"".join(data))
    return write(path.with_suffix(".y4m"), HEADER.format(y4m).encode() + b"".join(b"FRAME\n" + frame for frame in data))


@pytest.mark.parametrize(
    ("chroma", "bits", "y4m"), [("420", 8, None), ("422", 10, None), ("444", 8, "444"), ("420", 12, "420p12")]
)
@pytest.mark.parametrize("backend", ["vulkan", "cpu"])
def test_planes_of_files(tmp_path: Path, backend: str, chroma: str, bits: int, y4m: str | None) -> None:
    clips = _clip(chroma, bits, 1), _clip(chroma, bits, 2)
    paths = [_write(tmp_path / name, frames, y4m) for name, frames in zip(("ref", "dis"), clips, strict=True)]
    raw = RawDescription() if y4m else RawDescription(WIDTH, HEIGHT, chroma, bits)
    how: dict[str, Any] = {"features": "float_ssim=scale=1:enable_lcs=true", "planes": "all", "backend": backend}
    report = score_files(*paths, raw=raw, **how)
    with Scorer(WIDTH, HEIGHT, bits=bits, chroma=chroma, **how) as scorer:
        expected = list(scorer.score(zip(*clips, strict=True)))
    assert [frame.metrics for frame in report.frames] == [frame.metrics for frame in expected]
    assert report.names == tuple(expected[0].metrics)


def test_what_has_no_chroma_to_compare(tmp_path: Path) -> None:
    frames = _clip("420", 8, 1)
    colour = _write(tmp_path / "colour", frames, "420")
    grey = _write(tmp_path / "grey", [frame[:1] for frame in frames], "mono")
    with pytest.raises(InputError, match=r"grey\.y4m has no chroma to compare"):
        score_files(colour, grey, planes="yuv", backend="cpu")
    other = _write(tmp_path / "other", _clip("422", 8, 2), "422")
    with pytest.raises(InputError, match=r"colour\.y4m is 420, .*other\.y4m 422.*`planes=y`"):
        score_files(colour, other, features="float_ssim", planes="all", backend="cpu")
