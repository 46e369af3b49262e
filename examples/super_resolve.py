#!/usr/bin/env python3
"""Reconstruct a picture of twice the size from a camera's observation of it: SSIM through an operator.

The observation y has half the size of the hidden picture: the camera blurs, takes every second sample, and adds noise. The
example searches the x that minimises

  1 - SSIM(A x, y) + strength * TV(x)

where A blurs and takes every second sample as the camera does, and TV, total variation, is the mean length of the gradient. Of
all pictures that explain the observation, those without noise have a small one. pytorch-msssim's SSIM does the same, to compare
time and result, and so does the mean squared error in place of SSIM.

Prints how near each result comes to the hidden picture, and writes `super_resolved.png`: the observation, its bicubic
enlargement, the result of vkssim, and the hidden picture. The default is a frame of the clip in fixtures/; needs the extra
[examples].
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import click
import torch
import torch.nn.functional as F  # noqa: N812 - as everyone calls it
from losses import OURS, SQUARES, Loss, losses
from pictures import CLIP, gaussian_blur, psnr, read_picture, sheet, write_picture
from rich.console import Console
from rich.table import Table
from torch import Tensor

from vkssim import VkssimError
from vkssim.torch import ssim

_BLUR = 1.6  # standard deviation in samples of the large picture
_NOISE = 0.002  # of a range of 1
_RATE = 0.02
_STRENGTH = 0.1
_STRENGTH_OF_SQUARES = 0.03  # of 0.01, 0.03, 0.1 and 0.3 either is the best by SSIM for the default picture


def camera(pictures: Tensor) -> Tensor:
    """Return a camera's observation of (N, C, H, W) pictures, (N, C, ceil(H/2), ceil(W/2)), without its noise."""
    return gaussian_blur(pictures, _BLUR)[..., ::2, ::2]


def observe(picture: Tensor, seed: int = 0) -> Tensor:
    """Return the camera's observation of a (1, C, H, W) picture, with noise."""
    clean = camera(picture)
    return clean + _NOISE * torch.randn(clean.shape, generator=torch.Generator().manual_seed(seed))


def enlarge(small: Tensor, size: tuple[int, int]) -> Tensor:
    """Return pictures at that (height, width) by bicubic interpolation: sample i of the small ones becomes sample 2 i."""
    places = ((torch.arange(length) + 1) / side - 1 for length, side in zip(size, small.shape[2:], strict=True))
    grid = torch.stack(torch.meshgrid(*places, indexing="ij")[::-1], dim=-1)
    return F.grid_sample(small, grid.expand(len(small), -1, -1, -1), "bicubic", "border", align_corners=False)


def total_variation(pictures: Tensor) -> Tensor:
    """Return the mean length of the gradient, rounded off near 0."""
    down = (pictures[..., 1:, :] - pictures[..., :-1, :])[..., :, 1:]
    across = (pictures[..., :, 1:] - pictures[..., :, :-1])[..., 1:, :]
    return (down.square() + across.square() + 1e-6).sqrt().mean()


@dataclass(frozen=True)
class Found:
    """A reconstructed picture, and the seconds that it took."""

    picture: Tensor
    seconds: float


def solve(observed: Tensor, size: tuple[int, int], loss: Loss, strength: float, steps: int) -> Found:
    """Return the picture that gradient descent reaches from the bicubic enlargement of an observation."""
    picture = enlarge(observed, size).requires_grad_()
    optimiser = torch.optim.Adam([picture], lr=_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    began = time.perf_counter()
    for _ in range(steps):
        optimiser.zero_grad()
        (loss(camera(picture), observed) + strength * total_variation(picture)).backward()
        optimiser.step()
        schedule.step()
    return Found(picture.detach().clamp(0, 1), time.perf_counter() - began)


@click.command(help=__doc__)
@click.option("--steps", type=click.IntRange(1), default=100, show_default=True)
@click.option("--size", type=click.IntRange(22), default=180, show_default=True, help="Height of the hidden picture.")
@click.option("--image", type=click.Path(path_type=Path, exists=True, dir_okay=False), default=CLIP, help="Image or clip.")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("enlarged"), show_default=True)
@click.option("--device", help="Vulkan device, as for `vkssim score`.")
def main(steps: int, size: int, image: Path, output: Path, device: str | None) -> None:
    """Hide the picture, reconstruct it by every loss, print how near each comes, and write the result of vkssim."""
    try:
        hidden = read_picture(image, size)[None]
        observed, shape = observe(hidden), (hidden.shape[2], hidden.shape[3])
        found = {"bicubic": Found(enlarge(observed, shape).clamp(0, 1), 0.0)}
        for name, loss in losses(device).items():
            strength = _STRENGTH_OF_SQUARES if name == SQUARES else _STRENGTH
            found[name] = solve(observed, shape, loss, strength, steps)
        table = Table("", "PSNR, dB", "SSIM", "seconds")
        for name, one in found.items():
            score = float(ssim(one.picture, hidden, data_range=1.0, device=device))
            table.add_row(name, f"{psnr(one.picture, hidden):.2f}", f"{score:.4f}", f"{one.seconds:.1f}" if one.seconds else "")
    except VkssimError as error:
        raise click.ClickException(str(error)) from None
    output.mkdir(parents=True, exist_ok=True)
    coarse = observed.repeat_interleave(2, 2).repeat_interleave(2, 3)[..., : shape[0], : shape[1]]
    stages = coarse, found["bicubic"].picture, found[OURS].picture, hidden
    pictures = [stage[0] for stage in stages]
    write_picture(output / "super_resolved.png", sheet([pictures[:2], pictures[2:]]))
    Console().print(table)


if __name__ == "__main__":
    main()
