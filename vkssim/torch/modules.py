"""The functions as modules, with the arguments of pytorch-msssim."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from ..errors import OptionError
from ..loss.spec import Negative, Padding, Pyramid, chosen
from .functions import check_window, ms_ssim, ssim


class SSIM(nn.Module):
    """`ssim` as a module.

    Parameters
    ----------
    data_range : float
        The largest possible sample.
    size_average : bool
        Return the mean over all images; otherwise each image's own value.
    win_size : int
        Taps of the window; it must be 11.
    win_sigma : float
        Standard deviation of the window in samples; it must be 1.5.
    channel : int
        It may be any number: the images have their channels.
    spatial_dims : int
        It must be 2.
    K : (float, float)
        K1 and K2 of C1 = (K1 data_range)^2 and C2 = (K2 data_range)^2.
    nonnegative_ssim : bool
        A channel's negative value counts as 0, with gradient 0.
    padding : {"valid", "same"}
        Windows lie inside the images, or on every sample with zeros beyond the border.
    backend : {"vulkan", "cpu"}
        The backend that computes it; see `fused_ssim`.
    device : str or int, optional
        Vulkan device for tensors on the CPU: index, part of the name, or UUID.

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
        super().__init__()
        check_window(win_size, win_sigma, None)
        _check_dimensions(spatial_dims)
        chosen(Padding, padding)
        self.data_range = data_range
        self.size_average = size_average
        self.K = K
        self.nonnegative_ssim = nonnegative_ssim
        self.padding = padding
        self.backend = backend
        self.device = device

    def forward(self, X: Tensor, Y: Tensor) -> Tensor:  # noqa: N803
        """Return the similarity of two batches.

        Parameters
        ----------
        X, Y : Tensor
            Images, one image, or clips; see `ssim`.

        Returns
        -------
        Tensor
            A scalar, or (N,) if `size_average` is False and the tensors have N images or clips.

        """
        return ssim(
            X,
            Y,
            self.data_range,
            self.size_average,
            K=self.K,
            nonnegative_ssim=self.nonnegative_ssim,
            padding=self.padding,
            backend=self.backend,
            device=self.device,
        )


class MS_SSIM(nn.Module):  # noqa: N801
    """`ms_ssim` as a module.

    Parameters
    ----------
    data_range : float
        The largest possible sample.
    size_average : bool
        Return the mean over all images; otherwise each image's own value.
    win_size : int
        Taps of the window; it must be 11.
    win_sigma : float
        Standard deviation of the window in samples; it must be 1.5.
    channel : int
        It may be any number: the images have their channels.
    spatial_dims : int
        It must be 2.
    weights : sequence of float, optional
        The exponent of each scale, the finest first; see `ms_ssim`.
    K : (float, float)
        K1 and K2 of C1 = (K1 data_range)^2 and C2 = (K2 data_range)^2.
    pyramid : {"average", "libvmaf"}
        How a scale is made from the previous one; see `ms_ssim`.
    padding : {"valid", "same"}
        Windows lie inside the images, or on every sample with zeros beyond the border.
    negative : {"clamp", "null"}
        The value of a channel whose mean is negative: 0, with gradient 0, or NaN.
    backend : {"vulkan", "cpu"}
        The backend that computes it; see `fused_ssim`.
    device : str or int, optional
        Vulkan device for tensors on the CPU: index, part of the name, or UUID.

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
        super().__init__()
        check_window(win_size, win_sigma, None)
        _check_dimensions(spatial_dims)
        chosen(Padding, padding)
        chosen(Pyramid, pyramid)
        chosen(Negative, negative, without=Negative.KEEP)
        self.data_range = data_range
        self.size_average = size_average
        self.weights = weights
        self.K = K
        self.pyramid = pyramid
        self.padding = padding
        self.negative = negative
        self.backend = backend
        self.device = device

    def forward(self, X: Tensor, Y: Tensor) -> Tensor:  # noqa: N803
        """Return the similarity of two batches.

        Parameters
        ----------
        X, Y : Tensor
            Images, one image, or clips; see `ms_ssim`.

        Returns
        -------
        Tensor
            A scalar, or (N,) if `size_average` is False and the tensors have N images or clips.

        """
        return ms_ssim(
            X,
            Y,
            self.data_range,
            self.size_average,
            weights=self.weights,
            K=self.K,
            pyramid=self.pyramid,
            padding=self.padding,
            negative=self.negative,
            backend=self.backend,
            device=self.device,
        )


def _check_dimensions(spatial_dims: int) -> None:
    if spatial_dims != 2:
        raise OptionError(f"spatial_dims is {spatial_dims}; images of 2 dimensions are possible")
