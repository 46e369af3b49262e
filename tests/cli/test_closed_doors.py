"""Test that four modules start processes, and that none connects or runs code that it read, in the source and at run time."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import TINY, python_process
from ..support.golden import clip_paths
from ..support.pictures import clip

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for folder in ("vkssim", "host", "shaders") for path in (ROOT / folder).rglob("*.py"))

MODULES = frozenset(
    (
        *("asyncio", "cloudpickle", "code", "codeop", "dbm", "dill", "ftplib", "http", "imaplib", "joblib", "marshal"),
        *("multiprocessing", "pickle", "poplib", "pty", "requests", "runpy", "shelve", "smtplib", "socket", "socketserver"),
        *("ssl", "subprocess", "telnetlib", "urllib", "webbrowser", "xmlrpc", "yaml"),
    )
)
"""Packages that are imported nowhere: they reach a network, start processes, or make objects of any kind of what they read."""

CALLS = {
    *("ProcessPoolExecutor", "concurrent.futures.ProcessPoolExecutor", "futures.ProcessPoolExecutor"),
    *("eval", "exec", "compile", "__import__", "breakpoint", "input"),
    *("os.system", "os.popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.posix_spawnp", "os.startfile"),
    *(f"os.{family}{ending}" for family in ("exec", "spawn") for ending in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    *("tempfile.mktemp", "platform.processor", "platform.platform", "platform.uname"),  # the last three start a process
}
"""What is called nowhere."""

OPEN = {
    f"vkssim/{name}": {"multiprocessing"} for name in ("engine/processes.py", "doctor/in_subprocess.py", "utils/spawning.py")
}
OPEN["vkssim/doctor/survey.py"] = {"subprocess"}
"""The modules that are there to open a door, and which: several devices have a process each, and so have the steps of `vkssim
doctor` in which a driver may crash. The doctor also asks the dynamic loader of Linux which libraries a driver lacks: the loader
lists them in place of starting Python.
"""


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, str(node.module)


def _faults(source: str, may: Collection[str] = ()) -> list[str]:
    """What a module does that none may, but for what that one `may`."""
    tree = ast.parse(source)
    faults = [f"line {line}: import {name}" for line, name in _imports(tree) if name.split(".")[0] in MODULES.difference(may)]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        options = {option.arg: ast.unparse(option.value) for option in node.keywords if option.arg in ("allow_pickle", "shell")}
        if name in CALLS.difference(may) or (name.endswith(".load") and options.get("allow_pickle", "False") != "False"):
            faults.append(f"line {node.lineno}: {name}")
        if options.get("shell", "False") != "False":
            faults.append(f"line {node.lineno}: shell")
        if name.endswith((".save", ".savez")) and name.startswith(("np.", "numpy.")) and options.get("allow_pickle") != "False":
            faults.append(f"line {node.lineno}: {name} without allow_pickle=False")
    return faults


def test_source_opens_no_door() -> None:
    names = {path.relative_to(ROOT).as_posix(): path for path in SOURCES}
    faults = {name: _faults(path.read_text(encoding="utf-8"), OPEN.get(name, ())) for name, path in names.items()}
    assert {name: found for name, found in faults.items() if found} == {}


def test_a_module_opens_just_the_doors_that_it_may() -> None:
    sources = {name: (ROOT / name).read_text(encoding="utf-8") for name in OPEN}
    unused = [(name, door) for name in OPEN for door in OPEN[name] if not _faults(sources[name], OPEN[name] - {door})]
    assert unused == []


# -- at run time ------------------------------------------------------------------------------------------------------

WATCHED = """
import json, sys

doors = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "pickle.",
         "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.", "pty.")
seen = []

def watch(event, arguments):
    if event.startswith(doors):
        seen.append([event, repr(arguments)])

sys.addaudithook(watch)
from vkssim.cli import main
found = []
for words in json.load(sys.stdin):
    main(words, standalone_mode=False)
    found.append(seen[:])
    seen.clear()
with open("seen.json", "w") as file:
    json.dump(found, file)
"""
"""Runs command lines and notes what Python's own audit events tell of; the libraries that are used are heard as well."""

CLIP = clip(2, 16, 16)
LINES = {
    "containers": (
        *("score", *map(str, clip_paths("bbb_576x324")), "--frame_cnt", "1", *TINY),
        *("-o", "scores.json", "--html", "page.html", "--map", "maps"),
    ),
    "Vulkan": ("score", "clip.yuv", "clip.yuv", *raw_flags(CLIP), "--feature", "float_psnr", "--json"),
    "csv": ("batch", "pairs.csv", *raw_flags(CLIP), *TINY, "-o", "results.csv", "--frames", "frames"),
    "parquet": ("batch", "pairs.csv", *raw_flags(CLIP), *TINY, "-o", "results.parquet", "--frames", "frames"),
    "zsh": ("completion", "zsh"),
    "bash": ("completion", "bash"),
}


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[str]]]:
    """The events of each of LINES, with their arguments."""
    folder = tmp_path_factory.mktemp("doors")
    write(folder / "clip.yuv", raw_bytes(CLIP))
    (folder / "pairs.csv").write_text("reference,distorted\nclip.yuv,clip.yuv\n")
    process = python_process("-c", WATCHED, stdin=json.dumps([*LINES.values()]).encode(), cwd=folder)
    assert process.returncode == 0, process.stderr.decode()
    assert (folder / "page.html").read_text(encoding="utf-8").count("data:image/webp") == 4
    return dict(zip(LINES, json.loads((folder / "seen.json").read_text()), strict=True))


@pytest.mark.parametrize("line", [line for line in LINES if line != "bash"])
def test_no_command_opens_a_door(doors: dict[str, list[list[str]]], line: str) -> None:
    """Containers are scored with a page and maps."""
    assert doors[line] == []


def test_completion_of_bash_alone_starts_a_process(doors: dict[str, list[list[str]]]) -> None:
    """Click asks bash for its version before it gives bash's script; it also shows that a door would be seen."""
    events = {event for event, arguments in doors["bash"] if "BASH_VERSION" in arguments}
    assert events - {"os.posix_spawn"} == {"subprocess.Popen"}  # by which Python 3.13 starts it
