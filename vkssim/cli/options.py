"""Options that commands share, in groups: a command gets each group as one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..types import BIT_DEPTHS
from . import choices
from .command import Choice, Option, Section, option

if TYPE_CHECKING:
    from ..frames.open import RawDescription
    from ..frames.pictures import PictureOptions
    from ..frames.selection import Selection


def option_group(name: str, make: Callable[..., Any], *options: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options to a command, which gets `name=make(**values)` in place of the values."""
    keys = [option.name for option in options]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(**values: Any) -> Any:
            return function(**{name: make(**{str(key): values.pop(key) for key in keys})}, **values)

        command.__click_params__ = [*getattr(function, "__click_params__", []), *reversed(options)]  # type: ignore[attr-defined]
        return command

    return decorate


def _raw(
    width: int | None, height: int | None, pixel_format: str | None, bitdepth: str | None, allow_partial: bool
) -> RawDescription:
    from ..frames.open import RawDescription

    return RawDescription(width, height, pixel_format, int(bitdepth) if bitdepth else None, allow_partial)


def _selection(
    subsample: int,
    frame_cnt: int | None,
    frame_skip_ref: int,
    frame_skip_dist: int,
    offset: int,
    start: str | None,
    end: str | None,
    stream_reference: int | None,
    stream_distorted: int | None,
) -> Selection:
    from ..frames.selection import Selection

    return Selection(
        frame_skip_ref, frame_skip_dist, frame_cnt, subsample, offset, start, end, stream_reference, stream_distorted
    )


def _pictures(**options: Any) -> PictureOptions:
    from ..frames.pictures import PictureOptions

    return PictureOptions(**options)


