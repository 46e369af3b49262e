"""Wrap a source: a wrapper has every attribute of the source that it does not define itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..types import Planes
from .source import FrameSource


class _Forwarded:
    """An attribute or a method that a wrapper takes from its source, unless one was set on the wrapper."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, wrapper: WrappedSource | None, owner: type[WrappedSource]) -> Any:
        return self if wrapper is None else getattr(wrapper.source, self._name)


class WrappedSource(FrameSource):
    """A source that gives what another one has, as it is at that time; subclasses define what differs.

    `source` is the other one.
    """

    def __init__(self, source: FrameSource) -> None:
        self.source = source

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """See FrameSource.read."""
        return self.source.read(numbers, targets)

    def close(self) -> None:
        """Close the source."""
        self.source.close()


ATTRIBUTES = frozenset(name for name in (*vars(FrameSource), *FrameSource.__annotations__) if not name.startswith("_"))
"""The names of all that a source offers."""

for _name in ATTRIBUTES - vars(WrappedSource).keys():
    setattr(WrappedSource, _name, _Forwarded(_name))
