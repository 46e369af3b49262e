"""Options that commands share, in groups: a command gets each group as one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..formats import BIT_DEPTHS
from . import choices

if TYPE_CHECKING:
    from ..files import Selection
    from ..frames.open import RawDescription


def option_group(
    name: str, make: Callable[..., Any], *options: click.Option
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that adds options to a command, which gets `name=make(**values)` in place of the values."""
    keys = [option.name for option in options]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(**values: Any) -> Any:
            return function(**{name: make(**{str(key): values.pop(key) for key in keys})}, **values)

        command.__click_params__ = [*getattr(function, "__click_params__", []), *reversed(options)]  # type: ignore[attr-defined]
        return command

    return decorate


def _raw(width: int | None, height: int | None, pixel_format: str | None, bitdepth: str | None) -> RawDescription:
    from ..frames.open import RawDescription

    return RawDescription(width, height, pixel_format, int(bitdepth) if bitdepth else None)


def _selection(subsample: int, frame_cnt: int | None, frame_skip_ref: int, frame_skip_dist: int) -> Selection:
    from ..files import Selection

    return Selection(frame_skip_ref, frame_skip_dist, frame_cnt, subsample)


raw_options = option_group(
    "raw",
    _raw,
    click.Option(["-w", "--width"], type=click.IntRange(1), help="Width of raw files."),
    click.Option(["-h", "--height"], type=click.IntRange(1), help="Height of raw files."),
    click.Option(["-p", "--pixel_format"], type=click.Choice(["420", "422", "444", "400"]), help="Pixel format of raw files."),
    click.Option(
        ["-b", "--bitdepth"],
        type=click.Choice([str(bits) for bits in BIT_DEPTHS]),
        help="Depth of raw files; over 8 two bytes, little-endian.",
    ),
)
selection_options = option_group(
    "selection",
    _selection,
    click.Option(["--subsample"], type=click.IntRange(1), default=1, show_default=True, help="Score every N-th frame only."),
    click.Option(["--frame_cnt"], type=click.IntRange(1), help="Compare that many frames at most."),
    click.Option(["--frame_skip_ref"], type=click.IntRange(0), default=0, help="Skip frames of the reference."),
    click.Option(["--frame_skip_dist"], type=click.IntRange(0), default=0, help="Skip frames of the distorted clip."),
)
backend_options = option_group(
    "where",
    dict,
    click.Option(
        ["--backend"],
        type=click.Choice(["vulkan", "cpu"]),
        default="vulkan",
        show_default=True,
        help="cpu is NumPy: slow, exact.",
    ),
    click.Option(
        ["--device"],
        metavar="INDEX|NAME|UUID",
        help="Vulkan device; else VKSSIM_DEVICE, else the first real GPU.",
        shell_complete=choices.devices,
    ),
)
feature_option = click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME[=K=V:K=V]",
    shell_complete=choices.features,
    default=("float_ms_ssim", "float_ssim"),
    help="Metric with options; may be repeated. Default: float_ms_ssim and float_ssim. `vkssim features` lists them.",
)
