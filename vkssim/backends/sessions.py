"""Open devices that the functions of arrays, gradients, maps and losses share, with their kernels and their engines."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from ..errors import DeviceError, DeviceMemoryError
from ..utils.thread_pool import Closable
from .device_cache import DeviceCache, with_retries
from .open import OpenDevice, device_uuid

Engine = TypeVar("Engine", bound=Closable)
Result = TypeVar("Result")

MAX_ENGINES = 16
"""The largest number of engines that are kept on a device."""

MAX_KEPT_BYTES = 1 << 29
"""The largest memory of the engines that are kept on a device. The engine that was used last is kept, whatever its size."""


class Session(Closable):
    """An open device with its compiled kernels, and the engines that were used most recently on it.

    An engine has the memory for one format of frames or of planes. Another format takes another engine, which is made in some
    milliseconds, since kernels are compiled once for the device.
    """

    def __init__(self, selector: str | int | None) -> None:
        self._opened = OpenDevice(selector)
        self._engines: DeviceCache[Closable] = DeviceCache(most=MAX_ENGINES)
        self._opened.make_room = self._close_idle

    def use(self, key: Hashable, make: Callable[[OpenDevice], Engine], action: Callable[[Engine], Result]) -> Result:
        """Return the result of `action` with the engine of a key, which `make` makes on the device if there is none."""
        result: Result = self._engines.use(key, lambda: make(self._opened), action)  # type: ignore[arg-type]
        while self._opened.device.memory_in_use > MAX_KEPT_BYTES and len(self._engines) > 1 and self._engines.close_oldest():
            pass
        return result

    def _close_idle(self) -> bool:
        """Close the engines that nobody uses, to free their memory. Return whether there were any."""
        were = self._engines.close_oldest()
        while self._engines.close_oldest():
            pass
        return were

    def outlives(self, error: BaseException) -> bool:
        """Return whether the device can be used after an error of an engine."""
        failed = isinstance(error, DeviceError) and not isinstance(error, DeviceMemoryError)
        return not (failed or self._opened.device.abandoned)

    def close(self) -> None:
        """Close the engines and the device; a second call does nothing."""
        self._engines.close()
        self._opened.close()


MAX_DEVICES = 64
"""More than a host has devices."""

_sessions: DeviceCache[Session] = DeviceCache(most=MAX_DEVICES, shared=True, outlives=Session.outlives)


def use_engine(
    device: str | int | None,
    key: Hashable,
    make: Callable[[OpenDevice], Engine],
    action: Callable[[Engine], Result],
) -> Result:
    """Return the result of `action` with an engine on a device, both of which stay open for the next call.

    See `host.devices.choose_device` for `device`. `make` makes the engine of a key on the open device if there is none. One
    thread at a time uses an engine; threads with different engines, on one device or on several, do not wait for each other. If
    the device fails and the policy allows another try, `action` is called again with a new engine on a new device.
    """

    def use() -> Result:
        return _sessions.use(device_uuid(device), lambda: Session(device), lambda session: session.use(key, make, action))

    return with_retries(use)


def close_sessions() -> None:
    """Close all devices that are kept open here, each after its use."""
    _sessions.close()
