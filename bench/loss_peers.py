"""The contenders of scripts/bench_loss: vkssim.torch, and the packages that a user would pick instead, if they are installed.

A contender computes one loss of two (N, C, H, W) images in 0..1, differentiable by the first. The peers are benchmark extras,
never dependencies: pytorch-msssim, frame-analytics, fussim, and fused_ssim of github.com/rahul-goel/fused-ssim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import torch as _torch

from vkssim.loss.spec import MS_SSIM_WEIGHTS, Negative, Padding, Pyramid

torch: Any = _torch
Tensor = Any
Value = Callable[[Tensor, Tensor], Tensor]

LOSSES: dict[str, dict[str, Any]] = {
    "ssim same": {"padding": Padding.SAME},
    "ssim valid": {"padding": Padding.VALID},
    "ms_ssim average": {"weights": MS_SSIM_WEIGHTS, "pyramid": Pyramid.AVERAGE, "negative": Negative.CLAMP},
    "ms_ssim libvmaf": {"weights": MS_SSIM_WEIGHTS, "pyramid": Pyramid.LIBVMAF, "negative": Negative.CLAMP},
}
"""The losses that can be computed, as options of `vkssim.loss.spec.Loss`."""


@dataclass(frozen=True)
class Contender:
    """One way to compute a loss."""

    loss: str
    name: str
    value: Value
    inference: Value
    """The same without a gradient; called under no_grad."""
    empty: Callable[[tuple[int, ...]], Tensor]
    """Makes the tensors that the images lie in."""
    ours: bool = False
    release: Callable[[], None] = lambda: None
    """Frees the memory that the contender keeps on the device from one call to the next."""

    def images(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Return both images in tensors of this contender; the first requires its gradient."""
        made = [self.empty(tuple(image.shape)).copy_(image) for image in (first, second)]
        return made[0].requires_grad_(), made[1]


def contenders(cuda: bool, device: str | None) -> tuple[list[Contender], dict[str, str]]:
    """Return who can take part, ours first, and why others cannot, by name."""
    found: list[Contender] = []
    absent: dict[str, str] = {}
    sources: dict[str, Callable[[Any, bool], list[Contender]]] = {
        "vkssim.torch": lambda module, cuda: _ours(module, cuda, {} if device is None else {"device": device}),
        "pytorch_msssim": partial(_peer, "pytorch-msssim"),
        "frame_analytics": partial(_peer, "frame-analytics"),
    }
    if cuda:
        sources |= {name: partial(_drop_ins, name) for name in ("fussim", "fused_ssim")}
    for name, make in sources.items():
        try:
            found += make(import_module(name), cuda)
        except Exception as error:  # an extension built for another torch fails in ways of its own
            absent[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return found, absent


def _plain(cuda: bool) -> Callable[[tuple[int, ...]], Tensor]:
    return lambda shape: torch.empty(shape, device="cuda" if cuda else "cpu")


def _ours(module: Any, cuda: bool, where: dict[str, str]) -> list[Contender]:
    def drop_in(train: bool) -> Value:
        return lambda first, second: module.fused_ssim(first, second, train=train, **where)

    def ms_ssim(pyramid: str) -> Value:
        return lambda first, second: module.ms_ssim(first, second, data_range=1.0, pyramid=pyramid, **where)

    def ssim(first: Tensor, second: Tensor) -> Tensor:
        return module.ssim(first, second, data_range=1.0, **where)

    values: dict[str, tuple[str, Value, Value]] = {
        "ssim same": ("fused_ssim", drop_in(True), drop_in(False)),
        "ssim valid": ("ssim", ssim, ssim),
        "ms_ssim average": ("ms_ssim", ms_ssim("average"), ms_ssim("average")),
        "ms_ssim libvmaf": ("ms_ssim", ms_ssim("libvmaf"), ms_ssim("libvmaf")),
    }

    places = {", shared": module.empty, ", ordinary": _plain(cuda)} if cuda else {"": _plain(cuda)}
    return [
        Contender(loss, f"vkssim {name}{place}", value, inference, empty, ours=True, release=module.empty_cache)
        for loss, (name, value, inference) in values.items()
        for place, empty in places.items()
    ]


def _peer(name: str, module: Any, cuda: bool) -> list[Contender]:
    """Return a peer. The pyramid of frame-analytics drops the last row and column of odd sides: MS-SSIM is another number."""

    def ssim(first: Tensor, second: Tensor) -> Tensor:
        return module.ssim(first, second, data_range=1.0)

    def ms_ssim(first: Tensor, second: Tensor) -> Tensor:
        return module.ms_ssim(first, second, data_range=1.0)

    return [
        Contender("ssim valid", name, ssim, ssim, _plain(cuda)),
        Contender("ms_ssim average", name, ms_ssim, ms_ssim, _plain(cuda)),
    ]


def _drop_ins(name: str, module: Any, cuda: bool) -> list[Contender]:
    return [_drop_in(name, module, padding, cuda) for padding in ("same", "valid")]


def _drop_in(name: str, module: Any, padding: str, cuda: bool) -> Contender:
    def value(first: Tensor, second: Tensor) -> Tensor:
        return module.fused_ssim(first, second, padding=padding)

    def inference(first: Tensor, second: Tensor) -> Tensor:
        return module.fused_ssim(first, second, padding=padding, train=False)

    return Contender(f"ssim {padding}", name, value, inference, _plain(cuda))
