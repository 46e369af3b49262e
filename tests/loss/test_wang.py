"""The product over the scales and its derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.loss.spec import MS_SSIM_WEIGHTS, Loss, Negative, product

from ..support.differences import check_number
from ..support.tolerances import PRODUCT_SLOPE
from .images import Doubles

STEP = 1e-5


def loss(weights: tuple[float, ...], negative: Negative) -> Loss:
    """A loss of images that are large enough for any number of scales."""
    return Loss(500, 500, 1.0, 1.0, data_range=1.0, weights=weights, negative=negative)


def row(*means: float) -> Doubles:
    """The means of one plane."""
    return np.array([means])


@pytest.mark.parametrize("negative", [Negative.CLAMP, Negative.NULL])
@pytest.mark.parametrize("weights", [MS_SSIM_WEIGHTS, (1.0, 1.0), (0.5,), (0.0, 2.0, 0.3)])
def test_slopes_are_those_of_the_values(weights: tuple[float, ...], negative: Negative) -> None:
    chosen = loss(weights, negative)
    means = np.random.default_rng(0).uniform(0.2, 1, (4, len(weights)))
    values, slopes = product(chosen, means)
    np.testing.assert_allclose(values, np.prod(means ** np.array(weights), axis=1), rtol=1e-14)
    for scale, step in enumerate(STEP * np.eye(len(weights))):
        above, below = (product(chosen, means + side * step)[0] for side in (1, -1))
        for slope, expected in zip(slopes[:, scale], (above - below) / (2 * STEP), strict=True):
            check_number(PRODUCT_SLOPE, "", f"{weights}, scale {scale}", slope, expected)


def test_one_scale_of_weight_one_is_the_mean_itself() -> None:
    for mean in (-0.4, 0.0, 0.7):
        values, slopes = product(loss((1.0,), Negative.KEEP), row(mean))
        assert (values.tolist(), slopes.tolist()) == ([mean], [[1.0]])


def test_signs_are_kept_in_the_product() -> None:
    values, slopes = product(loss((1.0, 1.0), Negative.KEEP), row(-0.5, 0.25))
    assert (values.tolist(), slopes.tolist()) == ([-0.125], [[0.25, -0.5]])


@pytest.mark.parametrize("mean", [-0.5, -1e-12, 0.0])
@pytest.mark.parametrize("weights", [(0.3, 0.7), (1.0, 1.0), (2.0, 0.5)])
def test_a_clamped_scale_ends_value_and_slopes(weights: tuple[float, ...], mean: float) -> None:
    """Also those of the other scales, whose factor it is; and no infinity times 0 on the way."""
    for means in (row(mean, 0.8), row(0.8, mean), row(mean, mean)):
        values, slopes = product(loss(weights, Negative.CLAMP), means)
        assert (values.tolist(), slopes.tolist()) == ([0.0], [[0.0, 0.0]])


def test_a_null_scale_makes_all_nan_but_no_other_plane() -> None:
    values, slopes = product(loss((0.3, 0.7), Negative.NULL), np.array([[-0.1, 0.8], [0.8, -0.1], [0.8, 0.8]]))
    assert np.isnan(values).tolist() == [True, True, False]
    assert np.isnan(slopes).tolist() == [[True, True], [True, True], [False, False]]


def test_a_null_scale_of_mean_zero_is_zero() -> None:
    values, slopes = product(loss((0.3, 0.7), Negative.NULL), row(0.0, 0.8))
    assert (values.tolist(), slopes.tolist()) == ([0.0], [[0.0, 0.0]])


@pytest.mark.parametrize("negative", [Negative.CLAMP, Negative.NULL])
@pytest.mark.parametrize("mean", [-0.1, 0.0])
def test_a_scale_of_weight_zero_counts_nothing(negative: Negative, mean: float) -> None:
    """Value and slopes agree on it: either both are numbers or neither is."""
    values, slopes = product(loss((0.0, 1.0), negative), row(mean, 0.8))
    assert np.isnan(values).any() == np.isnan(slopes).any()
    if negative is Negative.CLAMP:
        assert (values.tolist(), slopes.tolist()) == ([0.8], [[0.0, 1.0]])
