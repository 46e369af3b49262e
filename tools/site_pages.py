"""Hooks of the documentation's site (mkdocs.yml): pages that are generated, links out of docs/, and formulas.

The text between `<!-- generated: NAME -->` and `<!-- end -->` is for people who read a page in the repository. On the site, the
output of the generator NAME takes its place. Formulas become MathML, so that the site needs no script for them.
"""

from __future__ import annotations

import ast
import html
import inspect
import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from command_help import contexts, usage, value_name

from vkssim.cli import main
from vkssim.cli.command import Command, sections

ROOT = Path(__file__).resolve().parent.parent

BESIDE = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "bench/README.md": "project/bench.md",
    "ci/README.md": "project/ci.md",
    "fixtures/README.md": "project/fixtures.md",
    "tests/README.md": "project/tests.md",
    "tools/README.md": "project/tools.md",
    "README.md": "index.md",
    "LICENSE": "project/LICENSE",
    "examples/compare_presets.py": "project/compare_presets.py",
    "examples/super_resolve.py": "project/super_resolve.py",
    "examples/tune_filter.py": "project/tune_filter.py",
}
"""Files outside docs/ that pages lead to, and where they are on the site."""

_LESS_SOUGHT = ("adr/0", "project/")
"""Where pages begin that the search puts below guides and references."""

_GENERATED = re.compile(r"<!-- generated: (\w+) -->.*?<!-- end -->", re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
_FENCE = re.compile(r"(^ *(?:```|~~~).*?^ *(?:```|~~~) *$)", re.DOTALL | re.MULTILINE)
_FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\((.*?)\\\)|\\\[(.*?)\\\])</\1>', re.DOTALL)
_UNCONVERTED = re.compile(r">(?:&(?!#|amp;#|\w+;)|&amp;|&#x00026;|\\[a-z]+)<|<merror")
_FORMULA_STYLE = "display: flex; flex-wrap: wrap; gap: 0.4em 2.5em; padding: 0.4em 0; overflow: auto hidden"
_FETCHED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")


