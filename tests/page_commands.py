"""The commands of the pages print the numbers below them. `ci/docs` runs this file; `pytest` alone does not collect it.

tests/README.md describes the form of a block whose commands are run.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import pytest

from .support.commands import run_program, vkssim
from .support.pages import DOCS, PAGES, ROOT, check_shown, page_blocks

pytestmark = pytest.mark.usefixtures("shared_device")

MAKES_CLIPS = re.compile(r"(?:\$ )?(?:cp|ffmpeg) ")
COMMAND = re.compile(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n", re.MULTILINE)


class Shell:
    """A folder with the fixtures, in which the blocks of a page are run one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.status = 0
        programs = folder / "programs"
        programs.mkdir()
        (folder / "fixtures").symlink_to(ROOT / "fixtures")
        for name, script in {
            # x264 makes other pictures with AVX-512 than with AVX2, which all CPUs of today have.
            "ffmpeg": 'case " $* " in *" libx264 "*) set -- "${@:1:$#-1}" -x264-params asm=avx2 "${@: -1}";; esac\n'
            f'exec {imageio_ffmpeg.get_ffmpeg_exe()} -nostdin -y "$@"',
            "vkssim": f'exec {sys.executable} -m vkssim "$@"',
        }.items():
            (programs / name).write_text(f"#!/bin/bash\n{script}\n")
            (programs / name).chmod(0o755)

    def run(self, script: str) -> str:
        """Run a command and return what it prints. One of vkssim alone runs in this process, on the shared device.

        Encodes do not: x264 reads memory that it has not written, and makes the same pictures only in a new process.
        """
        if not re.match(r"vkssim (?!search|ladder)[^|<>;&$]*$", script):
            process = self._bash(f"exec 2>&1\n(exit {self.status})\n{script}")
            self.status = process.returncode
            return str(process.stdout)
        words = self._bash(f'printf "%s\\0" {script}').stdout.split("\0")[1:-1]  # with wildcards and quotes as a shell has them
        result = vkssim(*words)
        self.status = result.exit_code
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.output

    def make_clips(self, page: Path) -> None:
        """Run the blocks of a page that make its clips."""
        for text in page_blocks(page, "", "sh"):
            if MAKES_CLIPS.match(text):
                for part in re.split(r"^((?:\$ )?vkssim (?:[^\n]*\\\n)*[^\n]*\n)", text, flags=re.MULTILINE):
                    printed = self.run(re.sub(r"^\$ ", "", part, flags=re.MULTILINE).strip())
                    assert self.status == 0, f"{part}\n{printed}"

    def _bash(self, script: str) -> Any:
        path = {"PATH": f"{self.folder / 'programs'}:{os.environ['PATH']}"}
        return run_program("bash", "-o", "pipefail", "-c", script, cwd=self.folder, environment=path, text=True)


RUN_PAGES = [page for page in PAGES if any(COMMAND.search(text) for text in page_blocks(page, "", "sh"))]


@pytest.mark.parametrize("page", RUN_PAGES, ids=lambda page: page.name)
def test_commands_print_the_numbers_that_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, to the last decimal. Blocks that make clips come first, those of other pages among them."""
    monkeypatch.chdir(tmp_path)
    shell = Shell(tmp_path)
    blocks = [text for text in page_blocks(page, "", "sh") if COMMAND.search(text) and not MAKES_CLIPS.match(text)]
    for maker in {DOCS / "start.md", *([DOCS / "ladders.md"] if "bbb_x26" in "".join(blocks) else []), page}:
        shell.make_clips(maker)
    for text in blocks:
        before, *pairs = COMMAND.split(text)
        assert before == "", f"output without a command: {before}"
        for command, shown in zip(pairs[::2], pairs[1::2], strict=True):
            printed = shell.run(command)
            assert shell.status < 2 or "vkssim: " in shown, f"{page.name}: {command}\n{printed}"
            check_shown(shown, printed, f"{page.name}: {command}")
