#!/usr/bin/env python3
"""Tune a restoration filter to each picture of a batch by the gradient of SSIM.

Pictures are blurred and noisy, each in its own way. A bilateral filter takes noise away and leaves edges, an unsharp mask
brings back some of what blur took. How wide, how tolerant, how strong is best depends on the picture: each of the batch has
its own three parameters and its own loss. Prints parameters and scores before and after, and writes `filtered.png`, a row a
picture: as it came, by the defaults, tuned, and the reference. Needs the extra [examples].
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click
import torch
import torch.nn.functional as F  # noqa: N812 - as everyone calls it
from pictures import CLIP, read_picture, sheet, write_picture
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from vkssim import VkssimError
from vkssim.torch import ssim

_RADIUS = 3
_UNSHARP = 1.5
_RATE = 0.1


@dataclass(frozen=True)
class Crop:
    """A square of the picture, by where its centre lies in it, and the standard deviations of what is done to it."""

    name: str
    x: float
    y: float
    blur: float  # samples
    noise: float


CROPS = (
    Crop("head", 0.36, 0.17, blur=1.5, noise=0.01),
    Crop("rock", 0.85, 0.42, blur=0.5, noise=0.10),
    Crop("grass", 0.70, 0.75, blur=1.0, noise=0.03),
)


@dataclass
class Parameters:
    """What the filter can be told, one number a picture: (N,) each.

    `spatial` is the bilateral filter's standard deviation in samples, `tonal` the one between colours in 0..1, `strength` how
    much of the difference to a blurred copy the unsharp mask adds. The first two are logarithms: any step leaves them positive.
    """

    spatial: Tensor
    tonal: Tensor
    strength: Tensor

    @classmethod
    def defaults(cls, pictures: int) -> Parameters:
        """What one might choose for a picture not looked at."""
        start = torch.tensor([1.5, 0.1, 0.5]).repeat(pictures, 1)
        return cls(start[:, 0].log().requires_grad_(), start[:, 1].log().requires_grad_(), start[:, 2].requires_grad_())

    def values(self, picture: int) -> tuple[float, float, float]:
        """Those of one picture, no logarithms."""
        return self.spatial[picture].exp().item(), self.tonal[picture].exp().item(), self.strength[picture].item()


def restore(pictures: Tensor, parameters: Parameters) -> Tensor:
    """Bilateral filter of 7x7 samples, then unsharp mask; (N, C, H, W) to (N, C, H, W)."""
    smooth = bilateral(pictures, parameters.spatial.exp(), parameters.tonal.exp())
    return smooth + parameters.strength[:, None, None, None] * (smooth - blur(smooth, _UNSHARP))


def blur(pictures: Tensor, deviation: float) -> Tensor:
    """Gaussian blur of (N, C, H, W) pictures, borders mirrored."""
    taps = torch.exp(-(torch.arange(-_RADIUS, _RADIUS + 1) ** 2) / (2 * deviation**2))
    taps = (taps / taps.sum()).repeat(pictures.shape[1], 1, 1, 1)
    padded = F.pad(pictures, (_RADIUS,) * 4, "reflect")
    return F.conv2d(F.conv2d(padded, taps, groups=len(taps)), taps.mT, groups=len(taps))


def bilateral(pictures: Tensor, spatial: Tensor, tonal: Tensor) -> Tensor:
    """Means of neighbours, weighted by how near they are and how alike in colour (Tomasi, Manduchi, ICCV 1998)."""
    height, width = pictures.shape[2:]
    padded = F.pad(pictures, (_RADIUS,) * 4, "reflect")
    total, weights = torch.zeros_like(pictures), torch.zeros_like(pictures[:, :1])
    for y in range(2 * _RADIUS + 1):
        for x in range(2 * _RADIUS + 1):
            neighbour = padded[:, :, y : y + height, x : x + width]
            distance = (y - _RADIUS) ** 2 + (x - _RADIUS) ** 2
            unlike = (neighbour - pictures).square().mean(1, keepdim=True)
            weight = torch.exp(-(distance / spatial**2)[:, None, None, None] / 2 - unlike / (tonal**2)[:, None, None, None] / 2)
            total, weights = total + weight * neighbour, weights + weight
    return total / weights


def tune(poor: Tensor, clean: Tensor, steps: int, device: str | None) -> Parameters:
    """The parameters of each picture that gradient descent on its own 1 - SSIM arrives at."""
    parameters = Parameters.defaults(len(poor))
    optimiser = torch.optim.Adam([parameters.spatial, parameters.tonal, parameters.strength], lr=_RATE)
    for _ in track(range(steps), "tuning"):
        optimiser.zero_grad()
        losses = 1 - ssim(restore(poor, parameters), clean, data_range=1.0, size_average=False, device=device)
        losses.sum().backward()  # no picture has a part in another's loss, so each parameter meets its own
        optimiser.step()
    return parameters


def read_batch(image: Path, size: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The crops, (N, 3, size, size): blurred and noisy, and as they were."""
    picture = read_picture(image)
    height, width = picture.shape[1:]
    if size > min(height, width):
        most = min(height, width)
        raise click.BadParameter(f"{image} is {width}x{height}; choose crops of {most}x{most} at most", param_hint="--size")
    generator = torch.Generator().manual_seed(seed)
    poor, clean = [], []
    for crop in CROPS:
        top, left = (round(min(max(at * n - size / 2, 0), n - size)) for at, n in ((crop.y, height), (crop.x, width)))
        square = picture[:, top : top + size, left : left + size]
        noise = crop.noise * torch.randn(square.shape, generator=generator)
        poor.append((blur(square[None], crop.blur)[0] + noise).clamp(0, 1))
        clean.append(square)
    return torch.stack(poor), torch.stack(clean)


@click.command(help=__doc__)
@click.option("--steps", type=click.IntRange(1), default=60, show_default=True)
@click.option("--size", type=click.IntRange(11), default=128, show_default=True, help="Side of the crops.")
@click.option("--image", type=click.Path(path_type=Path, exists=True, dir_okay=False), default=CLIP, help="Image or clip.")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("tuned"), show_default=True)
@click.option("--device", help="Vulkan device, as for `vkssim score`.")
def main(steps: int, size: int, image: Path, output: Path, device: str | None) -> None:
    """Tune, write the pictures, print the table."""
    try:
        poor, clean = read_batch(image, size)
        untuned = Parameters.defaults(len(poor))
        tuned = tune(poor, clean, steps, device)
        with torch.no_grad():
            stages = poor, restore(poor, untuned), restore(poor, tuned)
            scores = [ssim(stage, clean, data_range=1.0, size_average=False, device=device).tolist() for stage in stages]
    except VkssimError as error:
        raise click.ClickException(str(error)) from None
    output.mkdir(parents=True, exist_ok=True)
    write_picture(output / "filtered.png", sheet(list(zip(*stages, clean, strict=True))))
    Console().print(_table(untuned, tuned, scores))


def _table(untuned: Parameters, tuned: Parameters, scores: list[list[float]]) -> Table:
    table = Table("picture", "blur", "noise", "filter", "spatial", "tonal", "strength", "SSIM")
    for index, (crop, poor, before, after) in enumerate(zip(CROPS, *scores, strict=True)):
        table.add_row(crop.name, f"{crop.blur}", f"{crop.noise}", "none", "", "", "", f"{poor:.4f}")
        for name, parameters, score in (("defaults", untuned, before), ("tuned", tuned, after)):
            table.add_row("", "", "", name, *(f"{value:.3f}" for value in parameters.values(index)), f"{score:.4f}")
        table.add_section()
    return table


if __name__ == "__main__":
    main()
