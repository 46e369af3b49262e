"""Limits of everything that is read, and arguments that stand for numbers.

Each limit is checked before memory is taken, so that no input decides how much is taken.

The limits bound the memory of a run: 1 GiB, and 256 bytes for each pixel of the larger of the two frames (the CPU backend needs
90, and lavapipe 50). If all planes are scored, it is three times that per pixel, and FFmpeg's buffers come on top: 16 frames of
each clip, and one for each core.
"""

from __future__ import annotations

import math
import os
from decimal import Decimal
from numbers import Real
from typing import Any

from ..errors import OptionError
from .wording import counted

LARGEST_SIDE = 32768
"""Most samples of a row or a column. Kernels count in 32 bits, and FFmpeg's own limit is not much higher."""

MAX_PIXELS = 1 << 28
"""Most pixels of a frame: 16384x16384, eight times 8K UHD. FFmpeg itself refuses larger frames before it decodes them."""

LONGEST_LINE = 4096
"""Most bytes of the first line of a Y4M file and of a FRAME line. FFmpeg writes some 80 and reads 128."""

LONGEST_PATH = 4096
"""Most characters of a file's name: Linux's PATH_MAX."""

MAX_NAME_BYTES = 255
"""Most bytes of a file's name without its folder, by the limit of file systems: Linux's NAME_MAX."""

LARGEST_TABLE_BYTES = 1 << 28
"""Most bytes of a manifest or of results, in the file and unpacked. A row of results has some 2,000, so 100,000 pairs fit."""

MAX_ROWS = 1 << 20
"""Most rows of a table. A row takes memory in addition to its cells."""

MAX_CELLS = 1 << 23
"""Most cells of a table, rows times columns: 100,000 rows of 80 columns."""

MAX_COLUMNS = 4096
"""Most columns of a table. All scores with all poolings are some 900."""

LARGEST_REPORT_BYTES = 1 << 28
"""Most bytes of a report in JSON: three hours of video with every possible score."""

MAX_REPORT_VALUES = 1 << 24
"""Most values of a report in JSON. Each takes up to 100 bytes in memory."""

LARGEST_JOURNAL_BYTES = 1 << 29
"""Most bytes of the journal of a batch. A record has some 3,000, so 100,000 pairs fit."""

LONGEST_OPTION = 1024
"""Most characters of the text of an option: a feature with its options, a threshold, a selection of frames, a position."""

MAX_FEATURES = 32
"""Most features in one run. Each of them may appear only once in any case."""

LARGEST_NUMBER = (1 << 53) - 1
"""The largest count or number of frames, which all readers of JSON support. At 1000 frames/s, it lasts 285,000 years."""

LARGEST_SCORE = 1e9
"""The largest score in a report: a similarity is at most 1, in dB some 200, and libvmaf's other metrics are no larger."""

MAX_DIGITS = 15
"""Most digits of a whole number in text: below LARGEST_NUMBER, and far from the 4300 digits that Python refuses to parse."""

LONGEST_SHOWN = 80
"""Most characters of a value that an error message repeats."""


def abbreviated(value: object) -> str:
    """Return a value as text for an error message, shortened if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… ({counted(len(text), 'character')})"


def file_name(start: str, end: str) -> str:
    """Return the name of a file, whose start is cut if the whole would be longer than file systems allow."""
    while start and len(os.fsencode(start + end)) > MAX_NAME_BYTES:
        start = start[:-1]
    return start + end


def check_option(flag: str, text: str) -> None:
    """Raise OptionError if the text of an option is longer than LONGEST_OPTION."""
    if len(text) > LONGEST_OPTION:
        raise OptionError(f"{flag} has {len(text)} characters; the limit is {LONGEST_OPTION}")


def whole_number(text: str) -> int | None:
    """Return the whole number that a text of at most MAX_DIGITS ASCII digits gives; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None


# -- arguments of Python, NumPy and PyTorch, fractions and decimals ---------------------------------------------------


def plain_value(value: object) -> Any:
    """Return the value of an array or a tensor without axes, or of a scalar of NumPy; anything else as it is."""
    has_value = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if has_value else value  # type: ignore[attr-defined]


def real_number(name: str, value: Any) -> float:
    """Return a number as a float, or as the int that it is.

    Raises OptionError for a truth value, a text, None, and anything else that is no number.
    """
    # torch.compile traces floats and ints, but no type below, and it has a bug in float() of an int that changes from call to
    # call ("Guard failed on the same frame it was created", PyTorch 2.13).
    if type(value) is float or (type(value) is int and abs(value) < LARGEST_NUMBER):
        return value
    number = plain_value(value)
    if isinstance(number, Real | Decimal) and not isinstance(number, bool):
        try:
            return float(number)
        except (OverflowError, ValueError):  # ValueError: a signalling NaN
            pass
    raise OptionError(f"{name} is {abbreviated(value)}; it must be a number that a float can hold")


def real_numbers(name: str, values: Any) -> tuple[float, ...]:
    """Return numbers as floats. Raises OptionError if they are no sequence of numbers."""
    try:
        entries = tuple(values)
    except TypeError:
        raise OptionError(f"{name} is {abbreviated(values)}; it must be a sequence of numbers") from None
    return tuple([real_number(name, value) for value in entries])


def whole_value(value: object) -> int | None:
    """Return the whole number that a value stands for, also if its type has fractions; None for anything else."""
    number = plain_value(value)
    if isinstance(number, bool) or not isinstance(number, Real | Decimal):
        return None
    try:
        whole: int = math.trunc(number)  # type: ignore[assignment]
    except (OverflowError, ValueError):  # infinite, or NaN
        return None
    return whole if whole == number else None


def integer(name: str, value: object) -> int:
    """Return a whole number as an int. Raises OptionError for anything else."""
    number = whole_value(value)
    if number is None:
        raise OptionError(f"{name} is {abbreviated(value)}; it must be a whole number")
    return number
