"""The encoder of a search: its name, its options, and the values that its parameter may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .defaults import ENCODER, STEP
from .encoders import Parameter, encoder_of
from .options import check_types, listed
from .recipe import Recipe, make_recipe, split_options
from .source import SourceFacts


@dataclass(frozen=True)
class EncoderSpec:
    """An encoder, its options, and the parameter whose value is searched.

    Parameters
    ----------
    name : str
        FFmpeg's name: libx264, libx265, libsvtav1, libvpx-vp9, h264_nvenc, hevc_nvenc or av1_nvenc.
    options : str or sequence of str
        Options of the encoder, ``"preset=6:film-grain=8"``.
    parameter : str, optional
        The parameter to search: ``"crf"``, ``"qp"``, for NVENC ``"cq"``, or ``"bitrate"`` in kbit/s. The default is the first
        that the encoder has.
    least, most : float, optional
        The least and the largest value of the parameter.
    step : float
        The distance of two values; bit rates are 3 % apart.
    bits : int, optional
        The depth of the encode. The default is the depth of the source.
    two_pass : bool
        Encode in two passes, which needs `parameter` ``"bitrate"``, and libx264 or libx265.

    Raises
    ------
    OptionError
        The encoder is unknown, or a value is not possible for it.

    """

    name: str = ENCODER
    options: Sequence[str] | str = ()
    parameter: str | None = None
    least: float | None = None
    most: float | None = None
    step: float = STEP
    bits: int | None = None
    two_pass: bool = False

    def __post_init__(self) -> None:
        check_types(EncoderSpec, vars(self))
        values_of(self)
        split_options(listed(self.options))


def values_of(spec: EncoderSpec) -> Parameter:
    """Return the parameter of an encoder with the values that are searched. Raises OptionError."""
    return encoder_of(spec.name).parameter(spec.parameter, spec.step, spec.least, spec.most)


def recipe_of(spec: EncoderSpec, facts: SourceFacts, size: tuple[int, int] | None = None) -> Recipe:
    """Return the recipe for a clip, or for its rendition of a width and a height.

    Raises OptionError for anything that the encoder refuses.
    """
    options = split_options(listed(spec.options))
    return make_recipe(
        encoder_of(spec.name), values_of(spec), facts, options, bits=spec.bits, two_passes=spec.two_pass, size=size
    )


def as_spec(encoder: EncoderSpec | str) -> EncoderSpec:
    """Return a specification as it is, and the default one for an encoder's name. Raises OptionError."""
    return encoder if isinstance(encoder, EncoderSpec) else EncoderSpec(encoder)
