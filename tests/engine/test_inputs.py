"""Inputs that are refused by what they are, before anything is read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from vkssim import score_files
from vkssim.errors import InputError

from ..support.clips import raw_flags, write, y4m_bytes
from ..support.commands import TINY, vkssim
from ..support.pictures import clip
from ..support.waiting import PATIENCE


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    path = str(tmp_path / "fifo.y4m")
    os.mkfifo(path)
    return path


def test_one_pipe_as_both_inputs(fifo: str, tmp_path: Path) -> None:
    """Without the check the two would wait for each other; a link to the pipe is the pipe."""
    link = tmp_path / "link.y4m"
    link.symlink_to(fifo)
    for second in (fifo, str(link)):
        with pytest.raises(InputError, match=r"are the same pipe, .*fifo\.y4m; .*Give two pipes, or a file"):
            score_files(fifo, second)


def test_a_pipe_and_a_file_are_scored(fifo: str, tmp_path: Path) -> None:
    data = y4m_bytes(clip(2, 16, 16))
    writer = threading.Thread(target=lambda: Path(fifo).write_bytes(data), daemon=True)
    writer.start()
    report = score_files(fifo, write(tmp_path / "d.y4m", data), backend="cpu", features="float_ssim=scale=1")
    writer.join(PATIENCE)
    assert len(report.frames) == 2


@pytest.mark.parametrize("words", [(), raw_flags(clip(1))])
def test_a_device_is_no_video(words: tuple[str, ...]) -> None:
    result = vkssim("score", "-r", "/dev/zero", "-d", "/dev/zero", *words, *TINY)
    assert result.exit_code == 2
    assert "/dev/zero is a character device, not a video; give a file, a pipe, or - for standard input" in result.stderr
