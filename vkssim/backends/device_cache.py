"""A cache of things on open devices, because opening a device takes longer than most calls, and the policy if one fails."""

from __future__ import annotations

import atexit
import itertools
import os
import threading
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from ..errors import DeviceError, DeviceLostError, DeviceMemoryError
from ..host.devices import DEVICE_VARIABLE
from ..utils.thread_pool import Closable

Result = TypeVar("Result")


class FailurePolicy:
    """The failures of one call or one task, and the policy: what is tried again on the same device, and with which batches.

    =================  =============================================================================================
    a device that      what happens
    =================  =============================================================================================
    is lost            It is opened again, once for each call or task. It is lost for good at the second time.
    runs out of        Batches of half as many frames are used, down to one frame. If not even the first batch fits, the
    memory             backend has halved them already while it was opened.
    does not answer    It is not used again in this process: its work cannot be stopped.
    fails otherwise    Nothing is tried again: it would fail again.
    =================  =============================================================================================

    Work that came from a pipe is not tried again, because it cannot be read again. If there are several devices, the others
    take over the work of one that is lost or does not answer; see `engine.scheduler`.

    `batch` is the number of frames of a batch, None until it is known.
    """

    def __init__(self, batch: int | None = None) -> None:
        self.batch = batch
        self._lost = False

    def allows_another_try(self, error: BaseException) -> bool:
        """Return whether the work that ended with an error is tried again; `batch` is then smaller, if that may help."""
        if isinstance(error, DeviceLostError) and not self._lost:
            self._lost = True
            return True
        if isinstance(error, DeviceMemoryError) and self.batch is not None and self.batch > 1:
            self.batch //= 2
            return True
        return False


def with_retries(action: Callable[[], Result]) -> Result:
    """Return the result of an action, which is called again if a device fails and the policy allows another try."""
    policy = FailurePolicy()
    while True:
        try:
            return action()
        except DeviceError as error:
            if not policy.allows_another_try(error):
                raise


Thing = TypeVar("Thing", bound=Closable)


class _Entry(Generic[Thing]):
    """A thing of a cache, which is made at its first use."""

    def __init__(self) -> None:
        self.thing: Thing | None = None
        self.last_use = 0
        """The number of its last use among those of the cache."""
        self.users: list[int] = []
        """The threads that use it or wait for it, once for each use."""
        self.is_dropped = False
        """Whether it left the cache while it was used; its last user closes it."""
        self.lock = threading.RLock()
        """The lock of the thread that makes it and, unless it is shared, of the thread that uses it."""

    def close(self) -> None:
        with self.lock:
            thing, self.thing = self.thing, None
            if thing is not None:
                thing.close()


