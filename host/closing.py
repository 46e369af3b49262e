"""Close what was opened: at the end of a `with` statement, and if a constructor fails halfway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, Self


class _HasClose(Protocol):
    def close(self) -> object: ...


class Closable(Protocol):
    """An object that can be closed, and that a `with` statement closes at its end."""

    def close(self) -> None:
        """Close it; a second call does nothing."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextmanager
def closing_on_error(opened: _HasClose) -> Iterator[None]:
    """Close an object, such as the stack of a constructor, if the `with` block raises."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
