"""Draw an SSIM map as a picture that explains itself: title, scores and a colour bar around the map."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ..features import FEATURES
from ..report.numbers import time_code
from ..report.results import ScoreReport
from ..storage.location import redact_url
from ..utils.extras import require_extra
from ..utils.sanitize import visible
from .frames import PURPOSE, FramePictures, Rgb, colour

_NARROWEST = 480  # columns: the text needs them, also for maps of small frames
_SMALLEST_TEXT = 12  # pixels
_LINES = 4  # of the title
_PAPER, _INK = (255, 255, 255), (20, 20, 20)
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
_ENDS = {0.0: "nothing in common (0 or less)", 1.0: "the same"}


def map_picture(frame: FramePictures, report: ScoreReport) -> Rgb:
    """Return the SSIM map of a frame with its title, the frame's scores and a colour bar, (H', W', 3) uint8.

    The picture contains the map sample for sample, at the left below the text; see `map_corner`. Raises OptionError if Pillow
    or matplotlib is not installed.
    """
    drawing, pictures = _pillow("ImageDraw"), _pillow("Image")
    coloured = colour(frame.ssim_map)
    height, width = coloured.shape[:2]
    columns = max(width, _NARROWEST)
    size = _text_size(columns)
    font = _font(size)
    top, left = map_corner(width)
    canvas = pictures.new("RGB", (columns + 2 * left, top + height + 6 * size), _PAPER)
    draw = drawing.Draw(canvas)
    for number, text in enumerate(_lines(frame, report)):
        draw.text((left, left + number * _line_height(size)), _cut(text, columns, font), _INK, font)
    canvas.paste(pictures.fromarray(coloured), (left, top))
    _draw_bar(canvas, draw, (left, top + height + size), columns, size, font)
    return np.asarray(canvas)


def map_corner(width: int) -> tuple[int, int]:
    """Return row and column of the first sample of a map in its picture, for a map of the given width."""
    size = _text_size(max(width, _NARROWEST))
    return size // 2 + _LINES * _line_height(size) + size // 2, size // 2


def _text_size(columns: int) -> int:
    return max(_SMALLEST_TEXT, columns // 60)


def _line_height(size: int) -> int:
    return size + size // 2


def _lines(frame: FramePictures, report: ScoreReport) -> list[str]:
    """Return the lines of the title: the frame, the clips, and the scores."""
    scored = next((scored for scored in report.frames if scored.index == frame.index), None)
    names = [os.path.basename(redact_url(path)) or path for path in (report.distorted, report.reference)]
    when = f" · {time_code(scored.time)}" if scored is not None and scored.time is not None else ""
    scores = {} if scored is None else {name: scored.metrics[name] for name in report.names if name in FEATURES}
    mean, lowest = float(frame.ssim_map.mean(dtype=np.float64)), float(frame.ssim_map.min())
    lines = [
        f"SSIM map of frame {frame.index}{when}",
        " against ".join(names),
        " · ".join(f"{name} {_decimals(score, 6)}" for name, score in scores.items()),
        f"mean of the map {_decimals(mean, 4)}, lowest window {_decimals(lowest, 4)}",
    ]
    return list(map(visible, lines))


def _decimals(value: float, places: int) -> str:
    return f"{value:.{places}f}" if math.isfinite(value) else "null"


def _cut(text: str, columns: int, font: Any) -> str:
    """Return the part of a text that fits."""
    if font.getlength(text) <= columns:
        return text
    while text and font.getlength(f"{text}…") > columns:
        text = text[:-1]
    return f"{text}…"


def _draw_bar(canvas: Any, draw: Any, corner: tuple[int, int], columns: int, size: int, font: Any) -> None:
    """Draw the colours from 0 to 1 with their values below."""
    left, top = corner
    values = np.linspace(0, 1, columns, dtype=np.float32)
    canvas.paste(_pillow("Image").fromarray(np.repeat(colour(values[None]), size, axis=0)), corner)
    for tick in _TICKS:
        column = left + tick * (columns - 1)
        draw.line([(column, top + size), (column, top + size + size // 3)], _INK)
        _draw_aligned(draw, f"{tick:g}", (left, top + size + size // 2), columns, tick, font)
    for tick, text in _ENDS.items():
        _draw_aligned(draw, text, (left, top + 2 * size + size // 2 + size // 3), columns, tick, font)


def _draw_aligned(draw: Any, text: str, corner: tuple[int, int], columns: int, share: float, font: Any) -> None:
    """Draw a text at a share of the columns: a text at 0 begins at the left, and a text at 1 ends at the right."""
    left, top = corner
    draw.text((left + share * (columns - font.getlength(text)), top), text, _INK, font)


def _font(size: int) -> Any:
    """Return the font DejaVu Sans, which is installed with matplotlib and has most alphabets."""
    fonts = require_extra("matplotlib", "report", PURPOSE).get_data_path()
    return _pillow("ImageFont").truetype(os.path.join(fonts, "fonts", "ttf", "DejaVuSans.ttf"), size)


def _pillow(module: str) -> Any:
    return require_extra(f"PIL.{module}", "report", PURPOSE)
