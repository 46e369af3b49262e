"""Compare the shapes of pictures: their width divided by their height, as they are displayed."""

from __future__ import annotations

from fractions import Fraction

from ..info import VideoInfo

_ROUNDING = 2  # samples: encoders want even sides


def shape(info: VideoInfo) -> float:
    """Return the width of the pictures as they are shown, divided by their height."""
    return float(Fraction(info.width, info.height) * (info.sample_aspect or 1))


def is_scaled(first: VideoInfo, second: VideoInfo) -> bool:
    """Return True where the pictures of one clip can be those of the other in another size, whose sides may be rounded.

    Samples that are not square are understood (576 lines of 720 samples for 1024x576); so are clips that do not say so.
    """
    sizes = [(Fraction(info.width), Fraction(info.height)) for info in (first, second)]
    displayed = [(info.width * (info.sample_aspect or 1), Fraction(info.height)) for info in (first, second)]
    return any(_is_proportional(*pair) for pair in (sizes, displayed))


def _is_proportional(first: tuple[Fraction, Fraction], second: tuple[Fraction, Fraction]) -> bool:
    small, large = sorted((first, second))
    if small[0] == large[0] or small[1] == large[1]:  # one side is the same: the other one was cropped, not rounded
        return small == large
    across, down = large[0] / small[0], large[1] / small[1]
    return abs(small[1] - large[1] / across) <= _ROUNDING or abs(small[0] - large[0] / down) <= _ROUNDING


def unlike(first: VideoInfo, second: VideoInfo) -> str:
    """Return the sentence on two clips, reference first, whose size or depth differs: what they are, and what helps."""
    are = ", ".join(f"{info.path} is {info.width}x{info.height} with {info.bits} bits" for info in (first, second))
    if (first.width, first.height) == (second.width, second.height):
        return f"{are}; they must be alike. `deepen` brings the one of less depth to that of the other, exactly"
    if is_scaled(first, second):
        depth = "" if first.bits == second.bits else ", and the one of less depth to that of the other"
        return f"{are}; they must be alike. `scale=reference` brings both to the size of the reference{depth}"
    depth = "" if first.bits == second.bits else ". `deepen` makes their depth alike"
    return (
        f"{are}; they must be alike, and their shapes differ ({shape(first):.3g}:1 and {shape(second):.3g}:1), as where one was"
        f" cropped. {_crop_cure(first, second)}{depth}"
    )


def _crop_cure(first: VideoInfo, second: VideoInfo) -> str:
    """Return how to crop the clip that shows more: where one side was kept it is known which, and what its middle is."""
    for name, large, small in (("crop_reference", first, second), ("crop_distorted", second, first)):
        across, down = large.width - small.width, large.height - small.height
        if min(across, down) == 0 < max(across, down):
            middle = f"{small.width}x{small.height}+{across // 4 * 2}+{down // 4 * 2}"
            return f"`{name}=auto` takes black bars off {large.path}, `{name}={middle}` takes the middle of its pictures"
    return (
        "Crop the one that shows more: `crop_reference` or `crop_distorted` with auto, which takes black bars off, or with"
        " WxH+X+Y"
    )


def stretched(before: VideoInfo, after: VideoInfo) -> str | None:
    """Return the sentence on a clip that scaling gave another shape; None where it kept its shape."""
    if is_scaled(before, after):
        return None
    return (
        f"{before.path} was stretched from {before.width}x{before.height} to {after.width}x{after.height}: its shape changed"
        f" from {shape(before):.3g}:1 to {shape(after):.3g}:1. Where one of the clips was cropped, crop the other one"
        " (--crop-reference, --crop-distorted) in place of scaling"
    )
