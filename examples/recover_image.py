#!/usr/bin/env python3
"""Recover a picture from noise: nothing but the gradient of MS-SSIM says where to go.

Writes `states.png`, the noise, what became of it and the reference, and `loss.png`, the loss over the steps. The default is a
frame of the clip in fixtures/; needs the extra [examples].
"""

from __future__ import annotations

from pathlib import Path

import click
import matplotlib as mpl
import torch
from pictures import CLIP, read_picture, sheet, write_picture
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

from vkssim import VkssimError
from vkssim.torch import ms_ssim

mpl.use("Agg")
import matplotlib.pyplot as plt

# A plane of which one scale has a negative mean is worth 0 and has no gradient that could lead it away, so all must begin above
# 0. cs is (2 cov + C2) / (variances + C2): the covariance of a picture with noise has either sign and grows with the noise, C2
# does not. With noise this weak C2 has the last word; at 0.3 and padding "valid" one plane in eight would not move.
_CONTRAST = 0.1
_RATE = 0.05
_SHOWN = (0, 1 / 64, 1 / 16, 1 / 4, 1)  # of all steps: most happens early


def noise(like: Tensor, seed: int = 0) -> Tensor:
    """Grey with weak noise on it, in the shape of `like`."""
    return 0.5 + _CONTRAST * torch.randn(like.shape, generator=torch.Generator().manual_seed(seed))


def recover(reference: Tensor, steps: int, device: str | None, progress: Progress) -> tuple[list[float], list[Tensor]]:
    """Go from noise to `reference`, (3, H, W) in 0..1: the loss before each step and after the last, and the states shown."""
    picture = noise(reference)[None].requires_grad_()
    optimiser = torch.optim.Adam([picture], lr=_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    shown = [round(share * steps) for share in _SHOWN]
    losses: list[float] = []
    states: list[Tensor] = []
    task = progress.add_task("", total=steps, loss=1.0)
    for step in range(steps + 1):
        optimiser.zero_grad()
        # How bright a plane is as a whole, and so what colour the picture has, MS-SSIM sees on its coarsest scale alone, and
        # there dimly. The zeros that "same" puts beyond the border are a level for all scales to measure against.
        loss = 1 - ms_ssim(picture, reference[None], data_range=1.0, padding="same", device=device)
        losses.append(loss.item())
        states += [picture[0].detach().clone()] * shown.count(step)
        if step < steps:
            loss.backward()
            optimiser.step()
            schedule.step()
            progress.update(task, advance=1, loss=losses[-1])
    return losses, states


def psnr(picture: Tensor, reference: Tensor) -> float:
    """In dB, of pictures in 0..1. Nothing here was told to raise it."""
    return float(-10 * (picture.clamp(0, 1) - reference).square().mean().log10())


def draw(path: Path, losses: list[float]) -> None:
    """Write the loss over the steps as PNG, 640x360."""
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.plot(losses)
    axes.set(xlabel="steps", ylabel="1 − MS-SSIM", yscale="log")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=100)
    plt.close(figure)


@click.command(help=__doc__)
@click.option("--steps", type=click.IntRange(1), default=200, show_default=True)
@click.option("--size", type=click.IntRange(1), default=180, show_default=True, help="Height it is scaled to.")
@click.option("--image", type=click.Path(path_type=Path, exists=True, dir_okay=False), default=CLIP, help="Image or clip.")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("recovered"), show_default=True)
@click.option("--device", help="Vulkan device, as for `vkssim score`.")
def main(steps: int, size: int, image: Path, output: Path, device: str | None) -> None:
    """Recover the picture, write what happened, say how well it went."""
    console = Console()
    columns = TextColumn("1 − MS-SSIM {task.fields[loss]:.1e}"), *Progress.get_default_columns(), TimeElapsedColumn()
    try:
        reference = read_picture(image, size)
        with Progress(*columns, MofNCompleteColumn(), console=console) as progress:
            losses, states = recover(reference, steps, device, progress)
    except VkssimError as error:
        raise click.ClickException(str(error)) from None
    output.mkdir(parents=True, exist_ok=True)
    pictures = [*states, reference]
    write_picture(output / "states.png", sheet([pictures[:3], pictures[3:]]))
    draw(output / "loss.png", losses)
    before, after = psnr(states[0], reference), psnr(states[-1], reference)
    console.print(f"1 − MS-SSIM {losses[0]:.4f} → {losses[-1]:.1e}, PSNR {before:.1f} → {after:.1f} dB; in {output}")


if __name__ == "__main__":
    main()