def on_config(config: Any) -> Any:
    """List every decision below the index of decisions, and every command and module below the page of its kind."""
    decisions = [f"adr/{page.name}" for page in sorted((ROOT / "docs" / "adr").glob("0*.md"))]
    commands = [{context.command_path: _command_page(context)} for context in _contexts()]
    modules = [{title: f"api/{name}.md"} for name, title in MODULES.items()]
    below = {
        "adr/README.md": ["adr/README.md", *decisions],
        "cli.md": [{"Overview": "cli.md"}, *commands],
        "api.md": [{"Overview": "api.md"}, *modules],
    }
    for section in config.nav:
        pages = next(iter(section.values()))
        if isinstance(pages, list):
            pages[:] = [{title: below.get(page, page)} for entry in pages for title, page in entry.items()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the files of `BESIDE` and the pages of the commands and modules to the site."""
    from mkdocs.structure.files import File

    for source, target in BESIDE.items():
        if files.get_file_from_path(target) is None:
            files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    for context in _contexts():
        files.append(File.generated(config, _command_page(context), content="\n".join(command_text(context))))
    for name, title in MODULES.items():
        lines = [f"# {title}", "", *(f"::: {public}\n" for public in public_names()[name])]
        files.append(File.generated(config, f"api/{name}.md", content="\n".join(lines)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the generated parts, and point links at the places of their files on the site."""
    place = page.file.src_uri
    if place.startswith(_LESS_SOUGHT):
        page.meta["search"] = {"boost": 0.3}
    markdown = _GENERATED.sub(lambda found: GENERATORS[found[1]](), markdown)
    source = next((source for source, target in BESIDE.items() if target == place != "index.md"), f"docs/{place}")
    pieces = _FENCE.split(markdown)
    return "".join(piece if number % 2 else _relinked(piece, source, place) for number, piece in enumerate(pieces))


def _relinked(text: str, source: str, place: str) -> str:
    """Return Markdown that stands in the file `source`, with links as they are from `place` on the site."""

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        if target not in BESIDE and not target.startswith("docs/"):
            return found[0]
        on_site = BESIDE.get(target) or target.removeprefix("docs/")
        return "](" + posixpath.relpath(on_site, posixpath.dirname(place) or ".")

    return _LINK.sub(link, text)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Write formulas as MathML. Those that stand alone break at wide gaps, or scroll, if the window is narrow.

    Raises PluginError if the converter shows a formula as its source.
    """
    from latex2mathml.converter import convert
    from mkdocs.exceptions import PluginError

    def converted(text: str, display: str) -> str:
        # GitHub has `aligned` in a formula, the converter only `align*`
        made = str(convert(html.unescape(text).strip().replace("{aligned}", "{align*}"), display=display))
        if _UNCONVERTED.search(made):
            raise PluginError(f"{page.file.src_uri}: the formula {text} is not shown as it should be")
        return re.sub(r'columnalign="(left|right)"', r'style="text-align: \1; padding-inline: 0"', made)  # as browsers have it

    def formula(found: re.Match[str]) -> str:
        inline, block = found[2], found[3]
        if inline:
            return converted(inline, "inline")
        parts = [block] if r"\begin" in block else block.split(r"\qquad")
        made = "".join(converted(part, "block") for part in parts)
        return f'<div style="{_FORMULA_STYLE}" tabindex="0">{made}</div>'

    return _FORMULA.sub(formula, content)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Raise PluginError if a page would fetch something from another server when it is read."""
    from mkdocs.exceptions import PluginError

    for found in _FETCHED.finditer(output):
        if 'rel="canonical"' not in found[0]:
            raise PluginError(f"{page.file.src_uri} fetches something from another server: {found[0]}")
    return output


# -- commands ---------------------------------------------------------------------------------------------------------


def _contexts() -> list[click.Context]:
    return list(contexts(click.Context(main, info_name="vkssim")))


def _command_page(context: click.Context) -> str:
    """Return the place of a command's page on the site."""
    return "cli/" + "-".join(context.command_path.split()[1:]) + ".md"


def _commands() -> str:
    lines = ["## Commands", "", "| command | what it does |", "|---|---|"]
    for context in _contexts():
        brief = _text(context.command.get_short_help_str(limit=200))
        lines.append(f"| [`{context.command_path}`]({_command_page(context)}) | {_cell(brief)} |")
    return "\n".join(lines)


def command_text(context: click.Context) -> Iterator[str]:
    """Yield the lines of a command's page: its examples, then the rest of its help and its options."""
    command = context.command
    first, *rest = inspect.cleandoc(command.help or "").split("\n\n")
    yield from (f"# {context.command_path}", "", _text(" ".join(first.split())), "")
    if isinstance(command, Command) and command.examples:
        yield from ("## Examples", "")
        for line, does in command.examples:
            yield from (_text(does), "", "```sh", line, "```", "")
    yield from ("## Usage", "", "```text", usage(context), "```", "")
    for paragraph in rest:
        yield from (_text(" ".join(paragraph.split())), "")
    for title, options in sections(command, context):
        yield from (f"## {title}", "", "| option | what it does |", "|---|---|")
        for option in options:
            value = "" if option.is_flag else f" {value_name(option)}"
            default = f" Default: {option.default}." if option.show_default else ""
            names = ", ".join(option.opts) + value
            yield f"| `{_cell(names)}` | {_cell(_text((option.help or '') + default))} |"
        yield ""
    yield from ("[Exit codes and environment variables](../cli.md#exit-codes) are the same for all commands.", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _text(text: str) -> str:
    """Return plain text as Markdown that shows the same; what stands between backticks stays code."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else re.sub(r"([\\*_<>\[\]])", r"\\\1", piece) for piece in pieces)


# -- schema -----------------------------------------------------------------------------------------------------------


def _schema() -> str:
    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    lines = ["| key | type | what it is |", "|---|---|---|"]
    lines += [f"| `{key}` | {kind} | {_cell(_text(what))} |" for key, kind, what in _keys(schema, "")]
    return "\n".join(lines)


def _keys(schema: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Yield each key with its path, its type and its description; those of objects and of lists of objects below them."""
    for name, entry in schema.get("properties", {}).items():
        alternatives = entry.get("anyOf", [entry])
        kinds = [kind for one in alternatives for kind in _kinds(one)]
        absent = "" if name in schema.get("required", ()) else " May be missing."
        yield f"{prefix}{name}", " or ".join(dict.fromkeys(kinds)), entry.get("description", "") + absent
        for one in alternatives:
            yield from _keys(one, f"{prefix}{name}.")
            yield from _keys(one.get("items", {}), f"{prefix}{name}[].")


def _kinds(entry: Mapping[str, Any]) -> list[str]:
    kinds = entry.get("type", "any")
    return [kinds] if isinstance(kinds, str) else [*kinds]


# -- Python -----------------------------------------------------------------------------------------------------------

MODULES = {
    "files": "Files",
    "scorer": "Frames of a pipeline",
    "arrays": "Arrays",
    "gradients": "Gradients of arrays",
    "torch": "Losses of tensors",
    "clips": "Clips",
    "options": "Options of clips",
    "search": "Searches of settings",
    "report": "Reports",
    "maps": "Maps",
    "errors": "Errors",
}
"""The pages of the Python API with their titles, in the order of the navigation."""

_PAGE_OF = {"frames.options": "options", "frames.pairing.offset": "clips", "report.results": "report", "utils.version": None}
"""The pages of names that `vkssim` takes from these modules; the rest are on the page of the first part of their module."""


def public_names() -> Mapping[str, Sequence[str]]:
    """Return the public names of each page: functions, then classes, those of `vkssim` before those of its modules."""
    pages: dict[str, list[str]] = {name: [] for name in MODULES}
    for node in ast.parse((ROOT / "vkssim" / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            page = _PAGE_OF.get(node.module, node.module.split(".")[0])
            if page is not None:
                pages[page] += [f"vkssim.{alias.name}" for alias in node.names]
    for module, file in (
        ("report", "report/__init__.pyi"),
        ("maps", "maps/__init__.py"),
        ("torch", "torch/__init__.py"),
        ("errors", "errors.py"),
    ):
        there = {name.rpartition(".")[2] for name in pages[module]}
        pages[module] += [f"vkssim.{module}.{name}" for name in _public(ROOT / "vkssim" / file) if name not in there]
    for names in pages.values():
        names.sort(key=lambda name: name.rpartition(".")[2][0].isupper())
    return pages


def _api() -> str:
    lines = ["| page | names |", "|---|---|"]
    for name, title in MODULES.items():
        lines.append(f"| [{title}](api/{name}.md) | {', '.join(f'`{public}`' for public in public_names()[name])} |")
    return "\n".join(lines)


def _public(file: Path) -> list[str]:
    """Return the public names of a module, which is not imported: PyTorch need not be there.

    They are in its `__all__`, those of a stub are what it imports from its modules.
    """
    body = ast.parse(file.read_text(encoding="utf-8")).body
    if file.suffix == ".pyi":
        imports = (node for node in body if isinstance(node, ast.ImportFrom) and node.module is not None)
        return sorted(alias.name for node in imports for alias in node.names)
    for node in body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            return [str(name) for name in ast.literal_eval(node.value)]
    raise ValueError(f"{file} has no __all__")


GENERATORS: Mapping[str, Callable[[], str]] = {"commands": _commands, "schema": _schema, "api": _api}
