"""SSIM and MS-SSIM of PyTorch tensors, as losses: the extra [torch].

`fused_ssim` has the signature of the package of that name. `ssim`, `ms_ssim`, `SSIM` and `MS_SSIM` have those of
pytorch-msssim, and by default its numbers. Tensors on the CPU are computed on any Vulkan device, tensors of a CUDA device on
that device.

Read `functions` first, then `autograd`.
"""

from __future__ import annotations

try:
    from .cuda import empty, empty_cache, host_staging
    from .functions import MS_SSIM, SSIM, fused_ssim, ms_ssim, ssim
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError("vkssim.torch needs PyTorch: `pip install vkssim[torch]`") from error

__all__ = ["MS_SSIM", "SSIM", "empty", "empty_cache", "fused_ssim", "host_staging", "ms_ssim", "ssim"]
