"""`ci/prose`: each habit is found in the kind of text that its rule is for, and plain sentences pass."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    loader = SourceFileLoader("prose", str(ROOT / "ci" / "prose"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    script = module_from_spec(spec)
    loader.exec_module(script)
    return script


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("page.md", "It reads it by\nwhat the driver says.", "by what"),
        ("code.py", '"""Define the formats of frames."""\n', "begin with a noun that says what the module is"),
        ("code.py", 'class A:\n    """Format a number."""\n', "begin with a noun that says what the class is"),
        ("code.py", 'def a():\n    """Return the size, None\n    where there is none."""\n', "None where"),
        ("code.py", "A = 1  # it continues\n# behind the frames\n", "behind the"),
        ("code.comp", "// The kernel\n// knows its size.\n", "kernel knows"),
        ("code.js", "let a = 1; // whether it is another one\n", "another one"),
        ("page.md", "The message says where it is.\n\n```\nby what\n```\n\nThe option `bitrate` and ``None where``.", None),
        ("code.py", 'A = "by what"\n\n\ndef a():\n    """Hold a frame, if any."""\n', None),
        ("code.comp", "float color = 1.0 / x;\n", None),
    ],
)
def test_habits_are_found_and_plain_sentences_pass(
    prose: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, text: str, found: str | None
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / name).write_text(text)
    lines = list(prose.matches(tmp_path / name))
    assert lines == [] if found is None else any(found in line for line in lines)
