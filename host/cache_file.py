"""The form of the pipeline cache on disk: the driver's data behind a header of our own that a damaged file does not pass.

Drivers trust what stands behind Vulkan's own header and may crash on anything else, so they only get what was written whole.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from pathlib import Path

MOST_BYTES = 1 << 26
"""Of a cache; ours are some 100 kB."""

_MAGIC = b"vkssim pipelines"
_FORM = 1
_HEADER = struct.Struct("<16sIQ32s")  # magic, form, length of the data, its SHA-256


def packed(data: bytes) -> bytes:
    """The content of a file for the driver's data."""
    return _HEADER.pack(_MAGIC, _FORM, len(data), hashlib.sha256(data).digest()) + data


def unpacked(content: bytes) -> bytes:
    """The driver's data from the content of a file; nothing where that is not, to the bit, what `packed` gives."""
    data = content[_HEADER.size :]
    return data if content == packed(data) else b""


def read(path: Path) -> bytes:
    """The driver's data from a file; nothing where that is no ordinary file, is damaged or has more than MOST_BYTES."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode) or state.st_size > MOST_BYTES:
                return b""
            return unpacked(file.read(MOST_BYTES))
    except OSError:
        return b""
