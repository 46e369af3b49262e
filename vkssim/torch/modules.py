"""The functions as modules, with the arguments of pytorch-msssim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from torch import Tensor, nn

from ..errors import OptionError
from ..loss.spec import Negative, Padding, Pyramid, chosen
from ..utils.limits import integer
from .functions import check_window, ms_ssim, ssim


class _Similarity(nn.Module):
    """A function of two batches with its `arguments`, which may be changed between calls."""

    def __init__(self, function: Callable[..., Tensor], given: Mapping[str, Any]) -> None:
        super().__init__()
        check_window(given["win_size"], given["win_sigma"], None)
        if integer("spatial_dims", given["spatial_dims"]) != 2:
            raise OptionError(f"spatial_dims is {given['spatial_dims']}; images of 2 dimensions are possible")
        chosen(Padding, given["padding"])
        self.function = function
        self.arguments = {name: given[name] for name in signature(function).parameters if name in given}

    def forward(self, X: Tensor, Y: Tensor) -> Tensor:  # noqa: N803 - pytorch-msssim's names
        """Return the similarity of two batches, as the function of the same name does."""
        return self.function(X, Y, **self.arguments)


class SSIM(_Similarity):
    """`ssim` as a module.

    Parameters
    ----------
    data_range, size_average, win_size, win_sigma : optional
        As for `ssim`.
    channel, spatial_dims : int
        `channel` may be any number, because the images have their channels; `spatial_dims` must be 2.
    K, nonnegative_ssim, padding, backend, device : optional
        As for `ssim`.

    Raises
    ------
    OptionError
        An argument has an invalid value.

    """

    def __init__(
        self,
        data_range: float = 255,
        size_average: bool = True,
        win_size: int = 11,
        win_sigma: float = 1.5,
        channel: int = 3,
        spatial_dims: int = 2,
        K: Sequence[float] = (0.01, 0.03),  # noqa: N803 - pytorch-msssim's names
        nonnegative_ssim: bool = False,
        *,
        padding: str = "valid",
        backend: str = "vulkan",
        device: str | int | None = None,
    ) -> None:
        super().__init__(ssim, dict(locals()))


class MS_SSIM(_Similarity):  # noqa: N801
    """`ms_ssim` as a module.

    Parameters
    ----------
    data_range, size_average, win_size, win_sigma : optional
        As for `ms_ssim`.
    channel, spatial_dims : int
        `channel` may be any number, because the images have their channels; `spatial_dims` must be 2.
    weights, K, pyramid, padding, negative, backend, device : optional
        As for `ms_ssim`.

    Raises
    ------
    OptionError
        An argument has an invalid value.

    """

    def __init__(
        self,
        data_range: float = 255,
        size_average: bool = True,
        win_size: int = 11,
        win_sigma: float = 1.5,
        channel: int = 3,
        spatial_dims: int = 2,
        weights: Sequence[float] | None = None,
        K: Sequence[float] = (0.01, 0.03),  # noqa: N803
        *,
        pyramid: str = "average",
        padding: str = "valid",
        negative: str = "clamp",
        backend: str = "vulkan",
        device: str | int | None = None,
    ) -> None:
        chosen(Pyramid, pyramid)
        chosen(Negative, negative)
        super().__init__(ms_ssim, dict(locals()))
