"""Scores of all planes: each is what its plane would get as a luma, and All is their mean by area."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim import Scorer
from vkssim.errors import FrameError, OptionError
from vkssim.metrics import FEATURES, with_options
from vkssim.metrics.plane_metrics import FrameMetrics, plane_formats
from vkssim.types import FrameFormat, Samples

from ..support.metrics import SIMILARITIES

pytestmark = pytest.mark.usefixtures("shared_device")

EVERY_METRIC = [with_options(name, enable_lcs=True, scale=1) for name, metric in FEATURES.items() if metric.has_chroma]
Planes = tuple[Samples, ...]


def _frames(width: int, height: int, chroma: str, bits: int = 8, count: int = 3) -> list[tuple[Planes, Planes]]:
    random = np.random.default_rng(7)
    formats = plane_formats(FrameFormat.of_bits(width, height, bits), "yuv", chroma)
    frames = []
    for _ in range(count):
        references = [random.integers(0, 2**bits, (plane.height, plane.width), plane.dtype) for plane in formats]
        distorted = [np.where(random.random(plane.shape) < 0.2, plane[::-1], plane) for plane in references]
        frames.append((tuple(references), tuple(distorted)))
    return frames


@pytest.mark.parametrize(
    ("backend", "width", "height", "chroma", "bits"),
    [
        ("vulkan", 353, 361, "420", 8),
        ("vulkan", 355, 177, "422", 10),
        ("vulkan", 180, 177, "444", 16),
        ("cpu", 355, 177, "422", 8),
    ],
)
def test_each_plane_is_scored_as_a_luma_of_its_size(backend: str, width: int, height: int, chroma: str, bits: int) -> None:
    frames = _frames(width, height, chroma, bits, count=3 if backend == "vulkan" else 1)
    with Scorer(width, height, bits=bits, features=EVERY_METRIC, planes="all", chroma=chroma, backend=backend) as scorer:
        found = list(scorer.score(frames))
        names = scorer.names
    shapes = [plane.shape for plane in frames[0][0]]
    for number, plane in enumerate(("y", "cb", "cr")):
        size = shapes[number][::-1]
        with Scorer(*size, bits=bits, features=EVERY_METRIC, backend=backend) as scorer:
            alone = list(scorer.score((reference[number], distorted[number]) for reference, distorted in frames))
        for whole, single in zip(found, alone, strict=True):
            assert {name: whole.metrics[f"{name}_{plane}"] for name in single.metrics} == single.metrics
            if plane == "y":
                assert {name: whole.metrics[name] for name in single.metrics} == single.metrics
    areas = [height * width for height, width in shapes]
    for frame in found:
        for name in SIMILARITIES:
            scores = [frame.metrics[f"{name}_{plane}"] for plane in ("y", "cb", "cr")]
            assert frame.metrics[f"{name}_all"] == pytest.approx(np.average(scores, weights=areas), abs=1e-15)
        assert tuple(frame.metrics) == names
    assert names[0] == "float_ms_ssim"
    assert "float_ms_ssim_l_scale0_cb" in names


def test_all_in_decibel_is_that_of_the_mean() -> None:
    metrics = FrameMetrics(
        ["float_ssim=scale=1:enable_db=true"], plane_formats(FrameFormat.of_bits(64, 64, 8), "all"), total=True
    )
    means = [[np.array([[score, 1.0, 1.0, 1.0]])] for score in (0.9, 0.8, 0.6)]
    scores = metrics.finish(means)
    assert scores["float_ssim_cb"][0] == pytest.approx(-10 * np.log10(0.2))
    assert scores["float_ssim_all"][0] == pytest.approx(-10 * np.log10(1 - (4 * 0.9 + 0.8 + 0.6) / 6))


def test_names() -> None:
    luma = FrameFormat.of_bits(64, 64, 8)
    assert FrameMetrics("float_ssim", [luma]).names == ("float_ssim",)
    chroma = plane_formats(luma, "yuv", "420")
    assert FrameMetrics("float_ssim", chroma).names == ("float_ssim", "float_ssim_y", "float_ssim_cb", "float_ssim_cr")
    metrics = FrameMetrics("float_ssim=enable_lcs=true", chroma, total=True)
    assert metrics.names[-1] == "float_ssim_all"
    assert metrics.similarities == ("float_ssim", "float_ssim_y", "float_ssim_cb", "float_ssim_cr", "float_ssim_all")
    assert FrameMetrics("float_ssim=enable_db=true", chroma, total=True).similarities == ()
    large = [FrameFormat.of_bits(176, 176, 8)]
    assert FrameMetrics("float_ms_ssim=enable_lcs=true", large).similarities == ("float_ms_ssim",)
    assert FrameMetrics("float_ms_ssim=enable_db=true:clip_db=true", large).similarities == ()


def test_sizes_of_chroma() -> None:
    luma = FrameFormat.of_bits(1919, 1079, 8)
    sizes = {chroma: plane_formats(luma, "yuv", chroma)[1] for chroma in ("444", "422", "420", "440", "411", "410")}
    assert {chroma: (plane.width, plane.height) for chroma, plane in sizes.items()} == {
        "444": (1919, 1079),
        "422": (960, 1079),
        "420": (960, 540),
        "440": (1919, 540),
        "411": (480, 1079),
        "410": (480, 270),
    }


def test_a_plane_that_is_too_small_is_named() -> None:
    with pytest.raises(FrameError, match=r"the cb plane: float_ms_ssim needs 176x176 at least, got 100x100; .* planes=y"):
        Scorer(200, 200, bits=8, planes="yuv")


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(OptionError, match="`planes` is 'u'; it must be y, yuv or all"):
        Scorer(200, 200, bits=8, planes="u")
    with pytest.raises(FrameError, match="400 has no chroma"):
        Scorer(200, 200, bits=8, planes="yuv", chroma="400")
    with Scorer(32, 32, bits=8, features="float_ssim", planes="yuv", backend="cpu") as scorer:
        plane = np.zeros((32, 32), np.uint8)
        with pytest.raises(FrameError, match="the reference frame has 2 planes; the scorer was opened for 3"):
            scorer.feed((plane, plane), (plane, plane))
        with pytest.raises(FrameError, match=r"shape \(32, 32\); the scorer was opened for \(H, W\) = \(16, 16\)"):
            scorer.feed((plane, plane, plane), (plane, plane, plane))


def test_reserved_planes_are_written_in_place() -> None:
    frames = _frames(64, 48, "420")
    with Scorer(64, 48, bits=8, features="float_ssim", planes="yuv") as scorer:
        expected = list(scorer.score(frames))
    with Scorer(64, 48, bits=8, features="float_ssim", planes="yuv") as scorer:
        found = []
        for pair in frames:
            for targets, planes in zip(scorer.reserve(), pair, strict=True):
                for target, plane in zip(targets, planes, strict=True):
                    target[:] = plane
            found += scorer.commit()
        found += scorer.flush()
    assert found == expected
