"""The options of clips: the description of raw files, the selection of frames, and the changes of pictures.

Each option is declared once here, with its default, its limits, its flag and its help. `open`, `pairing.schedule` and
`pairing.preprocessing` use them. This module does not load NumPy, because the help of every command comes from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from ..errors import OptionError
from ..utils.choices import BIT_DEPTHS, FILM_GRAIN, RESAMPLERS
from ..utils.limits import MAX_DIGITS, abbreviated, whole_number
from ..utils.values import ComparisonRule, Section, check_options, value
from ..utils.wording import either

_SIZE = re.compile(r"(\d{1,6})x(\d{1,6})")
_option = partial(value, default=None, differs=ComparisonRule.FREE)
_input_option = partial(_option, section=Section.INPUTS)
_picture_option = partial(_option, section=Section.PICTURES)
_frame_option = partial(_option, section=Section.FRAMES, differs=ComparisonRule.WARNED)

_DIGITS = rf"\d{{1,{MAX_DIGITS}}}"
_SECONDS = re.compile(rf"({_DIGITS}(?:\.{_DIGITS})?)s")
_CLOCK = re.compile(rf"(?:({_DIGITS}):)?({_DIGITS}):({_DIGITS}(?:\.{_DIGITS})?)")


def parse_position(name: str, position: int | str) -> int | Fraction:
    """Return the number of a frame, or the seconds since the first frame, of the option `name`. Raises OptionError."""
    text = str(position)
    number = whole_number(text)
    if number is not None:
        return number
    if match := _SECONDS.fullmatch(text):
        return Fraction(match[1])
    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds = match.groups()
        return (int(hours or 0) * 60 + int(minutes)) * 60 + Fraction(seconds)
    raise OptionError(
        f"`{name}` is {abbreviated(text)}; it must be the number of a frame, or a time such as 12.5s or 00:01:02.5"
    )


def _parse_crop(_name: str, text: str) -> None:
    from .transforms import Crop

    if text != "auto":
        Crop.parse(str(text))


def _parse_scale(name: str, text: str) -> None:
    if text not in ("reference", "distorted") and not _SIZE.fullmatch(str(text)):
        raise OptionError(f"`{name}` is {abbreviated(text)}; it must be reference, distorted or WxH, such as 1920x1080")


def _parse_size(name: str, text: str) -> None:
    match = _SIZE.fullmatch(str(text))
    if match is None or not all(map(int, match.groups())):
        raise OptionError(f"`{name}` is {abbreviated(text)}; it must be WxH, such as 1280x720")


_crop_option = partial(_picture_option, metavar="WxH+X+Y|auto", parse=_parse_crop, rank=-1)
_turn_option = partial(_picture_option, default=0, choices=(0, 90, 180, 270))
_resampler_option = partial(
    _picture_option,
    "resampler",
    "--resampler",
    default=RESAMPLERS[0],
    metavar="NAME",
    shows_default=True,
    help=f"Scale with {either(RESAMPLERS)}.",
    choices=RESAMPLERS,
)
_skip_option = partial(_frame_option, default=0, minimum=0)
_stream_option = partial(_input_option, metavar="N", minimum=0)


@dataclass(frozen=True)
class RawDescription:
    """The description of raw files, which have no header. A value that is not given is None.

    The values are checked together, once a file turns out to be raw.

    Parameters
    ----------
    width, height : int, optional
        Size of the luma in samples, 1 to 32768 each.
    pixel_format : str, optional
        How chroma is subsampled: ``"420"``, ``"422"``, ``"444"`` or ``"400"``, which is luma alone; from Python also ``"410"``,
        ``"411"``, ``"440"`` and ``"444alpha"``.
    bits : {8, 9, 10, 12, 14, 16}, optional
        Depth of the samples in bits. Samples of more than 8 bits take two bytes, little-endian.
    allow_partial : bool
        Score the complete frames of a file that ends within a frame; the error at the end of the run names the cut frame.
        Without it such a file is refused, because its description is most likely wrong.

    """

    width: int | None = _input_option("width", "-w", "--width", minimum=1, help="Width of raw files.")
    height: int | None = _input_option("height", "-h", "--height", minimum=1, help="Height of raw files.")
    pixel_format: str | None = _input_option(
        "pixel format", "-p", "--pixel_format", choices=("420", "422", "444", "400"), help="Pixel format of raw files."
    )
    bits: int | None = _input_option(
        "depth",
        "-b",
        "--bitdepth",
        choices=BIT_DEPTHS,
        help="Depth of raw files. Samples of more than 8 bits take two bytes, little-endian.",
    )
    allow_partial: bool = _input_option(
        "partial last frame",
        "--allow-partial",
        default=False,
        help="Score the complete frames of a raw file that ends within a frame; else it is refused.",
    )

    @property
    def is_empty(self) -> bool:
        """Return whether no value is given."""
        return all(value is None for value in (self.width, self.height, self.pixel_format, self.bits))


@dataclass(frozen=True)
class PictureOptions:
    """The changes of pictures before they are compared; none by default.

    Parameters
    ----------
    crop : str, optional
        Crop both clips at the end: ``"WxH+X+Y"`` in samples of the scaled pictures, or ``"auto"``, which removes the black
        bars of the reference.
    scale : str, optional
        Scale both clips to one size: ``"reference"``, ``"distorted"``, or ``"WxH"`` in samples. Both get the larger of their
        depths.
    resampler : str
        The method of libswscale: one of ``"bicubic"``, ``"lanczos"``, ``"bilinear"``, ``"area"``, ``"spline"``, ``"gauss"``,
        ``"sinc"`` and ``"point"``.
    crop_reference, crop_distorted : str, optional
        Crop one clip alone, before all other changes except turning: ``"WxH+X+Y"`` in its own samples, or ``"auto"``, which
        removes its black bars.
    deepen : bool
        Bring the clip of less depth to the depth of the other. `scale` does so too.
    min_bits : {10, 12, 14, 16}, optional
        Bring both clips to the larger of their depths, and to this depth at least. VMAF's models of version 1 are best at 10.
    turn_reference, turn_distorted : {0, 90, 180, 270}
        Turn one clip clockwise by that many degrees, before all other changes, in addition to the rotation that it states.
    film_grain : {"on", "off"}
        With ``"off"``, AV1 is decoded without the film grain that its decoder synthesises, on the CPU.

    Raises
    ------
    OptionError
        An option has an impossible value.

    """

    crop: str | None = _crop_option("crop", "--crop", help="Crop both clips; auto removes the black bars of the reference.")
    scale: str | None = _picture_option(
        "scale",
        "--scale",
        metavar="reference|distorted|WxH",
        help="Scale both clips to that size, and bring them to one depth.",
        across=ComparisonRule.REFUSED,
        optional=True,
        parse=_parse_scale,
    )
    resampler: str = _resampler_option()
    crop_reference: str | None = _crop_option(
        "reference crop", "--crop-reference", help="Crop the reference alone, before scaling; auto: its black bars."
    )
    crop_distorted: str | None = _crop_option(
        "distorted crop", "--crop-distorted", help="Crop the distorted clip alone, before scaling."
    )
    deepen: bool = _picture_option(
        "deepen",
        "--deepen",
        default=False,
        help="Bring the clip of less depth to the depth of the other; --scale does so too.",
    )
    min_bits: int | None = _picture_option(
        "smallest depth",
        "--bits",
        choices=(10, 12, 14, 16),
        help="Score at this depth at least; VMAF's models of version 1 are best at 10.",
    )
    turn_reference: int = _turn_option(
        "reference turned by", "--turn-reference", help="Turn the reference clockwise by that many degrees, before cropping."
    )
    turn_distorted: int = _turn_option(
        "distorted clip turned by", "--turn-distorted", help="Turn the distorted clip clockwise, for a rotation that was lost."
    )
    film_grain: str = _picture_option(
        "film grain",
        "--film-grain",
        default=FILM_GRAIN[0],
        choices=FILM_GRAIN,
        shows_default=True,
        help="Decode AV1 with the film grain that its decoder synthesises, or without.",
        differs=ComparisonRule.WARNED,
    )

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def adds_grain(self) -> bool:
        """Return whether decoders add the film grain that a stream describes."""
        return self.film_grain == FILM_GRAIN[0]


@dataclass(frozen=True)
class SourcePictures:
    """The changes of a clip's pictures before they are encoded, in this order; none by default.

    Parameters
    ----------
    deinterlace : bool
        Make progressive pictures with FFmpeg's bwdif, one for each frame: the frame rate and the times stay.
    crop : str, optional
        Crop to ``"WxH+X+Y"`` in samples of the clip as it is shown, or ``"auto"``, which removes its black bars.
    scale : str, optional
        Scale to ``"WxH"`` in samples. The displayed shape stays, by the shape of the samples if need be.
    resampler : str
        The method of libswscale, as in `PictureOptions`.

    Raises
    ------
    OptionError
        An option has an impossible value.

    """

    deinterlace: bool = _picture_option(
        "deinterlace",
        "--deinterlace",
        default=False,
        help="Deinterlace the clip with FFmpeg's bwdif, one picture for each frame.",
    )
    crop: str | None = _crop_option("crop", "--crop", help="Crop the clip before it is scaled; auto removes its black bars.")
    scale: str | None = _picture_option(
        "scale",
        "--scale",
        metavar="WxH",
        help="Scale the clip to that size; its displayed shape stays.",
        parse=_parse_size,
    )
    resampler: str = _resampler_option()

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def size(self) -> tuple[int, int] | None:
        """Return the width and the height of `scale`."""
        match = _SIZE.fullmatch(self.scale or "")
        return None if match is None else (int(match[1]), int(match[2]))


@dataclass(frozen=True)
class Selection:
    """The frames to compare.

    With an `offset` of N, frame i+N of the distorted clip is compared with frame i of the reference.

    Parameters
    ----------
    skip_reference, skip_distorted : int
        The number of frames to skip at the start of each clip, 0 or more.
    count : int, optional
        The most pairs to compare, 1 or more, before `subsample` leaves some of them out.
    subsample : int
        Compare only every N-th pair, 1 or more.
    offset : int
        The number of frames by which the distorted clip lags the reference; may be negative.
    start, end : int or str, optional
        The first frame of the reference to compare, and the frame to stop before: the number of a frame, or a time since the
        first frame as ``"12.5s"`` or ``"00:01:02.5"``.
    stream_reference, stream_distorted : int, optional
        The streams of containers, by their index in the file as ffprobe shows it. The default is the first video stream with
        the default mark, otherwise the first one that is not a cover picture.

    Raises
    ------
    InputError
        A number is too small or too large.
    OptionError
        `start` or `end` is neither a number nor a time, or a number is not whole.

    """

    skip_reference: int = _skip_option(
        "frames skipped of the reference", "--frame_skip_ref", help="Skip frames of the reference."
    )
    skip_distorted: int = _skip_option(
        "frames skipped of the distorted clip", "--frame_skip_dist", help="Skip frames of the distorted clip."
    )
    count: int | None = _frame_option(
        "most frames", "--frame_cnt", minimum=1, help="Compare that many frames at most.", rank=-1
    )
    subsample: int = _frame_option(
        "subsample",
        "--subsample",
        "--every",
        default=1,
        minimum=1,
        shows_default=True,
        help="Score every N-th frame only.",
        rank=-2,
    )
    offset: int = _frame_option(
        "offset", "--offset", default=0, shows_default=True, help="Compare frame i of the reference with i+N of the distorted."
    )
    start: int | str | None = _frame_option(
        "start",
        "--start",
        metavar="FRAME|TIME",
        help="Start at that frame of the reference: 250, 12.5s or 00:01:02.5.",
        parse=parse_position,
    )
    end: int | str | None = _frame_option(
        "end", "--end", metavar="FRAME|TIME", help="Stop before that frame of the reference.", parse=parse_position
    )
    stream_reference: int | None = _stream_option(
        "stream of the reference",
        "--stream-reference",
        help="Read that stream of the reference's container, counted as ffprobe does. Default: its default video stream.",
    )
    stream_distorted: int | None = _stream_option(
        "stream of the distorted clip", "--stream-distorted", help="Read that stream of the distorted container."
    )

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def takes_all(self) -> bool:
        """Return whether the clips are compared until one of them ends."""
        return self.count is None and self.start is None and self.end is None

    @property
    def streams(self) -> tuple[int | None, int | None]:
        """Return the streams of the reference and of the distorted clip; None for an automatic choice."""
        return self.stream_reference, self.stream_distorted

    @property
    def first_reference(self) -> int:
        """Return the number of the reference's frame in the first pair."""
        return self.skip_reference + max(0, -self.offset)

    @property
    def first_distorted(self) -> int:
        """Return the number of the distorted clip's frame in the first pair."""
        return self.skip_distorted + max(0, self.offset)
