"""The docstrings of the public API: numpydoc's checks hold, and their examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

MODULES = ("vkssim", "vkssim.report", "vkssim.maps", "vkssim.torch", "vkssim.errors")
LEFT_OUT = {
    "GL02": "ruff's D413 wants a blank line after the last section",
    "GL03": "ruff's D413 wants a blank line after the last section",
    "ES01": "a summary that says all needs no second paragraph",
    "SA01": "names between backticks lead to what belongs together",
    "EX01": "pages have the examples; those that docstrings have run here",
}
"""The checks that do not count, each with the reason."""


def _public() -> Iterator[Any]:
    """Yield the name and the object of every public function and class, and of the public methods of these."""
    for module in MODULES:
        names = importlib.import_module(module)
        for name in names.__all__:
            found = getattr(names, name)
            if inspect.isfunction(found) or inspect.isclass(found):
                yield pytest.param(f"{module}.{name}", found, id=f"{module}.{name}")
            if inspect.isclass(found):
                for method, value in vars(found).items():
                    if not method.startswith("_") and (inspect.isfunction(value) or isinstance(value, property | classmethod)):
                        yield pytest.param(f"{module}.{name}.{method}", value, id=f"{module}.{name}.{method}")


PUBLIC = list(_public())


def test_numpydoc_has_nothing_to_say() -> None:
    """Parameters, results and errors are in sections, with types and whole sentences."""
    errors = {one.id: validate(get_doc_object(one.values[1]))["errors"] for one in PUBLIC}
    assert [f"{name}: {code} {text}" for name, found in errors.items() for code, text in found if code not in LEFT_OUT] == []


@pytest.mark.usefixtures("shared_device")
@pytest.mark.parametrize(("name", "found"), [one for one in PUBLIC if ">>>" in (one.values[1].__doc__ or "")])
def test_examples_run(name: str, found: Any) -> None:
    run = doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE)
    (example, *_) = doctest.DocTestFinder(recurse=False).find(found, name, globs={})
    result = run.run(example)
    assert (result.failed, result.attempted > 0) == (0, True)
