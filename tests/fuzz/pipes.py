"""Content that comes from a pipe."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_FITS = 1 << 16  # what a pipe takes before anybody reads


@contextmanager
def pipe_of(content: bytes) -> Iterator[str]:
    """The name of a pipe with the first 64 KiB of some content in it."""
    reader, writer = os.pipe()
    try:
        os.write(writer, content[:_FITS])
        os.close(writer)
        yield f"/dev/fd/{reader}"
    finally:
        os.close(reader)
