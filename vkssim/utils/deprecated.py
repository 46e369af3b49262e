"""Redirect old names of modules to the new ones for one version, with a DeprecationWarning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any


def moved(old: str, new: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module `old` whose content has moved to `new`.

    The new module is imported at the first access, so that the old one may lie in a lower layer.
    """

    def attribute(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        value = getattr(import_module(new), name)
        warnings.warn(f"{old} is deprecated; {name} is in {new}", DeprecationWarning, stacklevel=2)
        return value

    return attribute
