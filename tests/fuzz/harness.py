"""The tools that all targets share: a folder, choices made by bytes, and the allowed outcomes of an input."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from click.testing import CliRunner

from vkssim.cli import main
from vkssim.errors import VkssimError

Item = TypeVar("Item")

REFERENCE = b"YUV4MPEG2 W16 H12 F25:1 C420\n" + b"".join(b"FRAME\n" + bytes(range(16)) * 18 for _ in range(3))
EXIT_CODES = (0, 1, 2, 3, 130)
"""Exit codes of the command line; docs/cli.md has what they mean."""

_scratch = tempfile.TemporaryDirectory(prefix="vkssim-fuzz-")
atexit.register(_scratch.cleanup)
SCRATCH = Path(_scratch.name)
"""A folder for what the targets write."""


class Choices:
    """Takes choices from the front of an input; what is left is content."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def pick(self, items: Sequence[Item]) -> Item:
        """One of some items, by a byte; the first if there are none left."""
        first, self._data = self._data[:1], self._data[1:]
        return items[first[0] % len(items)] if first else items[0]

    def rest(self) -> bytes:
        """All that is left."""
        return self._data

    def text(self) -> str:
        """The same as text; bytes that are none as Python has them in names of files."""
        return self._data.decode(errors="surrogateescape")


def refusals() -> suppress:
    """Takes the errors that vkssim raises on purpose; every other is a find."""
    return suppress(VkssimError)


def scratch(name: str, content: bytes) -> Path:
    """A file with that content."""
    path = SCRATCH / name
    path.write_bytes(content)
    return path


def command(*words: str) -> str:
    """Run `vkssim WORDS` in the folder of scratch files and return its output; an unexpected error is raised as it is."""
    before = os.getcwd()
    os.chdir(SCRATCH)
    os.environ["VKSSIM_TRACEBACK"] = "1"
    try:
        result = CliRunner().invoke(main, words)
    finally:
        del os.environ["VKSSIM_TRACEBACK"]
        os.chdir(before)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in EXIT_CODES, f"exit code {result.exit_code}: {result.output}"
    assert "Traceback" not in result.output
    return result.output


@contextmanager
def pipe_of(content: bytes) -> Iterator[str]:
    """The name of a pipe with the first 64 KiB of some content in it, which it takes before anybody reads."""
    reader, writer = os.pipe()
    try:
        os.write(writer, content[: 1 << 16])
        os.close(writer)
        yield f"/dev/fd/{reader}"
    finally:
        os.close(reader)
