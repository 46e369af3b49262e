"""A cache of open devices and engines: opening a device takes longer than most calls."""

from __future__ import annotations

import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from ..host.devices import DEVICE_VARIABLE
from .failure_policy import tried_again


class Closable(Protocol):
    """An object that has a device open."""

    def close(self) -> None:
        """Close the device."""
        ...


Thing = TypeVar("Thing", bound=Closable)
Result = TypeVar("Result")


class DeviceCache(Generic[Thing]):
    """The most recently used things, each under a key. One caller at a time uses them in place, others take and put them.

    All things are closed when the process ends. A forked child drops them, because the device belongs to its parent. A thing
    whose use fails is closed, so that the state of a failed call cannot reach the next call, unless the error is one of
    `harmless`, which leave it as it was.
    """

    def __init__(self, most: int, harmless: tuple[type[BaseException], ...] = ()) -> None:
        self._most = most
        self._harmless = harmless
        self._lock = threading.RLock()
        self._things: OrderedDict[Hashable, Thing] = OrderedDict()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def run(self, key: Hashable, make: Callable[[], Thing], action: Callable[[Thing], Result]) -> Result:
        """Return the result of `action` with the thing of a key; `make` makes it if there is none.

        If the device fails and the policy allows another try, it is called again with a new thing: the caller still has its
        input.
        """
        return tried_again(lambda: self._once(key, make, action))

    def _once(self, key: Hashable, make: Callable[[], Thing], action: Callable[[Thing], Result]) -> Result:
        with self._lock:
            thing = self.take(key) or make()
            try:
                result = action(thing)
            except BaseException as error:
                if isinstance(error, self._harmless):
                    self.put(key, thing)
                else:
                    thing.close()
                raise
            self.put(key, thing)
            return result

    def take(self, key: Hashable) -> Thing | None:
        """Return the thing of a key, which belongs to the caller from then on; None, and room for another, if there is none."""
        with self._lock:
            thing = self._things.pop((key, os.environ.get(DEVICE_VARIABLE)), None)
            if thing is None:
                self._close_all_but(self._most - 1)
            return thing

    def put(self, key: Hashable, thing: Thing) -> None:
        """Keep a thing that nobody uses. Any other thing of its key is closed."""
        with self._lock:
            other = self._things.pop((key, os.environ.get(DEVICE_VARIABLE)), None)
            if other is not None:
                other.close()
            self._close_all_but(self._most - 1)
            self._things[key, os.environ.get(DEVICE_VARIABLE)] = thing

    def _close_all_but(self, left: int) -> None:
        while len(self._things) > left:
            self._things.popitem(last=False)[1].close()

    def each(self, action: Callable[[Thing], object]) -> None:
        """Call `action` with each open thing."""
        with self._lock:
            for thing in self._things.values():
                action(thing)

    def close(self) -> None:
        """Close everything."""
        with self._lock:
            self._close_all_but(0)

    def forget(self) -> None:
        """Drop everything without closing it, and the lock too: in a fork, a thread that does not exist may hold it."""
        self._lock = threading.RLock()
        self._things = OrderedDict()
