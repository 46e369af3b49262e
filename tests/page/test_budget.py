"""Pictures within a number of bytes, and which frames they are of."""

from __future__ import annotations

import base64
import io
import math

import numpy as np
import pytest
from PIL import Image

from vkssim.page.budget import STEPS, EncodedPictures, Fitted, encode, fitted
from vkssim.page.pictures import shared_worst
from vkssim.report.backend_info import BackendInfo
from vkssim.report.frame_scores import FrameScores
from vkssim.report.results import ScoreReport


def noise(seed: int, height: int = 60, width: int = 1000) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.fixture(scope="module")
def pictures() -> EncodedPictures:
    """Those of three frames: a reference, a distorted clip and its map each."""
    encoded = EncodedPictures()
    for number in range(9):
        encoded.add(noise(number), is_map=number % 3 == 2)
    return encoded


FRAMES = [(0, 1, 2), (3, 4, 5), (6, 7, 8)]


def sizes(fit: Fitted) -> list[tuple[int, int]]:
    uris = [uri for uri in fit.pictures if uri]
    return [Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).size for uri in uris]


def test_a_picture_is_encoded_once(pictures: EncodedPictures) -> None:
    assert (pictures.add(noise(1)), pictures.add(noise(4)), len(pictures)) == (1, 4, 9)
    assert pictures.add(noise(1), is_map=True) == 9  # of another size


def test_what_fits_stays_as_it_is(pictures: EncodedPictures) -> None:
    fit = fitted(pictures, FRAMES, 8_000_000)
    assert fit.kept == (True, True, True)
    assert sizes(fit)[:3] == [(960, 58), (960, 58), (480, 29)]
    assert fit.note.endswith("MB of the budget (--picture-budget).")


def test_what_does_not_fit_is_made_smaller_and_then_left_out(pictures: EncodedPictures) -> None:
    whole = sum(map(len, fitted(pictures, FRAMES, 8_000_000).pictures))
    smaller = fitted(pictures, FRAMES, whole // 2)
    assert smaller.step in STEPS[1:]
    assert smaller.kept == (True, True, True)
    assert sum(map(len, smaller.pictures)) <= whole // 2
    assert f"they are at most {smaller.step[0]} pixels wide, as WebP of quality {smaller.step[1]}" in smaller.note
    few = fitted(pictures, FRAMES, whole // 20)
    assert few.step == STEPS[-1]
    assert few.kept[0]
    assert not few.kept[2]
    assert 0 < sum(map(len, few.pictures)) <= whole // 20
    assert "of 3 frames are left out." in few.note


def test_no_budget_no_pictures(pictures: EncodedPictures) -> None:
    assert set(fitted(pictures, FRAMES, 0).pictures) == {""}


def test_large_pictures_are_shrunk() -> None:
    for size, shrunk in (((1080, 1920), (960, 540)), ((20_000, 11), (1, 1920)), ((11, 4096), (960, 3))):
        assert Image.open(io.BytesIO(encode(np.zeros((*size, 3), np.uint8), *STEPS[0]))).size == shrunk


def report(*scores: float) -> ScoreReport:
    frames = [FrameScores(index, {"other": 0.0, "float_ssim": score}) for index, score in enumerate(scores)]
    return ScoreReport("ref", "dis", 8, 8, 8, ("other", "float_ssim"), BackendInfo("cpu", "", ""), frames)


def test_the_worst_frames_are_those_of_every_clip_and_the_worst_comes_first() -> None:
    bad, good = report(0.5, 0.1, 0.2, 0.3), report(0.8, 0.99, 0.98, 0.97)
    assert shared_worst([bad], 3) == [1, 2, 3]
    assert shared_worst([bad, good], 2) == [1, 0]  # the worst of each
    assert shared_worst([bad, good], 3) == [1, 2, 0]
    assert shared_worst([report(0.5, math.nan, 0.1)], 2) == [1, 2]
    assert shared_worst([], 3) == []
