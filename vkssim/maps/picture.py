"""Draw an SSIM map as a picture that explains itself: title, scores and a colour bar around the map."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..metrics import FEATURES
from ..report.numbers import NumberFormat, time_code
from ..report.results import FrameScores, ScoreReport
from ..storage.location import redact_url
from ..utils.sanitize import visible
from .frames import FramePictures, Rgb, colour, picture_library

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
    drawing, pictures = picture_library("PIL.ImageDraw"), picture_library("PIL.Image")
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
    unscored = FrameScores(frame.index, {})
    scored = next((scored for scored in report.frames if scored.index == frame.index), unscored)
    names = [os.path.basename(redact_url(path)) or path for path in (report.distorted, report.reference)]
    six, four = NumberFormat(6), NumberFormat(4)
    mean, lowest = float(frame.ssim_map.mean(dtype=np.float64)), float(frame.ssim_map.min())
    lines = [
        " · ".join(filter(None, [f"SSIM map of frame {frame.index}", time_code(scored.time)])),
        " against ".join(names),
        " · ".join(f"{name} {six.text(score, 'null')}" for name, score in scored.metrics.items() if name in FEATURES),
        f"mean of the map {four.text(mean, 'null')}, lowest window {four.text(lowest, 'null')}",
    ]
    return list(map(visible, lines))


def _cut(text: str, columns: int, font: Any) -> str:
    if font.getlength(text) <= columns:
        return text
    while text and font.getlength(f"{text}…") > columns:
        text = text[:-1]
    return f"{text}…"


def _draw_bar(canvas: Any, draw: Any, corner: tuple[int, int], columns: int, size: int, font: Any) -> None:
    """Draw the colours from 0 to 1 with their values below."""
    left, top = corner

    def write(text: str, share: float, row: int) -> None:
        """Write a text at a share of the columns: at 0 it begins at the left, and at 1 it ends at the right."""
        draw.text((left + share * (columns - font.getlength(text)), row), text, _INK, font)

    values = np.linspace(0, 1, columns, dtype=np.float32)
    canvas.paste(picture_library("PIL.Image").fromarray(np.repeat(colour(values[None]), size, axis=0)), corner)
    for tick in _TICKS:
        column = left + tick * (columns - 1)
        draw.line([(column, top + size), (column, top + size + size // 3)], _INK)
        write(f"{tick:g}", tick, top + size + size // 2)
    for tick, text in _ENDS.items():
        write(text, tick, top + 2 * size + size // 2 + size // 3)


def _font(size: int) -> Any:
    """Return the font DejaVu Sans, which is installed with matplotlib and has most alphabets."""
    fonts = picture_library("matplotlib").get_data_path()
    return picture_library("PIL.ImageFont").truetype(os.path.join(fonts, "fonts", "ttf", "DejaVuSans.ttf"), size)
