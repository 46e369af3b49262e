"""Limit what is read: each limit is checked before memory is taken, so that no input decides how much is taken.

They bound what a run takes: RUN_BYTES, and RUN_BYTES_PER_PIXEL for each pixel of the larger of the two frames (three times that
where all planes are scored, and what FFmpeg keeps of the clips: 16 frames of each, and one for every core).
"""

from __future__ import annotations

from ..errors import OptionError
from .wording import counted

LARGEST_SIDE = 32768
"""Samples of a row or a column; kernels count in 32 bits, and FFmpeg's own limit is not far above."""

MOST_PIXELS = 1 << 28
"""Of a frame: 16384x16384, eight times 8K UHD. FFmpeg refuses larger ones by itself before it decodes."""

RUN_BYTES = 1 << 30
"""Of memory: Python, its libraries, the driver, and what is in flight of small frames. Some 200 MB on lavapipe."""

RUN_BYTES_PER_PIXEL = 256
"""Of memory: what is in flight of large frames. 90 on the CPU backend, whose sums are doubles, 50 on lavapipe."""

LONGEST_LINE = 4096
"""Bytes of the first line of a Y4M and of a FRAME line; FFmpeg writes some 80 and reads 128."""

LONGEST_PATH = 4096
"""Characters of a file's name: Linux's PATH_MAX."""

LARGEST_TABLE_BYTES = 1 << 28
"""Of a manifest or of results, in the file and unpacked: a row of results has some 2,000 bytes, so 100,000 pairs."""

MOST_ROWS = 1 << 20
"""Of a table: each takes memory beside that of its cells."""

MOST_CELLS = 1 << 23
"""Rows times columns of a table: 100,000 rows of 80 columns."""

MOST_COLUMNS = 4096
"""Of a table; all scores with all poolings are some 900."""

LARGEST_REPORT_BYTES = 1 << 28
"""Of a report in JSON: three hours with every score there is."""

MOST_REPORT_VALUES = 1 << 24
"""Of a report in JSON; each takes up to 100 bytes once it is read."""

LARGEST_JOURNAL_BYTES = 1 << 29
"""Of the journal of a batch: a record has some 3,000 bytes, so 100,000 pairs."""

LONGEST_OPTION = 1024
"""Characters of a text given as an option: a feature with its options, a demand, a choice of frames, a place in a clip."""

MOST_FEATURES = 32
"""Features asked for at a time, each of which may be there once anyway."""

LARGEST_NUMBER = (1 << 53) - 1
"""Of frames, as a count or a place: what JSON's readers agree on. At 1000 frames/s 285,000 years."""

LARGEST_SCORE = 1e9
"""Of a score read from a report: a similarity is at most 1, one in dB some 200, and libvmaf's other metrics are no larger."""

MOST_DIGITS = 15
"""Of a whole number in text, so that it is below LARGEST_NUMBER and far from the 4300 digits that Python refuses to read."""

LONGEST_SHOWN = 80
"""Characters of a value that an error repeats."""


def abbreviated(value: object) -> str:
    """Return a value as an error repeats it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… ({counted(len(text), 'character')})"


def check_option(flag: str, text: str) -> None:
    """Raise OptionError where the text of an option is longer than LONGEST_OPTION."""
    if len(text) > LONGEST_OPTION:
        raise OptionError(f"{flag} has {len(text)} characters; {LONGEST_OPTION} are the most there can be")


def whole_number(text: str) -> int | None:
    """Return a whole number of ASCII digits, at most MOST_DIGITS of them; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None
