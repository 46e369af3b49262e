"""The form of the pipeline cache on disk: the driver's data behind a header of our own that a damaged file does not pass.

Drivers trust what stands behind Vulkan's own header and may crash on anything else, so they only get what was written whole.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

from . import private

MOST_BYTES = 1 << 26
"""Of a cache; ours are some 100 kB."""

_MAGIC = b"vkssim pipelines"
_FORM = 1
_HEADER = struct.Struct("<16sIQ32s")  # magic, form, length of the data, its SHA-256


def packed(data: bytes) -> bytes:
    """Return the content of a file for the driver's data."""
    return _HEADER.pack(_MAGIC, _FORM, len(data), hashlib.sha256(data).digest()) + data


def unpacked(content: bytes) -> bytes:
    """Return the driver's data from the content of a file; nothing where that is not, to the bit, what `packed` gives."""
    data = content[_HEADER.size :]
    return data if content == packed(data) else b""


def read(path: Path) -> bytes:
    """Return the driver's data from a file, or nothing.

    There is nothing where others may have written the file, where it is damaged, or where it has more than MOST_BYTES.
    """
    return unpacked(private.load(path, MOST_BYTES))
