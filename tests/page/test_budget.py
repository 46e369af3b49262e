"""Pictures within a number of bytes."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image

from vkssim.page.pictures import STEPS, EncodedPictures, encode, fit_pictures


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


def sizes(uris: Sequence[str]) -> list[tuple[int, int]]:
    return [Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).size for uri in uris if uri]


def test_a_picture_is_encoded_once(pictures: EncodedPictures) -> None:
    assert (pictures.add(noise(1)), pictures.add(noise(4))) == (1, 4)
    assert pictures.add(noise(1), is_map=True) == 9  # of another size


def test_what_fits_stays_as_it_is(pictures: EncodedPictures) -> None:
    """As large as it is, so that a sample can be seen as a pixel; and nothing is said of it."""
    fit = fit_pictures(pictures, FRAMES, 8_000_000)
    assert fit.kept == (True, True, True)
    assert sizes(fit.pictures)[:3] == [(1000, 60), (1000, 60), (500, 30)]
    assert fit.note == ""


def test_many_pictures_begin_smaller() -> None:
    assert EncodedPictures(24).step == STEPS[0]
    many = EncodedPictures(25)
    many.add(noise(0))
    assert sizes(fit_pictures(many, [(0,)], 8_000_000).pictures) == [(960, 58)]


def test_what_does_not_fit_is_made_smaller_and_then_left_out(pictures: EncodedPictures) -> None:
    whole = sum(map(len, fit_pictures(pictures, FRAMES, 8_000_000).pictures))
    smaller = fit_pictures(pictures, FRAMES, whole // 2)
    assert smaller.step in STEPS[1:]
    assert smaller.kept == (True, True, True)
    assert sum(map(len, smaller.pictures)) <= whole // 2
    assert f"pictures are at most {smaller.step[0]} pixels wide" in smaller.note
    few = fit_pictures(pictures, FRAMES, whole // 20)
    assert few.step == STEPS[-1]
    assert few.kept[0]
    assert not few.kept[2]
    assert 0 < sum(map(len, few.pictures)) <= whole // 20
    assert "of 3 frames are left out." in few.note


@pytest.mark.parametrize(
    ("full", "widths"),
    [(1920, [960, 960, 960, 480, 480, 360, 240]), (576, [480] * 5 + [360, 240]), (300, [300] * 6 + [240])],
)
def test_only_the_budget_makes_a_map_less_than_480_wide(full: int, widths: list[int]) -> None:
    """At the last steps a larger map would cost other frames, which would be left out with all their pictures."""
    encoded = EncodedPictures()
    encoded.add(noise(0, 10, full), is_map=True)
    assert [sizes(encoded.at(step))[0][0] for step in STEPS] == widths


def test_no_budget_no_pictures(pictures: EncodedPictures) -> None:
    assert set(fit_pictures(pictures, FRAMES, 0).pictures) == {""}


def test_large_pictures_are_shrunk() -> None:
    for size, shrunk in (((1080, 1920), (960, 540)), ((20_000, 11), (1, 1920)), ((11, 4096), (960, 3))):
        assert Image.open(io.BytesIO(encode(np.zeros((*size, 3), np.uint8), 960, 90))).size == shrunk
