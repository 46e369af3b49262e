"""Write the settings of shots as zones: the file that Av1an reads, and the list that x264 takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import OptionError
from ..utils.sanitize import shell_line
from .command_line import encode_name, operand
from .recipe import Recipe

if TYPE_CHECKING:
    from .shots import Shot


@dataclass(frozen=True)
class _Program:
    """The program of an encoder, as Av1an calls it.

    `quality` is its option for a CRF, `more` what it needs besides, `renamed` has its names of FFmpeg's options, `switches` are
    options without a value, and `joined` is whether an equals sign stands between name and value.
    """

    name: str
    quality: str = "crf"
    more: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    switches: tuple[str, ...] = ()
    joined: bool = False


_X26 = {"g": "keyint", "keyint_min": "min-keyint", "bf": "bframes", "refs": "ref", "sc_threshold": "scenecut", "subq": "subme"}
_PROGRAMS = {
    "libx264": _Program(
        "x264",
        renamed={**_X26, "motion-est": "me", "direct-pred": "direct", "me_range": "merange", "qmin": "qpmin", "qmax": "qpmax"},
        switches=("8x8dct", "cabac", "fast-pskip", "intra-refresh", "mbtree", "mixed-refs", "open-gop", "psy", "weightb"),
    ),
    "libx265": _Program(
        "x265",
        renamed={**_X26, "me_range": "merange"},
        switches=("amp", "b-intra", "cutree", "open-gop", "rect", "sao", "strong-intra-smoothing", "weightb"),
    ),
    "libsvtav1": _Program("svt-av1", renamed={"g": "keyint"}),
    "libvpx-vp9": _Program(
        "vpx",
        quality="cq-level",
        more={"end-usage": "q", "passes": "1"},
        renamed={"g": "kf-max-dist", "keyint_min": "kf-min-dist", "speed": "cpu-used"},
        switches=("best", "good", "rt"),
        joined=True,
    ),
}
"""The programs of the encoders that Av1an knows."""

_NO_NAMES = ("flags", "maxrate", "minrate", "bufsize")
"""Options of FFmpeg whose value means something else to the encoders' programs, or which they lack."""

_OFF = ("0", "false", "no")


def av1an_zones(shots: Sequence[Shot], recipe: Recipe) -> str:
    """Return a line for each shot, with every option of its encode and with `reset`, so that Av1an adds none of its own.

    Raises OptionError for an encoder or an option that cannot be said there.
    """
    program = _PROGRAMS.get(recipe.encoder.name)
    if program is None or recipe.parameter.name != "crf":
        raise OptionError(
            f"Av1an has no zones for {recipe.parameter.name} of {recipe.encoder.name}; it has them for crf of"
            f" {', '.join(_PROGRAMS)}"
        )
    words = _words(program, recipe)
    return "".join(
        f"{shot.first} {shot.first + shot.count} {program.name} reset"
        f" {' '.join([_word(program, program.quality, f'{shot.setting:g}'), *words])}\n"
        for shot in shots
    )


def av1an_command(path: str, zones: str, recipe: Recipe) -> str:
    """Return Av1an's command line for a file of zones, for a POSIX shell. Its default would be 10 bits."""
    encoder, name = _PROGRAMS[recipe.encoder.name].name, encode_name(path, recipe, None)
    words = ["-i", operand(path), "-e", encoder, "--zones", operand(zones), "--pix-format", recipe.format, "-o", name]
    return shell_line(["av1an", *words])


def x264_zones(shots: Sequence[Shot]) -> str:
    """Return the list that x264 takes as ``--zones``: the last frame of a zone belongs to it."""
    return "/".join(f"{shot.first},{shot.first + shot.count - 1},crf={shot.setting:g}" for shot in shots)


def _words(program: _Program, recipe: Recipe) -> list[str]:
    """Return the options of all shots. Switches are last: Av1an would take the name after one for its value."""
    given = {**recipe.encoder.fixed, **recipe.options, **recipe.own_options()}
    if refused := [name for name in given if name in _NO_NAMES]:
        raise OptionError(
            f"`options` {refused[0]}: Av1an gives options to {program.name} itself, which lacks it; use a name of"
            f" {program.name}, such as vbv-maxrate, or write .json"
        )
    if program.joined and (deadline := given.pop("deadline", given.pop("quality", None))) is not None:
        given[{"realtime": "rt"}.get(deadline, deadline)] = "1"
    if recipe.bits > 8 and program.name in ("x264", "x265"):
        given["output-depth"] = str(recipe.bits)
    options, switches = [], []
    for name, value in {**program.more, **given}.items():
        own = program.renamed.get(name, name)
        if own in program.switches:
            switches.append(f"--no-{own}" if value in _OFF else f"--{own}")
        else:
            options.append(_word(program, own, value))
    return [*options, *switches]


def _word(program: _Program, name: str, value: str) -> str:
    # Av1an itself reads the number of passes
    return f"--{name}{'=' if program.joined and name != 'passes' else ' '}{value}"
