"""A cache of open devices and engines, because opening a device takes longer than most calls, and the policy if one fails."""

from __future__ import annotations

import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

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
    take over the work of one that is lost or does not answer; see `distributed.scheduler`.

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


Thing = TypeVar("Thing", bound=Closable)


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
        policy = FailurePolicy()
        while True:
            try:
                return self._once(key, make, action)
            except DeviceError as error:
                if not policy.allows_another_try(error):
                    raise

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
