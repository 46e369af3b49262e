"""Test the pages that tools/site_pages.py adds to the documentation's site. `ci/docs` builds the site itself."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import SimpleNamespace

import click
import site_pages

from vkssim.cli import main

ROOT = Path(__file__).resolve().parents[1]


def _page(name: str) -> str:
    """Return the Markdown of a page as the site has it."""
    page = SimpleNamespace(file=SimpleNamespace(src_uri=name), meta={})
    return str(site_pages.on_page_markdown((ROOT / "docs" / name).read_text(encoding="utf-8"), page))


def test_every_command_has_a_page_with_every_option() -> None:
    text = _page("cli.md")
    top = click.Context(main, info_name="vkssim")
    for name in main.list_commands(top):
        command = main.get_command(top, name)
        assert command is not None
        page = "\n".join(site_pages.command_text(click.Context(command, info_name=name, parent=top)))
        assert page.startswith(f"# vkssim {name}\n")
        assert f"| [`vkssim {name}`](cli/{name}.md) | " in text
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert f"| `{', '.join(option.opts)}" in page


def test_every_key_of_the_schema_is_in_the_reference() -> None:
    rows = re.findall(r"^\| `(\S+)` \|", _page("formats.md"), re.MULTILINE)
    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    assert set(schema["properties"]) <= set(rows)
    assert {"frames[].frameNum", "scoring.features[].options", "scoring.reference.codec"} <= set(rows)
    assert len(set(rows)) == len(rows)


def test_every_public_name_is_on_a_page_and_score_files_is_first() -> None:
    pages = site_pages.public_names()
    names = [name for page in pages.values() for name in page]
    modules = {"errors", "maps", "report", "__version__"}
    assert len(set(names)) == len(names)
    assert names[0] == "vkssim.score_files"
    assert {f"vkssim.{name}" for name in set(importlib.import_module("vkssim").__all__) - modules} <= set(names)
    assert set(importlib.import_module("vkssim.report").__all__) <= {name.rpartition(".")[2] for name in pages["report"]}
    assert {"vkssim.torch.ms_ssim", "vkssim.errors.DeviceLostError"} <= set(names)
    overview = _page("api.md")
    assert all(f"](api/{name}.md)" in overview for name in site_pages.MODULES)


def test_a_command_shows_its_examples_first() -> None:
    command = main.get_command(click.Context(main), "score")
    assert command is not None
    lines = [
        *site_pages.command_text(click.Context(command, info_name="score", parent=click.Context(main, info_name="vkssim")))
    ]
    assert [line for line in lines if line.startswith("## ")][:2] == ["## Examples", "## Usage"]
