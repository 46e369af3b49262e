"""The rectangular window's twin, against the formulas written out window by window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from vkssim.metrics.uniform import estimate_columns, estimate_maps, uniform_maps
from vkssim.metrics.window import LcsMaps

from ..support.differences import check_array
from ..support.pictures import distort, texture
from ..support.tolerances import TWIN_UNIFORM

C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2

Floats = npt.NDArray[np.float32]


def _planes(height: int = 19, width: int = 23) -> tuple[Floats, Floats]:
    reference = texture(height, width)
    return (255 * reference).astype(np.float32), (255 * distort(reference)).astype(np.float32)


def _local(reference: Floats, distorted: Floats, row: int, column: int) -> tuple[float, float, float]:
    """l, c, s of one window by formulas 2 to 4 of Mazurek and Okarma, which NumPy has with ddof=1."""
    x, y = (plane[row : row + 8, column : column + 8].astype(np.float64).ravel() for plane in (reference, distorted))
    (variance1, covariance), (_, variance2) = np.cov(x, y, ddof=1)
    deviations = np.sqrt(variance1 * variance2)
    return (
        (2 * x.mean() * y.mean() + C1) / (x.mean() ** 2 + y.mean() ** 2 + C1),
        (2 * deviations + C2) / (variance1 + variance2 + C2),
        (covariance + C2 / 2) / (deviations + C2 / 2),
    )


def _check(reference: Floats, distorted: Floats) -> LcsMaps:
    maps = uniform_maps(reference, distorted)
    height, width = reference.shape
    assert maps.luminance.shape == (height - 7, width - 7)
    local = [[_local(reference, distorted, row, column) for column in range(width - 7)] for row in range(height - 7)]
    for name, got, expected in zip(LcsMaps._fields, maps, np.moveaxis(np.array(local), -1, 0), strict=True):
        check_array(TWIN_UNIFORM, name, got, expected)
    return maps


def test_maps_are_the_formulas() -> None:
    _check(*_planes())


def test_bright_and_nearly_flat() -> None:
    rng = np.random.default_rng(0)
    _check(*(rng.normal(240, deviation, (11, 12)).astype(np.float32) for deviation in (0.01, 0.3)))


def test_identical_planes_give_exactly_one_and_swapped_planes_the_same() -> None:
    plane, _ = _planes()
    for term in uniform_maps(plane, plane):
        assert (term == 1.0).all()
    np.testing.assert_array_equal(uniform_maps(*_planes()[::-1]), uniform_maps(*_planes()))


def test_one_flat_plane_has_no_covariance() -> None:
    """Nor do flat planes of different brightness lose contrast or structure."""
    plane, _ = _planes()
    flat = np.full_like(plane, 240.3)
    assert (uniform_maps(plane, flat).structure == 1.0).all()
    maps = uniform_maps(flat, flat * np.float32(0.9))
    assert (maps.contrast == 1.0).all()
    assert (maps.structure == 1.0).all()


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (8, [0]),
        (31, range(24)),
        (32, range(24)),
        (39, range(24)),
        (40, [*range(24), 32]),
        (71, [*range(24), *range(32, 56)]),
    ],
)
def test_columns_of_the_estimate(width: int, expected: list[int]) -> None:
    np.testing.assert_array_equal(estimate_columns(width), expected)


def test_estimate_takes_some_columns_of_the_exact_maps() -> None:
    planes = _planes(20, 90)
    for exact, estimate in zip(uniform_maps(*planes), estimate_maps(*planes), strict=True):
        np.testing.assert_array_equal(estimate, exact[:, estimate_columns(90)])
