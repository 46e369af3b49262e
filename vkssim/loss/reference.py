"""Twin of the loss: SSIM and MS-SSIM of planes and their gradients in float64, by the formulas of the literature.

The gradient of a map's mean is the gradient with respect to the moments, passed through the adjoint of the window: Z. Wang,
E. P. Simoncelli, "Stimulus synthesis for efficient evaluation and refinement of perceptual image quality metrics", 2004. The
derivatives of the moments follow from the quotient rule. The window is symmetric, so it is its own adjoint.
"""

from __future__ import annotations

import numpy as np

from ..metrics.window import mirror
from ..shaders.constants import LOW_PASS, WINDOW
from ..types import Doubles
from .spec import RADIUS, Loss, Padding, Pyramid, product


def value_and_gradient(loss: Loss, reference: Doubles, distorted: Doubles) -> tuple[Doubles, Doubles]:
    """Return values (P,) and their gradients (P, H, W) by the distorted planes, from two (P, H, W) float64 arrays."""
    pyramid = [(reference, distorted)]
    for _ in loss.weights[1:]:
        first, second = pyramid[-1]
        pyramid.append((shrink(loss.pyramid, first), shrink(loss.pyramid, second)))
    last = len(pyramid) - 1
    terms = [
        mean_and_gradient(first, second, loss.c1, loss.c2, loss.padding, with_luminance=scale == last)
        for scale, (first, second) in enumerate(pyramid)
    ]
    values, slopes = product(loss, np.stack([mean for mean, _ in terms], axis=1))
    gradient = np.zeros_like(terms[-1][1])
    for scale in reversed(range(len(terms))):
        if scale < last:
            gradient = shrink_adjoint(loss.pyramid, gradient, loss.sizes[scale])
        gradient = gradient + slopes[:, scale, None, None] * terms[scale][1]
    return values, gradient


def mean_and_gradient(
    reference: Doubles, distorted: Doubles, c1: float, c2: float, padding: Padding, *, with_luminance: bool
) -> tuple[Doubles, Doubles]:
    """Return the mean of cs, or of l cs, over the windows of each plane (P,), and its gradient.

    The gradient is by the distorted plane (P, H, W).
    """
    mean1, mean2 = _filter(reference, padding), _filter(distorted, padding)
    variance_sum = _filter(reference**2 + distorted**2, padding) - mean1**2 - mean2**2
    covariance = _filter(reference * distorted, padding) - mean1 * mean2
    x, z = 2 * mean1 * mean2 + c1, mean1**2 + mean2**2 + c1
    y, t = 2 * covariance + c2, variance_sum + c2
    luminance = x / z if with_luminance else np.ones_like(x)
    term = luminance * y / t
    by_square = -term / t
    by_product = 2 * luminance / t
    by_mean = -2 * mean2 * by_square - mean1 * by_product
    if with_luminance:
        by_mean += 2 * (mean1 - luminance * mean2) / z * y / t
    gradient = (
        _filter_adjoint(by_mean, padding)
        + 2 * distorted * _filter_adjoint(by_square, padding)
        + reference * _filter_adjoint(by_product, padding)
    )
    windows = term.shape[1] * term.shape[2]
    return term.mean(axis=(1, 2)), gradient / windows


def shrink(pyramid: Pyramid, planes: Doubles) -> Doubles:
    """Return the next scale of (P, H, W) planes: (P, ceil(H/2), ceil(W/2))."""
    height, width = planes.shape[1:]
    shrunk: Doubles = _matrix(pyramid, height) @ planes @ _matrix(pyramid, width).T
    return shrunk


def shrink_adjoint(pyramid: Pyramid, planes: Doubles, size: tuple[int, int]) -> Doubles:
    """Apply the adjoint of `shrink`: from a scale's gradient to that of the scale before it, of the given (height, width)."""
    height, width = size
    grown: Doubles = _matrix(pyramid, height).T @ planes @ _matrix(pyramid, width)
    return grown


def _matrix(pyramid: Pyramid, length: int) -> Doubles:
    """Return one direction of `shrink` as a matrix, (ceil(length/2), length)."""
    matrix = np.zeros(((length + 1) // 2, length))
    outputs = np.arange(len(matrix))
    if pyramid is Pyramid.AVERAGE:
        inputs = np.arange(length)
        matrix[(inputs + length % 2) // 2, inputs] = 0.5
    else:
        for offset, tap in enumerate(LOW_PASS, start=-(len(LOW_PASS) // 2)):
            np.add.at(matrix, (outputs, mirror(2 * outputs + offset, length)), tap)
    return matrix


def _filter(planes: Doubles, padding: Padding) -> Doubles:
    """Return the weighted mean of each window: (P, H, W) to (P, H, W) for `same`, (P, H-10, W-10) for `valid`."""
    return _correlate(planes, RADIUS - padding.margin)


def _filter_adjoint(maps: Doubles, padding: Padding) -> Doubles:
    """Apply the adjoint of `_filter`: each sample gathers from the windows that contain it."""
    return _correlate(maps, RADIUS + padding.margin)


def _correlate(planes: Doubles, zeros: int) -> Doubles:
    padded = np.pad(planes, ((0, 0), (zeros, zeros), (zeros, zeros)))
    taps = np.array(WINDOW)
    for axis in (1, 2):
        padded = np.lib.stride_tricks.sliding_window_view(padded, len(taps), axis) @ taps
    return padded
