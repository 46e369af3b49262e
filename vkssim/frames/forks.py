"""Keep decoders alive in a forked child, which lacks FFmpeg's threads: closing a decoder would wait for them for ever."""

from __future__ import annotations

import os
from typing import Any
from weakref import WeakKeyDictionary

_decoders: WeakKeyDictionary[object, Any] = WeakKeyDictionary()


def keep_in_forks(source: object, decoder: Any) -> None:
    """Keep the decoder of a source in forks that happen while the source is there: closing it there would hang."""
    _decoders[source] = decoder


def keep_no_longer(source: object) -> None:
    """Forget the decoder of a source that is closed; forks that there are keep it."""
    _decoders.pop(source, None)


def _in_child() -> None:
    import ctypes

    for decoder in _decoders.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(decoder))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
