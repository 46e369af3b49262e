"""The version of vkssim, stated in this one place, and the libraries of its extras."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import OptionError

__version__ = "0.1.0"


def require_extra(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an extra. Raises OptionError, which names the command that installs it, if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise OptionError(f"{purpose} needs {module} ({error}); `pip install 'vkssim[{extra}]'` installs it") from None
