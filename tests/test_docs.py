"""The pages: their commands and their Python print the numbers below them, vkssim accepts all command lines, names exist.

tests/README.md describes the form of a block whose commands are run. `ci/docs` checks the links.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
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
from .support.commands import run_program, vkssim
from .support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.glob("*.md")])
ALL = sorted(
    [*PAGES, *DOCS.glob("adr/*.md"), *(ROOT / name for name in ("CONTRIBUTING.md", "fixtures/README.md", "tests/README.md"))]
)

NUMBER = re.compile(r"\d+\.\d+")
SCORE = re.compile(r"(?<![\w.])-?\d+\.(?:\d{2,}(?![\w.])|\d(?= ?%))")
"""A number of two decimals or more, or a percentage. Seconds and frames a second, which differ by run, have one decimal."""
SHOWN = re.compile(rf"{SCORE.pattern}|(?<![\w.])[A-Za-z_]{{2,}}(?![\w.])")
"""A score or a word."""
MESSAGE = re.compile(r"^vkssim: .*", re.MULTILINE)
RESULT = re.compile(r"^(?!vkssim: |.* frames/s on ).*", re.MULTILINE)
"""A line of a result, except the one that names the device."""
DOTTED = re.compile(r"`((?:vkssim|host|shaders)(?:\.[A-Za-z_]\w*)+)(?=[`(\[ =])")
"""A dotted name of the package, alone or as a call."""
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

ELSEWHERE = ("s3://", 'device="all"', "vapoursynth")
"""Things that a block of Python needs and a test lacks: cloud storage, several GPUs, another program. It is only compiled."""

CLIPS = ("reference", "distorted", "bbb", *(f"bbb_x264_{crf}" for crf in (18, 24, 30)))


def _blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in BLOCK.findall(page.read_text("utf-8")) if language in languages]


def _command_lines(page: Path) -> Iterator[str]:
    """The command lines of vkssim that a page shows, each on one line and without the prompt."""
    for text in _blocks(page, "", "sh", "bash", "yaml"):
        for line in text.replace("\\\n", " ").splitlines():
            found = re.match(r"(?:\$ |\s*- run: )?(?:\S*/)?vkssim (?P<words>[a-z][a-z-]* .*)", line)
            if found:
                yield found["words"]


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
        for text in _blocks(page, "", "sh"):
            if MAKES_CLIPS.match(text):
                for part in re.split(r"^((?:\$ )?vkssim (?:[^\n]*\\\n)*[^\n]*\n)", text, flags=re.MULTILINE):
                    printed = self.run(re.sub(r"^\$ ", "", part, flags=re.MULTILINE).strip())
                    assert self.status == 0, f"{part}\n{printed}"

    def _bash(self, script: str) -> Any:
        path = {"PATH": f"{self.folder / 'programs'}:{os.environ['PATH']}"}
        return run_program("bash", "-o", "pipefail", "-c", script, cwd=self.folder, environment=path, text=True)


RUN_PAGES = [page for page in PAGES if any(COMMAND.search(text) for text in _blocks(page, "", "sh"))]


@pytest.mark.parametrize("page", RUN_PAGES, ids=lambda page: page.name)
def test_commands_print_the_numbers_that_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, to the last decimal. Blocks that make clips come first, those of other pages among them."""
    monkeypatch.chdir(tmp_path)
    shell = Shell(tmp_path)
    blocks = [text for text in _blocks(page, "", "sh") if COMMAND.search(text) and not MAKES_CLIPS.match(text)]
    for maker in {DOCS / "start.md", *([DOCS / "ladders.md"] if "bbb_x26" in "".join(blocks) else []), page}:
        shell.make_clips(maker)
    for text in blocks:
        before, *pairs = COMMAND.split(text)
        assert before == "", f"output without a command: {before}"
        for command, shown in zip(pairs[::2], pairs[1::2], strict=True):
            printed = shell.run(command)
            assert shell.status < 2 or "vkssim: " in shown, f"{page.name}: {command}\n{printed}"
            _check_shown(shown, printed, f"{page.name}: {command}")


def _check_shown(shown: str, printed: str, name: str) -> None:
    """Compare words and numbers with those that were printed: the same, in the same order; the page may leave some out.

    Messages and results are two streams, which a terminal may mix in another way.
    """
    for stream in (MESSAGE, RESULT):
        left = iter(SHOWN.findall("\n".join(stream.findall(printed))))
        for text in SHOWN.findall("\n".join(stream.findall(shown))):
            assert any(_is_alike(text, other) for other in left), f"{name}\n{text} is not in\n{printed}"


def _is_alike(text: str, other: str) -> bool:
    """Return whether two words are equal, or two numbers to the last decimal of the first; devices differ by up to 1e-6."""
    if not (SCORE.fullmatch(text) and SCORE.fullmatch(other)):
        return text == other
    unit = max(10.0 ** -len(text.partition(".")[2]), 1e-6)
    return abs(float(text) - float(other)) < 1.5 * unit


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
    return [line for text in _blocks(page, "", "sh") for line in text.splitlines() if re.match(r"(\$ )?ffmpeg [^|]*$", line)]


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
PYTHON_PAGES = [page for page in PAGES if _blocks(page, "python")]


@pytest.mark.parametrize("page", PYTHON_PAGES, ids=lambda page: page.name)
def test_python_prints_what_the_page_shows(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of a page run one after the other, as one types them; a block without language below one is its output."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "page"}
    blocks = PYTHON.findall(page.read_text("utf-8"))
    assert len(blocks) == len(_blocks(page, "python"))
    for code, shown in blocks:
        compiled = compile(code, page.name, "exec")
        if not any(needed in code for needed in ELSEWHERE):
            exec(compiled, names)
            printed = capsys.readouterr().out
            if shown:
                assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
                _check_shown(shown, printed, page.name)


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
