#!/usr/bin/env python3
"""Tune a restoration filter on some pictures by the gradient of SSIM, and judge it on others.

Pictures are blurred and noisy. A bilateral filter takes noise away and leaves edges, an unsharp mask brings back some of what
blur took. How wide, how tolerant, how strong: three parameters, one set for all pictures, tuned on crops of the first picture
of a clip and judged on crops of other places of the last one, and on pictures given by --judge. pytorch-msssim's SSIM does the
same, to compare time and result, and so does the mean squared error in place of SSIM.

Prints the parameters and the scores that they reach, and writes `filtered.png`, a row for each picture that is judged: the
input, filtered with the defaults, filtered with the parameters tuned by vkssim, and the reference. Needs the extra [examples].
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import torch
import torch.nn.functional as F  # noqa: N812 - as everyone calls it
from losses import OURS, Loss, losses
from pictures import CLIP, gaussian_blur, psnr, read_picture, sheet, write_picture
from rich.console import Console
from rich.table import Table
from torch import Tensor

from vkssim import VkssimError
from vkssim.torch import ssim

_BLUR, _NOISE = 0.8, 0.06  # what is done to the pictures: samples, and of a range of 1
_RADIUS = 3
_UNSHARP = 1.5
_RATE = 0.1


@dataclass(frozen=True)
class Crop:
    """A square of a picture, by where its centre lies in it."""

    name: str
    x: float
    y: float


TRAINING = (Crop("flowers", 0.15, 0.15), Crop("stones", 0.12, 0.6), Crop("burrow", 0.3, 0.45), Crop("grass", 0.2, 0.9))
JUDGED = (Crop("head", 0.37, 0.2), Crop("trees", 0.7, 0.15), Crop("rocks", 0.85, 0.5), Crop("meadow", 0.7, 0.85))
"""Crops of the default clip. None of one list overlaps any of the other."""


@dataclass
class Parameters:
    """The parameters of the filter.

    `spatial` is the bilateral filter's standard deviation in samples, `tonal` the one between colours in 0..1, `strength` the
    share of the difference to a blurred copy that the unsharp mask adds. The first two are logarithms of positive numbers.
    """

    spatial: Tensor
    tonal: Tensor
    strength: Tensor

    @classmethod
    def defaults(cls) -> Parameters:
        """Return usual values, chosen without a look at the pictures."""
        spatial, tonal, strength = torch.tensor([1.5, 0.1, 0.5]).unbind()
        return cls(spatial.log().requires_grad_(), tonal.log().requires_grad_(), strength.clone().requires_grad_())

    def values(self) -> tuple[float, float, float]:
        """Return the parameters without logarithms."""
        return self.spatial.exp().item(), self.tonal.exp().item(), self.strength.item()


def restore(pictures: Tensor, parameters: Parameters) -> Tensor:
    """Return (N, C, H, W) pictures after a bilateral filter of 7x7 samples and an unsharp mask."""
    smooth = bilateral(pictures, parameters.spatial.exp(), parameters.tonal.exp())
    return smooth + parameters.strength * (smooth - gaussian_blur(smooth, _UNSHARP))


def bilateral(pictures: Tensor, spatial: Tensor, tonal: Tensor) -> Tensor:
    """Return means of neighbours, weighted by how near they are and how alike in colour (Tomasi, Manduchi, ICCV 1998)."""
    height, width = pictures.shape[2:]
    padded = F.pad(pictures, (_RADIUS,) * 4, "reflect")
    total, weights = torch.zeros_like(pictures), torch.zeros_like(pictures[:, :1])
    for y in range(2 * _RADIUS + 1):
        for x in range(2 * _RADIUS + 1):
            neighbour = padded[:, :, y : y + height, x : x + width]
            distance = (y - _RADIUS) ** 2 + (x - _RADIUS) ** 2
            unlike = (neighbour - pictures).square().mean(1, keepdim=True)
            weight = torch.exp(-distance / spatial**2 / 2 - unlike / tonal**2 / 2)
            total, weights = total + weight * neighbour, weights + weight
    return total / weights


def tune(poor: Tensor, clean: Tensor, loss: Loss, steps: int) -> Parameters:
    """Return the parameters that gradient descent on the loss of all pictures reaches."""
    parameters = Parameters.defaults()
    optimiser = torch.optim.Adam([parameters.spatial, parameters.tonal, parameters.strength], lr=_RATE)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(restore(poor, parameters), clean).backward()
        optimiser.step()
    return parameters


def degrade(clean: Tensor, seed: int) -> Tensor:
    """Return pictures with blur and noise."""
    noise = _NOISE * torch.randn(clean.shape, generator=torch.Generator().manual_seed(seed))
    return (gaussian_blur(clean, _BLUR) + noise).clamp(0, 1)


def cut_crops(picture: Tensor, places: Sequence[Crop], size: int, path: Path) -> Tensor:
    """Return squares of a (3, H, W) picture, (N, 3, size, size)."""
    height, width = picture.shape[1:]
    if size > min(height, width):
        most = min(height, width)
        raise click.BadParameter(f"{path} is {width}x{height}; choose crops of {most}x{most} at most", param_hint="--size")
    found = []
    for crop in places:
        top, left = (round(min(max(at * n - size / 2, 0), n - size)) for at, n in ((crop.y, height), (crop.x, width)))
        found.append(picture[:, top : top + size, left : left + size])
    return torch.stack(found)


@click.command(help=__doc__)
@click.option("--steps", type=click.IntRange(1), default=40, show_default=True)
@click.option("--size", type=click.IntRange(11), default=96, show_default=True, help="Side of the crops.")
@click.option("--image", type=click.Path(path_type=Path, exists=True, dir_okay=False), default=CLIP, help="Image or clip.")
@click.option(
    "--judge",
    "others",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Judge on the middle of this picture too; may be repeated.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("tuned"), show_default=True)
@click.option("--device", help="Vulkan device, as for `vkssim score`.")
def main(steps: int, size: int, image: Path, others: tuple[Path, ...], output: Path, device: str | None) -> None:
    """Tune by every loss, judge, write the pictures, print the tables."""
    try:
        training = cut_crops(read_picture(image, first=True), TRAINING, size, image)
        unseen = [cut_crops(read_picture(image), JUDGED, size, image)]
        unseen += [cut_crops(read_picture(path), [Crop(path.stem, 0.5, 0.5)], size, path) for path in others]
        judged, poor = torch.cat(unseen), degrade(training, seed=0)
        found, seconds = {"defaults": Parameters.defaults()}, {}
        for name, loss in losses(device).items():
            began = time.perf_counter()
            found[name] = tune(poor, training, loss, steps)
            seconds[name] = time.perf_counter() - began
        came = degrade(judged, seed=1)
        with torch.no_grad():
            restored = {"as they came": came, **{name: restore(came, parameters) for name, parameters in found.items()}}
            scores = {
                name: ssim(one, judged, 1.0, size_average=False, device=device).tolist() for name, one in restored.items()
            }
    except VkssimError as error:
        raise click.ClickException(str(error)) from None
    output.mkdir(parents=True, exist_ok=True)
    write_picture(output / "filtered.png", sheet(list(zip(came, restored["defaults"], restored[OURS], judged, strict=True))))
    console = Console(width=140)
    tuned = Table("tuned by", "spatial", "tonal", "strength", "seconds")
    for name, parameters in found.items():
        spent = f"{seconds[name]:.1f}" if name in seconds else ""
        tuned.add_row(name, *(f"{value:.3f}" for value in parameters.values()), spent)
    console.print(tuned)
    names = [crop.name for crop in JUDGED] + [path.stem for path in others]
    worth = Table("of pictures not seen", *names, "mean SSIM", "PSNR, dB")
    for name, values in scores.items():
        mean = sum(values) / len(values)
        worth.add_row(name, *(f"{value:.4f}" for value in values), f"{mean:.4f}", f"{psnr(restored[name], judged):.2f}")
    console.print(worth)


if __name__ == "__main__":
    main()