def split_devices(where: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Return whether `backend_options` name several devices, and the same with the first of them alone."""
    from ..distributed.devices import alone, chosen_devices

    devices = chosen_devices(**where)
    return len(devices) > 1, where | {"device": alone(devices, where["device"])}


raw_options = option_group(
    "raw",
    _raw,
    Option(["-w", "--width"], section=Section.INPUTS, type=click.IntRange(1), help="Width of raw files."),
    Option(["-h", "--height"], section=Section.INPUTS, type=click.IntRange(1), help="Height of raw files."),
    Option(
        ["-p", "--pixel_format"],
        section=Section.INPUTS,
        type=Choice(["420", "422", "444", "400"]),
        help="Pixel format of raw files.",
    ),
    Option(
        ["-b", "--bitdepth"],
        section=Section.INPUTS,
        type=Choice([str(bits) for bits in BIT_DEPTHS]),
        help="Depth of raw files; over 8 two bytes, little-endian.",
    ),
    Option(
        ["--allow-partial"],
        section=Section.INPUTS,
        is_flag=True,
        help="Score the complete frames of a raw file that ends within a frame; else it is refused.",
    ),
)
selection_options = option_group(
    "selection",
    _selection,
    Option(
        ["--subsample", "--every", "subsample"],
        section=Section.FRAMES,
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Score every N-th frame only.",
    ),
    Option(["--frame_cnt"], section=Section.FRAMES, type=click.IntRange(1), help="Compare that many frames at most."),
    Option(
        ["--frame_skip_ref"], section=Section.FRAMES, type=click.IntRange(0), default=0, help="Skip frames of the reference."
    ),
    Option(
        ["--frame_skip_dist"],
        section=Section.FRAMES,
        type=click.IntRange(0),
        default=0,
        help="Skip frames of the distorted clip.",
    ),
    Option(
        ["--offset"],
        section=Section.FRAMES,
        type=int,
        default=0,
        show_default=True,
        help="Compare frame i of the reference with i+N of the distorted.",
    ),
    Option(
        ["--start"],
        section=Section.FRAMES,
        metavar="FRAME|TIME",
        help="First frame of the reference: 250, 12.5s or 00:01:02.5.",
    ),
    Option(["--end"], section=Section.FRAMES, metavar="FRAME|TIME", help="The frame of the reference to stop before."),
    Option(
        ["--stream-reference"],
        section=Section.INPUTS,
        type=click.IntRange(0),
        metavar="N",
        help="Stream of the reference's container, counted as ffprobe does; else the default video stream.",
    ),
    Option(
        ["--stream-distorted"],
        section=Section.INPUTS,
        type=click.IntRange(0),
        metavar="N",
        help="Stream of the distorted container.",
    ),
)
picture_options = option_group(
    "pictures",
    _pictures,
    Option(
        ["--crop"],
        section=Section.PICTURES,
        metavar="WxH+X+Y|auto",
        help="Crop both clips; auto takes off black bars of the reference.",
    ),
    Option(
        ["--crop-reference"],
        section=Section.PICTURES,
        metavar="WxH+X+Y|auto",
        help="Crop the reference alone, before scaling; auto: its black bars.",
    ),
    Option(
        ["--crop-distorted"],
        section=Section.PICTURES,
        metavar="WxH+X+Y|auto",
        help="Crop the distorted clip alone, before scaling.",
    ),
    Option(
        ["--scale"],
        section=Section.PICTURES,
        metavar="reference|distorted|WxH",
        help="Bring both clips to that size, and to one depth.",
    ),
    Option(
        ["--resampler"],
        section=Section.PICTURES,
        metavar="NAME",
        default="bicubic",
        show_default=True,
        help="bicubic, lanczos, bilinear, area, spline, gauss, sinc or point.",
    ),
    Option(
        ["--deepen"],
        section=Section.PICTURES,
        is_flag=True,
        help="Bring the clip of less depth to that of the other, exactly; --scale does so as well.",
    ),
)
sync_option = option(
    "--sync",
    section=Section.FRAMES,
    type=Choice(["index", "pts"]),
    default="index",
    show_default=True,
    help="Pair frames by number, or by the time they are shown.",
)
pooling_option = option(
    "--pooling",
    section=Section.METRICS,
    default="mean",
    show_default=True,
    metavar="NAME",
    help="Use that pooled value of each clip: mean, harmonic_mean, min, p5 and so on.",
)

force_option = option(
    "--force",
    section=Section.VERDICT,
    is_flag=True,
    help="Compare also what was not scored alike: other features, planes, pictures.",
)
urls_option = option(
    "--urls",
    section=Section.INPUTS,
    is_flag=True,
    help="Connect also to the URLs (s3://, gs://, https://, file://) that the given files name.",
)
backend_options = option_group(
    "where",
    dict,
    Option(
        ["--backend"],
        section=Section.DEVICE,
        type=Choice(["vulkan", "cpu"]),
        default="vulkan",
        show_default=True,
        help="cpu is NumPy: slow, exact.",
    ),
    Option(
        ["--device"],
        section=Section.DEVICE,
        metavar="INDEX|NAME|UUID|all",
        help="Vulkan device, several with commas between them, or all GPUs; else VKSSIM_DEVICE, else the first real GPU.",
        shell_complete=choices.devices,
    ),
)


def _engine(engine: str, address: str | None, software: bool) -> dict[str, Any]:
    return {"engine": engine, "address": address, "software": software}


engine_options = option_group(
    "engine",
    _engine,
    Option(
        ["--engine"],
        section=Section.DEVICE,
        type=Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="Score on this machine, or on the GPUs of a Ray cluster.",
    ),
    Option(
        ["--address"],
        section=Section.DEVICE,
        metavar="ADDRESS",
        help="The cluster: auto, or HOST:6379; else that of RAY_ADDRESS, the one that runs here, or a new one.",
    ),
    Option(
        ["--software"],
        section=Section.DEVICE,
        is_flag=True,
        help="With ray, nodes without a GPU score as well, on Mesa's lavapipe.",
    ),
)
planes_option = option(
    "--planes",
    section=Section.METRICS,
    type=Choice(["y", "yuv", "all"]),
    default="y",
    show_default=True,
    help="Score the luma; or Y, Cb and Cr, as NAME_y, NAME_cb, NAME_cr; or these and NAME_all, their mean by area.",
)
feature_option = option(
    "--feature",
    "features",
    section=Section.METRICS,
    multiple=True,
    metavar="NAME[=K=V:K=V]",
    shell_complete=choices.features,
    default=("float_ms_ssim", "float_ssim"),
    help="Metric with options; may be repeated. Default: float_ms_ssim and float_ssim. `vkssim features` lists them.",
)
