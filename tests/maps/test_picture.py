"""Test the labels that the picture of a map has beside the map."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from PIL import ImageDraw

from vkssim.maps.frames import FramePictures, colour
from vkssim.maps.picture import map_corner, map_picture
from vkssim.report.results import FrameScores, ScoreReport
from vkssim.types import BackendInfo

NAMES = ("float_ms_ssim", "float_ssim", "float_ssim_l")
DRAWN = np.zeros((1, 1, 3), np.uint8)


def _report(distorted: str = "clips/dis.mp4", time: float | None = 1.88) -> ScoreReport:
    frames = [FrameScores(47, dict(zip(NAMES, (0.950833, math.nan, 0.99), strict=True)), time)]
    return ScoreReport("clips/ref.mp4", distorted, 32, 24, 8, NAMES, BackendInfo("cpu", "", ""), frames)


def _pictures(height: int = 14, width: int = 22) -> FramePictures:
    values = np.linspace(-0.5, 1, height * width, dtype=np.float32).reshape(height, width)
    return FramePictures(47, DRAWN, DRAWN, values)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Every text that is drawn, and the rectangle that it takes."""
    texts: list[tuple[str, tuple[float, float, float, float]]] = []
    draw = ImageDraw.ImageDraw.text

    def noted(self: Any, corner: Any, text: str, fill: Any, font: Any) -> None:
        texts.append((text, self.textbbox(corner, text, font)))
        draw(self, corner, text, fill, font)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", noted)
    return texts


@pytest.mark.parametrize("size", [(1, 1), (14, 22), (314, 566), (1070, 1910)])
def test_title_scores_and_scale(written: list[tuple[str, tuple[float, float, float, float]]], size: tuple[int, int]) -> None:
    frame = _pictures(*size)
    picture = map_picture(frame, _report())
    (top, left), (height, width) = map_corner(size[1]), size
    np.testing.assert_array_equal(picture[top : top + height, left : left + width], colour(frame.ssim_map))
    texts = [text for text, _ in written]
    assert texts[:3] == [
        "SSIM map of frame 47 · 00:00:01.880",
        "dis.mp4 against ref.mp4",
        "float_ms_ssim 0.950833 · float_ssim null",
    ]
    lowest = "-0.5000"
    assert texts[3] == f"mean of the map {frame.ssim_map.mean(dtype=np.float64):.4f}, lowest window {lowest}"
    assert texts[4:] == ["0", "0.25", "0.5", "0.75", "1", "nothing in common (0 or less)", "the same"]


@pytest.mark.parametrize("width", [22, 566, 1910])
def test_texts_lie_within_the_picture_and_beside_each_other(
    written: list[tuple[str, tuple[float, float, float, float]]], width: int
) -> None:
    picture = map_picture(_pictures(14, width), _report("clips/" + "a long name of a clip " * 20 + ".mp4"))
    for place, (text, box) in enumerate(written):
        assert box[0] >= 0, text
        assert box[2] <= picture.shape[1], text
        assert box[3] <= picture.shape[0], text
        for other, (left, top, right, bottom) in written[place + 1 :]:
            assert box[2] <= left or right <= box[0] or box[3] <= top or bottom <= box[1], (text, other)
    assert written[1][0].endswith("…")


def test_the_colour_bar_goes_from_0_to_1() -> None:
    picture = map_picture(_pictures(), _report())
    top, left = map_corner(22)
    row = picture[top + 14 + 12 + 2, left:-left]  # 12 is the size of the text
    np.testing.assert_array_equal(row, colour(np.linspace(0, 1, row.shape[0], dtype=np.float32)[None])[0])


def test_names_are_harmless_and_a_time_may_be_unknown(written: list[tuple[str, tuple[float, float, float, float]]]) -> None:
    map_picture(_pictures(), _report("a/evil\x1b[2J\u202egpj.mp4", None))
    assert [text for text, _ in written][:2] == ["SSIM map of frame 47", r"evil\x1b[2J\u202egpj.mp4 against ref.mp4"]
