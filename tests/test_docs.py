"""The pages: their Python prints what is below it, vkssim accepts all command lines, names exist.

`ci/docs` checks the links, and runs tests/page_commands.py: commands print the numbers below them.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click
import imageio_ffmpeg
import pytest

from vkssim.cli import main

from .ladder.ladders import encode
from .support.commands import run_program
from .support.pages import BLOCK, DOCS, PAGES, ROOT, check_shown, page_blocks
from .support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

ALL = sorted(
    [*PAGES, *DOCS.glob("adr/*.md"), *(ROOT / name for name in ("CONTRIBUTING.md", "fixtures/README.md", "tests/README.md"))]
)

NUMBER = re.compile(r"\d+\.\d+")
DOTTED = re.compile(r"`((?:vkssim|host|shaders)(?:\.[A-Za-z_]\w*)+)(?=[`(\[ =])")
"""A dotted name of the package, alone or as a call."""
ELSEWHERE = ("s3://", 'device="all"', "vapoursynth")
"""Things that a block of Python needs and a test lacks: cloud storage, several GPUs, another program. It is only compiled."""

CLIPS = ("reference", "distorted", "bbb", *(f"bbb_x264_{crf}" for crf in (18, 24, 30)))


def _command_lines(page: Path) -> Iterator[str]:
    """The command lines of vkssim that a page shows, each on one line and without the prompt."""
    for text in page_blocks(page, "", "sh", "bash", "yaml"):
        for line in text.replace("\\\n", " ").splitlines():
            found = re.match(r"(?:\$ |\s*- run: )?(?:\S*/)?vkssim (?P<words>[a-z][a-z-]* .*)", line)
            if found:
                yield found["words"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the fixtures and with clips of the names that pages use: 30 frames, one a second."""
    made = tmp_path_factory.mktemp("docs")
    (made / "fixtures").symlink_to(ROOT / "fixtures")
    first = made / "reference.mp4"
    encode(first, clip(30, 192, 192), "libx264", Fraction(1))
    for name in CLIPS[1:]:
        (made / f"{name}.mp4").symlink_to(first)
    return made


def _ffmpeg_lines(page: Path) -> list[str]:
    """The command lines of FFmpeg that a page shows by themselves."""
    return [
        line for text in page_blocks(page, "", "sh") for line in text.splitlines() if re.match(r"(\$ )?ffmpeg [^|]*$", line)
    ]


FFMPEG_PAGES = [page for page in PAGES if _ffmpeg_lines(page)]


@pytest.mark.parametrize("page", FFMPEG_PAGES, ids=lambda page: page.name)
def test_ffmpeg_takes_the_command_lines_of_the_page(page: Path, folder: Path, tmp_path: Path) -> None:
    """tests/test_other_tools.py runs those that are parts of pipes and loops."""
    for entry in folder.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    for line in _ffmpeg_lines(page):
        words = shlex.split(line.removeprefix("$ "))
        *options, output = words[1:]
        first = "-frames:v", "16", output  # which takes a third of the time of the whole clip
        process = run_program(imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-y", *options, *first, cwd=tmp_path, text=True)
        assert process.returncode == 0, f"{line}\n{process.stderr}"
        assert "deprecated" not in process.stderr, line
        made = tmp_path / (words[-1].replace("%04d", "0001"))
        assert made.stat().st_size > 0


PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
PYTHON_PAGES = [page for page in PAGES if page_blocks(page, "python")]


@pytest.mark.parametrize("page", PYTHON_PAGES, ids=lambda page: page.name)
def test_python_prints_what_the_page_shows(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of a page run one after the other, as one types them; a block without language below one is its output."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "page"}
    blocks = PYTHON.findall(page.read_text("utf-8"))
    assert len(blocks) == len(page_blocks(page, "python"))
    for code, shown in blocks:
        compiled = compile(code, page.name, "exec")
        if not any(needed in code for needed in ELSEWHERE):
            exec(compiled, names)
            printed = capsys.readouterr().out
            if shown:
                assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
                check_shown(shown, printed, page.name)


@pytest.mark.parametrize("page", [page for page in PAGES if any(_command_lines(page))], ids=lambda page: page.name)
def test_command_lines_can_be_parsed(page: Path) -> None:
    for line in _command_lines(page):
        words = shlex.split(re.split(r" [<>|] ?", line)[0], comments=True)
        command = main.get_command(click.Context(main), words[0])
        assert command is not None, line
        try:
            command.make_context(words[0], words[1:])
        except click.exceptions.Exit:
            pass  # of --help and the like
        except click.ClickException as error:
            pytest.fail(f"{page.name}: vkssim {line}: {error.format_message()}")


def test_names_of_the_package_can_be_imported() -> None:
    names = {name for page in ALL for name in DOTTED.findall(BLOCK.sub("", page.read_text("utf-8")))}
    assert "vkssim.Scorer" in names, "the pattern finds names"
    for name in names:
        resolve_name(name if name.startswith("vkssim.") else f"vkssim.{name}")


MAX_WORDS_OF_A_DECISION = 700


def test_a_decision_is_a_page() -> None:
    words = {page.name: len(page.read_text("utf-8").split()) for page in DOCS.glob("adr/0*.md")}
    assert [it for it in words.items() if it[1] > MAX_WORDS_OF_A_DECISION] == []


# -- where things are: the layers that import-linter checks, and files that are there ----------------------------------------

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
LAYERS = [line.split(" | ") for line in LINTER["contracts"][0]["layers"]]
PLACEHOLDER = re.compile(r"NAME|KERNEL|METRIC")
PATH = re.compile(r"`((?:vkssim|host|shaders|tests|scripts|bench|tools|ci|docs|fixtures|examples)/[\w./*-]*)(?=[` :])")
GUIDES = sorted(
    {
        *PAGES,
        *(ROOT / name for name in ("CONTRIBUTING.md", "bench/README.md", "ci/README.md", "tests/README.md", "tools/README.md")),
    }
)


def test_the_drawing_has_the_layers_from_the_top_down() -> None:
    drawing = re.search(r"```\n(.*?)```", ARCHITECTURE, re.DOTALL)
    assert drawing is not None
    lines = [re.split(r"\s{3,}", line.strip())[0] for line in drawing[1].splitlines() if "───" not in line]
    assert [re.split(r"\s*│\s*", line) for line in lines] == LAYERS


def test_every_layer_has_one_sentence() -> None:
    section = ARCHITECTURE.split("\n## ")[1]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE)
    assert [name for name, _ in rows] == [name for line in LAYERS for name in line]
    assert all(sentence.endswith(".") for _, sentence in rows)


def test_every_file_that_a_page_names_is_there() -> None:
    named = {(page.name, path) for page in GUIDES for path in PATH.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 100, "the pattern finds paths"
    assert [it for it in named if not PLACEHOLDER.search(it[1]) and not any(ROOT.glob(it[1]))] == []
