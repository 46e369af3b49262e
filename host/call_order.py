"""The order of Vulkan calls under the validation layer, which is not safe if several threads open devices."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

ALONE = ("vkCreateInstance", "vkDestroyInstance", "vkCreateDevice", "vkDestroyDevice")
"""The functions that change the layer's table of devices."""


class CallOrder:
    """An order: calls of all threads run side by side, but a function of `ALONE` only while no other thread is in a call.

    Vulkan allows one thread to open a device while other threads use theirs. The validation layer changes its table of devices
    without a lock (issue 4391 of KhronosGroup/Vulkan-ValidationLayers), so that a look-up at that moment crashes or never ends.
    All other calls stay side by side, because the layer also reports objects that two threads use at once.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls: Counter[int] = Counter()  # by the thread's identifier
        self._waiting = 0  # threads that wait to be alone; new calls let them go first
        self._alone = False

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Wait until a function may be called. Its thread counts as in a call until the context ends.

        A call within a call, as a destructor makes it, waits for nothing, because it would wait for its own thread.
        """
        thread = threading.get_ident()
        with self._changed:
            if thread not in self._calls:
                self._wait(name in ALONE)
            self._calls[thread] += 1
        try:
            yield
        finally:
            with self._changed:
                self._calls[thread] -= 1
                if not self._calls[thread]:
                    del self._calls[thread]
                    self._alone = False
                    self._changed.notify_all()

    def _wait(self, alone: bool) -> None:
        if not alone:
            self._changed.wait_for(lambda: not self._alone and not self._waiting)
            return
        self._waiting += 1
        try:
            self._changed.wait_for(lambda: not self._calls)
            self._alone = True
        finally:
            self._waiting -= 1
            self._changed.notify_all()
