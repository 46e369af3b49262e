"""The example that compares two presets, on tiny clips."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ..support.children import in_child
from ..support.commands import TINY, vkssim

compare_presets = import_module("compare_presets")


def test_the_day_of_an_engineer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From an empty folder to a page with both ladders, a BD-rate for each clip, and gates: one open, one closed."""

    encodes: list[Callable[[], None]] = []

    @in_child
    def encode_all() -> None:
        for encode in encodes:
            encode()

    def run(folder: Path, *words: str) -> None:
        if encodes:
            encode_all()
            encodes.clear()
        monkeypatch.chdir(folder)
        result = vkssim(*words)
        click.echo(f"{words[0]} {result.exit_code}\n{result.output}")

    monkeypatch.setattr(compare_presets, "vkssim", run)
    encode = compare_presets.encode
    monkeypatch.setattr(compare_presets, "encode", lambda *clip, **options: encodes.append(partial(encode, *clip, **options)))
    words = ["--clips", "2", "--frames", "6", "--height", "64", "--preset", "ultrafast", "slow", "--score", " ".join(TINY)]
    folder = tmp_path / "new"
    result = CliRunner().invoke(compare_presets.main, [str(folder), *words, "--crf", "24", "--crf", "30", "--crf", "36"])
    assert result.exit_code == 0, result.output
    assert re.findall(r"^(\S+) (\d)$", result.output, re.MULTILINE) == [
        ("batch", "0"),
        ("bd-rate", "0"),
        ("batch", "0"),
        ("compare", "1"),
    ]
    assert len(re.findall(r"│ clip\d.mkv │ float_ssim │ -", result.output)) == 2, "the slower preset needs less"
    assert "of 12 pairs fell too far" in result.output
    page = (folder / "page.html").read_text()
    assert re.search(r"<title>slow needs [^ ]+ less bit rate than ultrafast for the same float_ssim", page)
    assert "all 2 titles better" in page
