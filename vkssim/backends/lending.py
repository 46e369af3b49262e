"""Staging memory that a caller writes to itself, and keeps views of for as long as it likes."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import FrameError
from ..types import Samples

_OWN_REFERENCES = 2  # to the base of an array that is lent: that array's own, and the one under which it is counted


class _Lease:
    """The memory of one array that is lent. NumPy keeps it alive for as long as any view of the array lives."""

    owner: object = None

    def __init__(self, memory: Samples) -> None:
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__


class _Owner:
    """Stands for the memory that several leases are of; when the last of them ends it is freed."""


class Lending:
    """Lends arrays over staging memory until they are taken back, and keeps the memory for as long as a view of it lives."""

    def __init__(self) -> None:
        self._leases: weakref.WeakSet[_Lease] = weakref.WeakSet()
        self._lent: tuple[Samples, ...] = ()

    def lend(self, memory: Sequence[Samples]) -> tuple[Samples, ...]:
        """Return arrays to be written over `memory`; the same ones until they are taken back."""
        self._lent = self._lent or tuple(map(self._array, memory))
        return self._lent

    def _array(self, memory: Samples) -> Samples:
        lease = _Lease(memory)
        self._leases.add(lease)
        # A view, so that it has a base of its own: every other view of the memory has the same base, and can be counted.
        view: Samples = np.asarray(lease)[:]
        return view

    def take_back(self) -> None:
        """Make the arrays read-only.

        Raises FrameError where an array that was made from one of them still lives: NumPy would let it write on.
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
        """Call `free`, which gives the memory back: at once, or when the last view of the memory has gone."""
        self._lent = ()
        leases = list(self._leases)
        if not leases:
            free()
            return
        owner = _Owner()
        for lease in leases:
            lease.owner = owner
        weakref.finalize(owner, free).atexit = False
