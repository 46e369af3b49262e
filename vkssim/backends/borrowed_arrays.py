"""Lend staging memory to a caller who writes to it directly and may keep views of it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import FrameError
from ..types import Samples

_OWN_REFERENCES = 2  # references to the base of a lent array: that of the array, and that of the code that counts


class _Owner:
    """The owner of the memory of several leases. The memory is freed when the last lease ends."""


class _Lease:
    """The memory of one lent array. NumPy keeps it alive as long as a view of the array exists."""

    def __init__(self, memory: Samples, owner: _Owner) -> None:
        self._memory, self._owner = memory, owner
        self.__array_interface__ = memory.__array_interface__


class Lending:
    """Arrays over staging memory that are lent until they are taken back. The memory exists as long as a view of it."""

    def __init__(self) -> None:
        self._owner = _Owner()
        self._lent: tuple[Samples, ...] = ()

    def lend(self, memory: Sequence[Samples]) -> tuple[Samples, ...]:
        """Return writable arrays over `memory`; further calls return the same arrays until they are taken back."""
        self._lent = self._lent or tuple(map(self._array, memory))
        return self._lent

    def _array(self, memory: Samples) -> Samples:
        # This is a view, so that it has its own base. All other views of the memory have the same base and can be counted.
        view: Samples = np.asarray(_Lease(memory, self._owner))[:]
        return view

    def take_back(self) -> None:
        """Make the arrays read-only.

        Raises FrameError if an array that was made from one of them still exists, because NumPy would still allow writing to
        it.
        """
        if any(sys.getrefcount(array.base) > _OWN_REFERENCES for array in self._lent):
            raise FrameError(
                "another array still shares the memory of a reserved frame, and writing to it would change the score: delete"
                " arrays that you made from the reserved ones, such as slices, before commit()"
            )
        for array in self._lent:
            array.flags.writeable = False
        self._lent = ()

    def close(self, free: Callable[[], None]) -> None:
        """Call `free`, which releases the memory: at once, or when the last view of the memory is gone."""
        self._lent = ()
        owner, self._owner = weakref.ref(self._owner), _Owner()
        still_lent = owner()
        if still_lent is None:
            free()
        else:
            weakref.finalize(still_lent, free).atexit = False
