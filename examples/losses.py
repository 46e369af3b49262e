"""The losses that the examples compare. Each takes two batches of pictures in 0..1, and is 0 if they are identical."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from vkssim.torch import ssim

Loss = Callable[[Tensor, Tensor], Tensor]

OURS, THEIRS, SQUARES = "vkssim, SSIM", "pytorch-msssim, SSIM", "mean squares"


def losses(device: str | None) -> dict[str, Loss]:
    """Return the losses by name: SSIM by vkssim, by pytorch-msssim if it is installed, and mean squares."""
    found: dict[str, Loss] = {OURS: lambda first, second: 1 - ssim(first, second, data_range=1.0, device=device)}
    try:
        import pytorch_msssim
    except ImportError:
        pass
    else:
        found[THEIRS] = lambda first, second: 1 - pytorch_msssim.ssim(first, second, data_range=1.0)
    return {**found, SQUARES: lambda first, second: 100 * (first - second).square().mean()}
