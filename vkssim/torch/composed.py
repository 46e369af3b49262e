"""The losses in PyTorch's own operations, in double precision, for second derivatives.

docs/notes/2026-11-29-derivation-of-the-losses.md has the formulas.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from torch import Tensor

from ..loss.spec import RADIUS, Loss, Negative, Padding, Pyramid
from ..metrics.window import mirror
from ..shaders.constants import LOW_PASS, WINDOW


def values(loss: Loss, first: Tensor, second: Tensor) -> Tensor:
    """Return the value of each image, (N,), which is the mean over its channels, of two (N, C, H, W) float64 tensors."""
    sides = [image.reshape(-1, 1, *image.shape[2:]) for image in (first, second)]
    last = len(loss.weights) - 1
    product = torch.ones_like(first[:, :, 0, 0]).flatten()
    for scale, weight in enumerate(loss.weights):
        if scale:
            sides = [_shrink(loss.pyramid, side) for side in sides]
        mean = _mean(loss, *sides, with_luminance=scale == last)
        product = product * _power(loss.negative, mean, weight)
    return product.view(first.shape[:2]).mean(dim=1)


def _mean(loss: Loss, first: Tensor, second: Tensor, *, with_luminance: bool) -> Tensor:
    """Return the mean of cs, or of l cs, over the windows of each plane, (P,), of (P, 1, H, W) tensors."""
    total, difference = first + second, first - second
    mean_u, mean_d = _filter(total, loss.padding), _filter(difference, loss.padding)
    variance_u = _filter(total.square(), loss.padding) - mean_u.square()
    variance_d = _filter(difference.square(), loss.padding) - mean_d.square()
    lacks = variance_d / ((variance_u + variance_d) / 2 + loss.c2)
    if with_luminance:
        lacks_l = mean_d.square() / ((mean_u.square() + mean_d.square()) / 2 + loss.c1)
        lacks = lacks_l + (1 - lacks_l) * lacks
    return 1 - lacks.mean(dim=(1, 2, 3))


def _filter(planes: Tensor, padding: Padding) -> Tensor:
    taps = planes.new_tensor(WINDOW)
    border = RADIUS - padding.margin
    rows = F.conv2d(planes, taps.view(1, 1, -1, 1), padding=(border, 0))
    return F.conv2d(rows, taps.view(1, 1, 1, -1), padding=(0, border))


def _shrink(pyramid: Pyramid, planes: Tensor) -> Tensor:
    """Return the next scale of (P, 1, H, W) planes, (P, 1, ceil(H/2), ceil(W/2))."""
    height, width = planes.shape[2:]
    if pyramid is Pyramid.AVERAGE:
        return F.avg_pool2d(planes, 2, padding=(height % 2, width % 2))
    taps = planes.new_tensor(LOW_PASS)
    reach = len(LOW_PASS) // 2
    for dimension, length in ((2, height), (3, width)):
        indices = torch.from_numpy(mirror(np.arange(-reach, length + reach), length))
        planes = planes.index_select(dimension, indices.to(planes.device))
    rows = F.conv2d(planes, taps.view(1, 1, -1, 1), stride=(2, 1))
    return F.conv2d(rows, taps.view(1, 1, 1, -1), stride=(1, 2))


def _power(negative: Negative, mean: Tensor, weight: float) -> Tensor:
    """Return mean^weight by the rules of `loss.spec.product`, also for derivatives: they are 0 if a mean is not above 0."""
    if weight == 0:
        return torch.ones_like(mean)
    if negative is Negative.KEEP:  # every weight is 1
        return mean
    above = mean > 0
    power = torch.where(above, torch.where(above, mean, 1.0) ** weight, 0.0)
    return torch.where(mean < 0, mean * torch.nan, power) if negative is Negative.NULL else power
