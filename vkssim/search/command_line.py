"""Write command lines of FFmpeg and Av1an that encode with the result of a search, for machines without vkssim."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import OptionError
from ..storage.containers import local_name
from ..storage.inputs import sequence
from ..storage.location import is_url
from ..utils.limits import file_name
from ..utils.sanitize import needs_bash, shell_line
from .defaults import RESAMPLER
from .recipe import Recipe
from .trial import Shot

_FULL = 2  # FFmpeg's number of the full range
_OF_PICTURES = re.compile(r"%\d*d|[*?\[\]]")  # the placeholders in the name of a sequence
_NOT_OF_NAMES = re.compile(r"[^\w.,+]+")
_MAX_OPTION_LENGTH = 100  # characters of them in a name
_SCRIPT = """\
#!{interpreter}
set -e
for file in {files}; do
    if [ -e "$file" ]; then
        printf '%s exists; move it away, and run this script again\\n' "$file" >&2
        exit 1
    fi
done
{commands}
"""

_TEXTS = frozenset(("ass", "eia_608", "mov_text", "ssa", "subrip", "text", "webvtt"))
"""The codecs of subtitles that are text. FFmpeg converts them into one another, but no bitmaps into text."""

_COPIED = frozenset(("ass", "ssa", "subrip", "text", "webvtt")) | frozenset(
    ("arib_caption", "dvb_subtitle", "dvd_subtitle", "hdmv_pgs_subtitle", "hdmv_text_subtitle")  # pictures
)
"""The codecs of subtitles that FFmpeg copies into Matroska."""


def command_line(path: str, recipe: Recipe, place: int, *, renumbered: bool = False, zones: str | None = None) -> str:
    """Return the line for a POSIX shell that encodes the clip at `path` with a setting; for bash if a name is no plain text.

    The line writes the file `encode_name` in the current folder. Sound, subtitles and attachments are copied, but not for a
    rendition, because all renditions share them. FFmpeg turns the pictures as the clip says, and numbers frames that have no
    times of their own (`renumbered`, see `Scan`). `zones` are those of libx264; outside them the setting is `place`.
    """
    output = encode_name(path, recipe, place if zones is None else None)
    if zones is not None:
        recipe = replace(recipe, own={**recipe.own, "zones": zones})

    facts, read, copied = recipe.facts, ["ffmpeg"], []
    if recipe.size is None:
        copied = copying_words(facts.subtitles, attachments=facts.attachments)
    else:
        read.append("-nostdin")  # the line is part of a script, so FFmpeg must not ask anything
    if (pictures := sequence(path)) is not None:
        read += _options(pictures.options)  # by these FFmpeg finds the pictures
    read += ["-i", operand(path), "-map", f"0:v:{facts.video}"]

    video = [*read, *_video(recipe, place, renumbered=renumbered)]
    if not recipe.two_passes:
        return shell_line([*video, *copied, output])
    first, second = [*video, "-pass", "1", "-f", "null", "-"], [*video, "-pass", "2", *copied, output]
    return f"{shell_line(first)} && {shell_line(second)}"


def _options(options: Mapping[str, str]) -> list[str]:
    return [word for name, value in options.items() for word in (f"-{name}", value)]


def encode_name(path: str, recipe: Recipe, place: int | None) -> str:
    """Return the name of the file that a command writes: the clip, the size of a rendition, the options and the setting.

    If `place` is None, each shot has a setting of its own. A name is no longer than file systems allow.
    """
    clip = _OF_PICTURES.sub("", Path(path).stem) or "pictures"
    size = "" if recipe.size is None else f"{recipe.size[0]}x{recipe.size[1]}"
    given = {**recipe.options, **recipe.own}
    options = "_".join(f"{name}-{_NOT_OF_NAMES.sub('-', value)}" for name, value in given.items())[:_MAX_OPTION_LENGTH]
    setting = "shots" if place is None else f"{recipe.parameter.name}{recipe.parameter.text(place)}"
    end = "".join(f"_{part}" for part in (size, options, setting) if part)
    return operand(file_name(clip, f"{end}.mkv"))


def shell_script(commands: Mapping[str, str]) -> str:
    """Return a script of commands, each by the file that it writes; for bash if a name is no plain text.

    The script ends before the first command if a file exists. FFmpeg alone would keep that file, and end as after a success.
    """
    interpreter = "/usr/bin/env bash" if any(map(needs_bash, commands.values())) else "/bin/sh"
    return _SCRIPT.format(interpreter=interpreter, files=shell_line(commands), commands="\n".join(commands.values()))


def _video(recipe: Recipe, place: int, *, renumbered: bool) -> list[str]:
    facts, words = recipe.facts, ["-c:v", recipe.encoder.name]
    filters, scale = [], []
    if renumbered:
        filters.append(f"setpts=N/({facts.rate}*TB)")  # FFmpeg would drop frames
    if facts.crop is not None:
        # FFmpeg turns pictures before its filters, and from version 7.1 on also crops them as their container says.
        width, height, left, top = facts.crop
        filters.append(f"crop={width}:{height}:'if(gt(iw,{width}),{left})':'if(gt(ih,{height}),{top})'")
    filters += facts.filters
    if recipe.scaled is not None:
        scale += [f"{recipe.scaled[0]}:{recipe.scaled[1]}", f"flags={RESAMPLER}+accurate_rnd"]
    converts, full, grey = recipe.format != facts.coded_format, facts.colours[3] == _FULL, facts.coded_format.startswith("gray")
    if converts and (full or grey):
        span = "full" if full else "limited"  # FFmpeg would make full range limited, and takes unmarked grey for full
        scale += [f"in_range={span}", f"out_range={span}"]
    if scale:
        filters.append(f"scale={':'.join(scale)}")

    if filters:
        words += ["-vf", ",".join(filters)]
    if converts:
        words += ["-pix_fmt", recipe.format, *(["-color_range", "pc"] if full else [])]

    options = recipe.options_of(place)
    rate = options.pop("b", "0" if recipe.encoder.is_nvenc else None)
    if recipe.parameter.is_bitrate:
        rate = f"{recipe.parameter.text(place)}k"
    words += _options(options)
    return words if rate is None else [*words, "-b:v", rate]


def operand(path: str) -> str:
    """Return a name that FFmpeg takes neither for an option nor for a protocol, as a file `12:30.mp4` would be."""
    first = path.partition(os.sep)[0]
    return local_name(path) if not is_url(path) and (first.startswith("-") or ":" in first) else path


def copying_words(subtitles: Sequence[str], *, attachments: bool) -> list[str]:
    """Return the words of a command line that copy sound, subtitles and attachments into Matroska.

    Subtitles that Matroska cannot hold become SRT. Codecs that are unknown to FFmpeg are left out, because it would write
    nothing at all.
    """
    kept = {
        number: "copy" if name in _COPIED else "srt"
        for number, name in enumerate(subtitles)
        if name in _COPIED or name in _TEXTS
    }
    maps = ["-map", "0:a?"]
    for stream in ["0:s?"] if len(kept) == len(subtitles) else [f"0:s:{number}" for number in kept]:
        maps += ["-map", stream]
    if attachments:
        maps += ["-map", "0:t?"]  # fonts of subtitles
    codecs = ["-c:a", "copy"]
    if len(set(kept.values())) > 1:
        codecs += [word for place, codec in enumerate(kept.values()) for word in (f"-c:s:{place}", codec)]
    elif kept or not subtitles:
        codecs += ["-c:s", next(iter(kept.values()), "copy")]
    return [*maps, *codecs]


# -- Av1an -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Program:
    """The program of an encoder, as Av1an calls it."""

    name: str
    quality: str = "crf"
    """Its option for a CRF."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Further options that it needs."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Its names of FFmpeg's options."""
    switches: tuple[str, ...] = ()
    """Its options without a value."""
    joined: bool = False
    """Whether an equals sign stands between name and value."""


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
"""The programs of the encoders that Av1an supports."""

