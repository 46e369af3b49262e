"""Open a pair of clips, and make them comparable: colour, orientation, crop, scale and depth."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from fractions import Fraction
from functools import partial

from ...errors import InputError
from ...types import FrameFormat
from ..decode.hardware import HardwareDecoder
from ..info import VideoInfo
from ..open import can_reopen, open_both, open_file, oriented
from ..options import PictureOptions, RawDescription
from ..pixels import RGB_DEFAULT, UNLIKE_SDR, WEIGHTS, Colour
from ..raw import RAW
from ..source import FrameSource, ProcessedSource
from ..transforms import Crop, Scale, ToBitDepth, requested_turn, unlike, without_bars

_SAMPLED_FRAMES = 12
"""The frames in which black bars are looked for."""


def open_pair(
    paths: tuple[str, str],
    raw: RawDescription,
    pictures: PictureOptions,
    chroma: bool = False,
    streams: tuple[int | None, int | None] = (None, None),
    hardware: HardwareDecoder | None = None,
) -> tuple[FrameSource, FrameSource]:
    """Open both clips: turned as they state, with R'G'B' converted, then turned, cropped and scaled as `pictures` says.

    `paths` are the reference and the distorted clip. `streams` are the streams of containers, as in `Selection`. R'G'B' becomes
    Y'CbCr of the matrix and range that the other clip states, otherwise of `RGB_DEFAULT`. Containers are decoded by `hardware`
    if possible. Raises InputError as `open_file` does, and if `raw` contradicts a clip, a crop does not fit, or `chroma` lacks.
    """
    reference, distorted = paths
    for path, clip, name, text in (
        (reference, "reference", "crop", pictures.crop),
        (reference, "reference", "crop_reference", pictures.crop_reference),
        (distorted, "distorted clip", "crop_distorted", pictures.crop_distorted),
    ):
        if text == "auto" and not can_reopen(path):
            raise InputError(f"`{name}=auto` reads the {clip} twice, and {path} can be read only once; give WxH+X+Y")
    with ExitStack() as stack:
        clips = zip(paths, streams, strict=True)
        openings = [partial(open_file, path, raw, stream, hardware, adds_grain=pictures.adds_grain) for path, stream in clips]
        sources = match_pair(*open_both(stack, openings, hardware), raw, pictures, chroma)
        stack.pop_all()
    return sources


def match_pair(
    reference: FrameSource, distorted: FrameSource, raw: RawDescription, pictures: PictureOptions, chroma: bool = False
) -> tuple[FrameSource, FrameSource]:
    """Return two open files as `open_pair` does. Closing the returned sources closes the files."""
    if RAW not in (reference.info.kind, distorted.info.kind):  # otherwise the description is meant for the raw one
        for source in (reference, distorted):
            check_description(raw, source.info)
    _agree_on_colour(reference, distorted)
    rgb = reference.is_rgb or distorted.is_rgb
    turns = pictures.turn_reference, pictures.turn_distorted
    open_again = partial(_open_again, raw=raw, adds_grain=pictures.adds_grain)
    first, second = (_turned(oriented(source), turn) for source, turn in zip((reference, distorted), turns, strict=True))
    crops = (
        own_crop(pictures.crop_reference, partial(open_again, first, turn=turns[0])),
        own_crop(pictures.crop_distorted, partial(open_again, second, turn=turns[1])),
    )
    first, second = (_cropped(source, crop, chroma) for source, crop in zip((first, second), crops, strict=True))
    if pictures.scale is not None:
        for source, crop in zip((first, second), crops, strict=True):
            if crop is None:  # it is in samples of the first frame
                source.allow_any_size()
    size, aspect = _common_size(pictures.scale, first.info, second.info)
    bits = None
    if rgb or pictures.scale is not None or pictures.deepen or pictures.min_bits is not None:
        bits = max(first.info.bits, second.info.bits, pictures.min_bits or 0)

    def alike(source: FrameSource) -> FrameSource:
        info = source.info
        if size is not None and (source.any_size or size != (info.width, info.height)):
            source = ProcessedSource(source, Scale(*size, pictures.resampler, info.bits, info.chroma, aspect))
        if bits is None or bits == info.bits:
            return source
        return ProcessedSource(source, ToBitDepth(info.bits, bits, is_full_range=info.range == "full"))

    sources = alike(first), alike(second)
    if chroma:
        for source in sources:
            if source.info.chroma == "400":
                raise InputError(f"{source.info.path} has no chroma to compare, only luma; compare luma alone")
    crop = Crop.parse(pictures.crop) if pictures.crop not in (None, "auto") else None
    if pictures.crop == "auto":
        with alike(_cropped(open_again(reference, turn=turns[0]), crops[0], chroma)) as probe:
            crop = without_bars(probe.sample(_SAMPLED_FRAMES), probe.info)
    return _cropped(sources[0], crop, chroma), _cropped(sources[1], crop, chroma)


def check_description(raw: RawDescription, info: VideoInfo) -> None:
    """Raise InputError if the description of raw files contradicts the header of a file."""
    for name in ("width", "height", "bits"):
        given, own = getattr(raw, name), getattr(info, name)
        if given not in (None, own):
            raise InputError(
                f"{info.path} is {info.kind} and states a `{name}` of {own}; `{name}={given}` contradicts it. Leave it out"
            )


def colour_warnings(reference: VideoInfo, distorted: VideoInfo) -> list[str]:
    """Return the warnings on clips whose samples differ in meaning. The luma of grey is the same by every matrix."""
    any_grey = reference.is_grey or distorted.is_grey
    default = " (grey that states none counts as full)" if any_grey else ""
    matrices = (None, None) if any_grey else (reference.matrix, distorted.matrix)
    properties = (
        ("range", reference.range, distorted.range, ("full",), f"the same grey has different samples{default}"),
        ("matrix", *matrices, (), "the same colour has a different luma"),
        ("transfer", reference.transfer, distorted.transfer, UNLIKE_SDR, "the same light has different samples"),
        ("field order", reference.field_order, distorted.field_order, (), "lines of different times are compared"),
    )
    return [
        f"{reference.path} states {first or 'no'} {name}, {distorted.path} {second or 'none'}: {effect}; the samples are scored"
        " as they are. Convert one of the clips, or correct its metadata"
        for name, first, second, unusual, effect in properties
        if _differ(name, first, second, unusual)
    ]


def _differ(name: str, first: str | None, second: str | None, unusual: Collection[str]) -> bool:
    """Return whether two values of a property mean different samples. An unstated value only differs from an `unusual` one."""
    if first == second:
        return False
    if name == "transfer":  # usual transfers are so similar that clips of one master may state different ones
        return first in unusual or second in unusual
    if first is None or second is None:
        return (first or second) in unusual
    return not (name == "field order" and "interlaced" in (first, second) and "progressive" not in (first, second))


def _agree_on_colour(first: FrameSource, second: FrameSource) -> None:
    for source, partner in ((first, second), (second, first)):
        if source.is_rgb and not partner.is_rgb:
            info = partner.info
            matrix = info.matrix if info.matrix in WEIGHTS else RGB_DEFAULT.matrix  # `colour_warnings` warns of other matrices
            source.convert_to(Colour(matrix, info.range or RGB_DEFAULT.range))


def own_crop(text: str | None, open_probe: Callable[[], FrameSource]) -> Crop | None:
    """Return the rectangle that a clip alone is cropped to. For ``"auto"``, `open_probe` opens the clip to look at it."""
    if text != "auto":
        return None if text is None else Crop.parse(text, own=True)
    with open_probe() as probe:
        return without_bars(probe.sample(_SAMPLED_FRAMES), probe.info, own=True)


def _open_again(source: FrameSource, *, raw: RawDescription, adds_grain: bool, turn: int) -> FrameSource:
    return _turned(oriented(open_file(source.info.path, raw, source.stream, adds_grain=adds_grain)), turn)


def _turned(source: FrameSource, clockwise: int) -> FrameSource:
    turn = requested_turn(clockwise)
    return source if turn is None else ProcessedSource(source, turn)


def _cropped(source: FrameSource, crop: Crop | None, chroma: bool) -> FrameSource:
    """Return the source cropped. Raises InputError if its chroma is needed and does not allow that rectangle."""
    if crop is None:
        return source
    if chroma:
        crop.check_aligned(source.info)
    return ProcessedSource(source, crop)


def _common_size(
    scale: str | None, reference: VideoInfo, distorted: VideoInfo
) -> tuple[tuple[int, int] | None, Fraction | None]:
    """Return the size to which both clips are scaled, and the shape of its samples; None if they keep their size."""
    if scale is None:
        return None, None
    if scale in ("reference", "distorted"):
        info = reference if scale == "reference" else distorted
        return (info.width, info.height), info.sample_aspect
    width, height = map(int, scale.split("x"))
    return (width, height), None


def common_format(reference: FrameSource, distorted: FrameSource, *, chroma: bool = False) -> FrameFormat:
    """Return the format of the luma of both sources. Raises InputError if the formats differ, also those of needed `chroma`."""
    first, second = reference.info, distorted.info
    if (first.width, first.height, first.bits) != (second.width, second.height, second.bits):
        raise InputError(unlike(first, second))
    if chroma and first.chroma != second.chroma:
        raise InputError(
            f"{first.path} is {first.chroma}, {second.path} {second.chroma}: their chroma differs in size. Score the luma alone"
            " (`planes=y`), or convert one of them"
        )
    return FrameFormat.of_bits(first.width, first.height, first.bits)