class DeviceCache(Generic[Thing]):
    """The most recently used things, each under a key.

    One thread at a time uses a thing, unless things are `shared`; threads that use different things do not wait for each other.
    At most `most` things are kept, and more only while they are in use.

    If a use fails, its thing is closed, so that the state of a failed call cannot reach the next call, unless `outlives` says
    that the error left it as it was.

    All things are closed when the process ends. A forked child drops them, because the device belongs to its parent.
    """

    def __init__(
        self,
        most: int,
        *,
        shared: bool = False,
        outlives: Callable[[Thing, BaseException], bool] = lambda _thing, _error: False,
    ) -> None:
        self._most = most
        self._shared = shared
        self._outlives = outlives
        self.forget()
        _caches.add(self)

    def run(self, key: Hashable, make: Callable[[], Thing], action: Callable[[Thing], Result]) -> Result:
        """Return the result of `action` with the thing of a key; `make` makes it if there is none.

        If the device fails and the policy allows another try, it is called again with a new thing: the caller still has its
        input.
        """
        return with_retries(lambda: self.use(key, make, action))

    def use(self, key: Hashable, make: Callable[[], Thing], action: Callable[[Thing], Result]) -> Result:
        """Return the result of `action` as `run` does, without another try."""
        while True:
            entry = self._enter(key)
            try:
                with entry.lock:
                    if entry.is_dropped:  # while this thread waited for it
                        continue
                    if entry.thing is None:
                        entry.thing = make()
                    thing = entry.thing
                    if not self._shared:
                        return self._act(entry, thing, action)
                return self._act(entry, thing, action)
            finally:
                self._leave(entry)

    def _act(self, entry: _Entry[Thing], thing: Thing, action: Callable[[Thing], Result]) -> Result:
        try:
            return action(thing)
        except BaseException as error:
            if not self._outlives(thing, error):
                self._drop(entry)
            raise

    def _enter(self, key: Hashable) -> _Entry[Thing]:
        """Return the entry of a key with one user more. It is the most recent entry from then on."""
        place = key, os.environ.get(DEVICE_VARIABLE)
        with self._state:
            entry = self._entries.get(place)
            if entry is None:
                unused = self._pop_idle(self._most - 1)
                entry = self._entries[place] = _Entry()
            else:
                unused = []
            entry.last_use = next(self._uses)
            entry.users.append(threading.get_ident())
        try:
            _close(unused)
        except BaseException:  # Ctrl-C, or a device that fails
            self._leave(entry)
            raise
        return entry

    def _leave(self, entry: _Entry[Thing]) -> None:
        with self._state:
            entry.users.remove(threading.get_ident())
            if entry.thing is None:  # it could not be made
                self._drop(entry)
            unused = self._pop_idle(self._most)
            if entry.is_dropped and not entry.users:
                unused.append(entry)
            self._left.notify_all()
        _close(unused)

    def _drop(self, entry: _Entry[Thing]) -> None:
        with self._state:
            entry.is_dropped = True
            for key in [key for key, kept in self._entries.items() if kept is entry]:
                del self._entries[key]

    def _pop_idle(self, left: int) -> list[_Entry[Thing]]:
        """Remove unused entries, the oldest first, until `left` are there. The caller holds the lock, and closes them later."""
        surplus = len(self._entries) - left
        if surplus <= 0:
            return []
        idle = [key for key, entry in self._entries.items() if not entry.users]
        idle.sort(key=lambda key: self._entries[key].last_use)
        return [self._entries.pop(key) for key in idle[:surplus]]

    def take(self, key: Hashable) -> Thing | None:
        """Return the thing of a key, which belongs to the caller from then on; None, and room for another, if there is none."""
        place = key, os.environ.get(DEVICE_VARIABLE)
        with self._state:
            entry = self._entries.get(place)
            if entry is not None and not entry.users:
                return self._entries.pop(place).thing
            unused = self._pop_idle(self._most - 1)
        _close(unused)
        return None

    def put(self, key: Hashable, thing: Thing) -> None:
        """Keep a thing that nobody uses. Any other thing of its key is closed."""
        made: _Entry[Thing] = _Entry()
        made.thing, made.last_use = thing, next(self._uses)
        place = key, os.environ.get(DEVICE_VARIABLE)
        with self._state:
            old = self._entries.pop(place, None)
            unused = self._pop_idle(self._most - 1)
            if old is not None and old.users:
                old.is_dropped = True
            elif old is not None:
                unused.append(old)
            self._entries[place] = made
        _close(unused)

    def close_oldest(self) -> bool:
        """Close the thing that nobody uses and that was used longest ago; return False if there is none."""
        with self._state:
            unused = self._pop_idle(len(self._entries) - 1)
        _close(unused)
        return bool(unused)

    def __len__(self) -> int:
        return len(self._entries)

    def each(self, action: Callable[[Thing], object]) -> None:
        """Call `action` with each open thing, while no other thread uses it."""
        with self._state:
            entries = list(self._entries.values())
        for entry in entries:
            with entry.lock:
                if entry.thing is not None:
                    action(entry.thing)

    def close(self) -> None:
        """Close everything, each thing after its use.

        This thread uses nothing by now. If Ctrl-C came right before `_leave`, it is still among the users.
        """
        this = threading.get_ident()
        with self._state:
            entries = list(self._entries.values())
            for entry in entries:
                self._drop(entry)
            self._left.wait_for(lambda: all(user == this for entry in entries for user in entry.users))
        _close(entries)

    def forget(self) -> None:
        """Drop everything without closing it, and the lock too: in a fork, a thread that does not exist may hold it."""
        # `with` takes the lock itself: that of a Condition is released in Python's code, before which Ctrl-C may come.
        self._state = threading.RLock()
        self._left = threading.Condition(self._state)
        # Not an OrderedDict, whose links are wrong for good after Ctrl-C in the `__hash__` of a key.
        self._entries: dict[Hashable, _Entry[Thing]] = {}
        self._uses = itertools.count(1)


def _close(entries: Iterable[_Entry[Any]]) -> None:
    for entry in entries:
        entry.close()


_caches: WeakSet[DeviceCache[Any]] = WeakSet()


def _close_all() -> None:
    for cache in list(_caches):
        cache.close()


def _forget_all() -> None:
    for cache in list(_caches):
        cache.forget()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
