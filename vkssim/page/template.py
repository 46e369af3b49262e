"""Render a template of this folder as one page that needs no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..utils.sanitize import visible
from ..utils.version import __version__
from .charts import HEIGHT, MARKERS, WIDTH

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_FOLDER = Path(__file__).parent
_SCRIPTS = (
    *("state.js", "axes.js", "charts.js", "scores.js", "ladder.js", "tables.js", "viewer.js", "saving.js", "copying.js"),
    "page.js",
)
_PACKAGES = {"jinja2": "jinja2", "PIL": "pillow", "matplotlib": "matplotlib"}  # matplotlib colours the SSIM maps
_WORD_ENDS = re.compile(r"(?<=[/_])|(?<=[:=])(?=[A-Za-z])|(?=\.[A-Za-z])")


def check_installed() -> None:
    """Raise OptionError if a package that pages need is missing. It is called before anything is scored."""
    from importlib.util import find_spec

    missing = [package for module, package in _PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise OptionError(f"an HTML page needs {', '.join(missing)}; `pip install 'vkssim[report]'` installs them")


def render_template(name: str, *, data: Any, **values: Any) -> str:
    """Return a page. All text from outside is escaped in it; `data` is what its scripts get as JSON."""
    from markupsafe import Markup

    style = (_FOLDER / "page.css").read_text(encoding="utf-8")
    script = '"use strict";\n' + "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    template = _environment().get_template(name)
    return template.render(
        version=__version__,
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(_script_data(data)),
        plot=(WIDTH, HEIGHT),
        markers=MARKERS,
        **values,
    )


@cache
def _environment() -> Environment:
    """Return the environment of the templates, which compiles each of them once."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,  # Markup is escaped already
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"breakable": _breakable, "lines": _lines}
    return environment


def _breakable(text: str) -> Markup:
    """Return a text as HTML that may break across lines after each of its words, such as the folders of a path."""
    from markupsafe import Markup

    return Markup("<wbr>").join(_WORD_ENDS.split(visible(text)))


def _lines(text: str) -> Markup:
    """Return a text as HTML with its line ends and tabs."""
    from markupsafe import Markup

    return Markup.escape(visible(text, lines=True))


def _script_data(data: Any) -> str:
    """Return JSON in which no HTML parser finds the end of a script or a comment."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy: nothing is fetched, and only this style and this script are allowed."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
