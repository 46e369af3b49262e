"""Write FFmpeg's command line for an encode: what a search found, for a machine that has no vkssim."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from ..frames.demuxer import local_name
from ..frames.sequence import sequence
from ..storage.remote import is_url
from .defaults import RESAMPLER
from .other_streams import copying_words
from .recipe import Recipe
from .source import Facts

_FULL = 2  # FFmpeg's number of the full range
_OF_PICTURES = re.compile(r"%\d*d|[*?\[\]]")  # what stands for numbers and letters in the name of a sequence
_TO_NOTHING = ("-f", "null", "-")


def command_line(path: str, facts: Facts, recipe: Recipe, place: int) -> str:
    """Return the line for a POSIX shell that encodes the clip at `path` with a setting.

    The line writes a file in the current folder, whose name has the clip, the size of a rendition and the setting. Sound,
    subtitles and attachments are copied. A rendition has none, because all of them share one; and since a script has its line,
    FFmpeg asks nothing there, and ends where the file exists. An encode in two passes is a line with two commands. What FFmpeg
    writes is not to the byte what a search has measured, because versions of an encoder differ.
    """
    setting = f"{recipe.parameter.name}{recipe.parameter.text(place)}"
    size = () if recipe.size is None else (f"{recipe.size[0]}x{recipe.size[1]}",)
    # A rotation is kept and not done, as in the trials; FFmpeg before 6 writes it to MP4 alone.
    turned, ending = (["-noautorotate"], ".mp4") if facts.rotation else ([], ".mkv")
    name = _OF_PICTURES.sub("", Path(path).stem) or "pictures"
    output = _operand("_".join((name, *size, setting)) + ending)
    others, asks = (copying_words(facts.others, ending), []) if recipe.size is None else ([], ["-nostdin"])
    read = [*asks, *turned, *_pictures(path), "-i", _operand(path), "-map", f"0:v:{facts.video}"]
    video = ["ffmpeg", *read, *_video(facts, recipe, place)]
    if not recipe.two_passes:
        return shlex.join([*video, *others, output])
    first, second = [*video, "-pass", "1", *_TO_NOTHING], [*video, "-pass", "2", *others, output]
    return f"{shlex.join(first)} && {shlex.join(second)}"


def _video(facts: Facts, recipe: Recipe, place: int) -> list[str]:
    """Return the words that say how the video is encoded."""
    words = ["-c:v", recipe.encoder.name]
    scale = []
    if recipe.size not in (None, (facts.width, facts.height)):
        scale += [f"{recipe.size[0]}:{recipe.size[1]}", f"flags={RESAMPLER}+accurate_rnd"]
    full, grey = facts.colours[3] == _FULL, facts.format.startswith("gray")
    if recipe.format != facts.format and (full or grey):
        span = "full" if full else "limited"  # FFmpeg would make full range limited, and takes grey for full where nothing says
        scale += [f"in_range={span}", f"out_range={span}"]
    if scale:
        words += ["-vf", f"scale={':'.join(scale)}"]
    if recipe.format != facts.format:
        words += ["-pix_fmt", recipe.format]
        words += ["-color_range", "pc"] if full else []
    options = dict(recipe.options_of(facts, place))
    rate = options.pop("b", None)
    if recipe.parameter.is_bitrate:
        rate = f"{recipe.parameter.text(place)}k"
    elif not recipe.encoder.name.startswith("lib"):
        rate = "0"
    for name, value in options.items():
        words += [f"-{name}", value]
    return words if rate is None else [*words, "-b:v", rate]


def _pictures(path: str) -> list[str]:
    """Return the words that make FFmpeg find the pictures of a sequence; none for a file."""
    pictures = sequence(path)
    return [] if pictures is None else [word for name, value in pictures.options.items() for word in (f"-{name}", value)]


def _operand(path: str) -> str:
    """Return a name that FFmpeg takes neither for an option nor for a protocol, as a file `12:30.mp4` would be."""
    first = path.partition(os.sep)[0]
    return local_name(path) if not is_url(path) and (first.startswith("-") or ":" in first) else path
