"""Test the allowed forms of a loss, and the sizes that follow from them."""

from __future__ import annotations

from typing import Any

import pytest

from vkssim.errors import FrameError, OptionError
from vkssim.loss.spec import MS_SSIM_WEIGHTS, Loss, Negative, Padding, constants

C: dict[str, Any] = {**constants(1.0)}


def loss(height: int = 64, width: int = 64, **options: Any) -> Loss:
    """A loss of clamped terms for a range of 1."""
    return Loss(height, width, **{"negative": Negative.CLAMP, **C, **options})


def test_constants_are_of_the_range_squared() -> None:
    assert constants(255) == pytest.approx({"c1": 6.5025, "c2": 58.5225, "data_range": 255})
    assert constants(1.0, k=(0.1, 0.4)) == pytest.approx({"c1": 0.01, "c2": 0.16, "data_range": 1.0})


def test_sizes_are_halved_and_rounded_up() -> None:
    assert loss(161, 354, weights=MS_SSIM_WEIGHTS).sizes == ((161, 354), (81, 177), (41, 89), (21, 45), (11, 23))


def test_windows_of_each_scale() -> None:
    assert loss(41, 50, weights=(1, 1, 1), padding=Padding.VALID).windows == (31 * 40, 11 * 15, 1 * 3)
    assert loss(41, 50, weights=(1, 1, 1), padding=Padding.SAME).windows == (41 * 50, 21 * 25, 11 * 13)


@pytest.mark.parametrize(
    ("scales", "padding", "smallest"),
    [
        (1, Padding.VALID, 11),
        (1, Padding.SAME, 1),
        (2, Padding.VALID, 21),
        (3, Padding.SAME, 41),
        (5, Padding.VALID, 161),
        (5, Padding.SAME, 161),
    ],
)
def test_the_message_names_the_smallest_size(scales: int, padding: Padding, smallest: int) -> None:
    options = {"weights": (0.5,) * scales, "padding": padding}
    loss(smallest, smallest, **options)
    for height, width in ((smallest - 1, 500), (500, smallest - 1)):
        with pytest.raises(FrameError, match=rf"{width}x{height} are too small.* need {smallest}x{smallest} at least"):
            loss(height, width, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": (0.5, 0.5), "negative": Negative.KEEP}, "choose clamp or null"),
        ({"c1": 0.0}, "C1 and C2 are 1e-36 or more"),
        ({"c2": float("nan")}, "C1 and C2 are 1e-36 or more"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        loss(**options)


@pytest.mark.parametrize(
    ("data_range", "k"), [(-1.0, (0.01, 0.03)), (1.0, (-0.01, 0.03)), (1.0, (0.01, -0.03)), (0.0, (0.01, 0.03))]
)
def test_a_square_does_not_hide_a_sign(data_range: float, k: tuple[float, float]) -> None:
    with pytest.raises(OptionError, match="must be numbers above 0"):
        loss(**constants(data_range, k))


@pytest.mark.parametrize(("data_range", "k"), [(1e-16, (0.01, 0.03)), (1e16, (0.01, 0.03)), (1e-10, (0.01, 1e-9))])
def test_ranges_that_float32_has_no_room_for(data_range: float, k: tuple[float, float]) -> None:
    with pytest.raises(OptionError, match=r"float32 has room.*scale the images"):
        loss(**constants(data_range, k))


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(odd: float) -> None:
    with pytest.raises(OptionError):
        loss(weights=(odd,))
    with pytest.raises(OptionError):
        loss(**constants(odd))