_NO_NAMES = ("flags", "maxrate", "minrate", "bufsize")
"""Options of FFmpeg whose value means something else to the encoders' programs, or which they lack."""

_OFF = ("0", "false", "no")


def av1an_zones(shots: Sequence[Shot], recipe: Recipe) -> str:
    """Return a line for each shot, with every option of its encode and with `reset`, so that Av1an adds none of its own.

    Raises OptionError for an encoder or an option that Av1an lacks.
    """
    program = _PROGRAMS.get(recipe.encoder.name)
    if program is None or recipe.parameter.name != "crf":
        asked = f"{recipe.parameter.name} of {recipe.encoder.name}"
        raise OptionError(f"Av1an has no zones for {asked}; it has them for crf of {', '.join(_PROGRAMS)}")
    given = {**recipe.options, **recipe.own_options()}
    if refused := [name for name in given if name in _NO_NAMES]:
        instead = f"use a name of {program.name}, such as vbv-maxrate, or write .json"
        raise OptionError(f"`options` {refused[0]}: Av1an gives options to {program.name} itself, which lacks it; {instead}")
    if program.joined and (deadline := given.pop("deadline", given.pop("quality", None))) is not None:
        given[{"realtime": "rt"}.get(deadline, deadline)] = "1"
    if recipe.bits > 8 and program.name in ("x264", "x265"):
        given["output-depth"] = str(recipe.bits)

    def word(name: str, value: str) -> str:
        return f"--{name}{'=' if program.joined and name != 'passes' else ' '}{value}"  # Av1an itself reads the passes

    options, switches = [], []  # switches are last: Av1an would take the name after one for its value
    for name, value in {**program.more, **given}.items():
        own = program.renamed.get(name, name)
        if own in program.switches:
            switches.append(f"--no-{own}" if value in _OFF else f"--{own}")
        else:
            options.append(word(own, value))
    return "".join(
        f"{shot.first} {shot.first + shot.count} {program.name} reset"
        f" {' '.join([word(program.quality, f'{shot.setting:g}'), *options, *switches])}\n"
        for shot in shots
    )


def av1an_command(path: str, zones: str, recipe: Recipe) -> str:
    """Return Av1an's command line for a file of zones, for a POSIX shell. Its default would be 10 bits."""
    encoder, name = _PROGRAMS[recipe.encoder.name].name, encode_name(path, recipe, None)
    words = ["-i", operand(path), "-e", encoder, "--zones", operand(zones), "--pix-format", recipe.format, "-o", name]
    if recipe.facts.filters:
        words += ["--ffmpeg", f"-vf {','.join(recipe.facts.filters)}"]
    return shell_line(["av1an", *words])


def x264_zones(shots: Sequence[Shot]) -> str:
    """Return the list that x264 takes as ``--zones``: the last frame of a zone belongs to it."""
    return "/".join(f"{shot.first},{shot.first + shot.count - 1},crf={shot.setting:g}" for shot in shots)
