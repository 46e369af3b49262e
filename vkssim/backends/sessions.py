"""The devices that are open. Each stays open after its use, with its compiled kernels and the engines that computed last."""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import uuid
from collections.abc import Callable, Hashable
from contextlib import ExitStack, suppress
from typing import Generic, TypeVar

import platformdirs

from ..errors import DeviceError, DeviceMemoryError, NoDeviceError, VkssimError
from ..frames.decode.hardware import close_idle_decoders
from ..host.device import Device
from ..host.devices import DEVICE_VARIABLE, choose_device, list_devices
from ..host.instance import shared_instance
from ..host.pipelines import PipelineBuilder
from ..shaders import load_module
from ..utils.thread_pool import Closable, closing_on_error
from .failures import log, with_retries

Thing = TypeVar("Thing", bound=Closable)
Engine = TypeVar("Engine", bound=Closable)
Result = TypeVar("Result")

MAX_ENGINES = 16
"""The largest number of engines that are kept on a device."""

MAX_KEPT_BYTES = 1 << 29
"""The largest memory of the engines that are kept on a device. The engine that was used last is kept, whatever its size."""


# -- opening ----------------------------------------------------------------------------------------------------------

_meaning = threading.Lock()
_meant: dict[tuple[str | None, str | None], uuid.UUID] = {}


def device_uuid(selector: str | int | None) -> uuid.UUID:
    """Return the UUID of the device that a selector means from now on, until the process ends. It need not be open."""
    key = None if selector is None else str(selector), os.environ.get(DEVICE_VARIABLE)  # the text that `choose_device` compares
    with _meaning:
        meant = _meant.get(key)
    if meant is None:
        chosen = choose_device(list_devices(shared_instance()), selector).uuid
        with _meaning:
            meant = _meant.setdefault(key, chosen)
    return meant


def open_device(stack: ExitStack, selector: str | int | None, *, sharing: bool = False) -> Device:
    """Return a device, which `stack` closes. See `host.devices.choose_device` for selectors, and `Device` for `sharing`.

    A selector means the same device until the process ends. If it is lost and a different device becomes the first of the
    list, that device must not silently replace it. Raises NoDeviceError instead.
    """
    instance = shared_instance()
    stack.callback(instance.check)
    meant, devices = device_uuid(selector), list_devices(instance)
    info = next((device for device in devices if device.uuid == meant), None)
    if info is None:
        name = choose_device(devices, selector).name
        raise NoDeviceError(f"the device {meant} is no longer available; found {name}, select it explicitly")
    return stack.enter_context(Device(info, sharing=sharing))


# -- keeping ----------------------------------------------------------------------------------------------------------

_HOLDER = 0
"""The user of an entry that may leave it in another thread, and for which nothing waits. No thread has this number."""


class _Entry(Generic[Thing]):
    """A thing under a key, and its users."""

    def __init__(self) -> None:
        self.thing: Thing | None = None
        self.last_use = 0
        """The number of its last use among all uses."""
        self.users: list[int] = []
        """The threads that use it or wait for it, once per use."""
        self.is_dropped = False
        """Whether nobody may begin to use it from now on; its last user closes it."""
        self.lock = threading.RLock()
        """The lock of the thread that makes it and, if one thread at a time may use it, of the thread that does."""

    def close(self) -> None:
        with self.lock:
            thing, self.thing = self.thing, None
            if thing is not None:
                thing.close()


class Keeper(Generic[Thing]):
    """Things under keys that stay open after their use. Threads that use different things do not wait for each other."""

    def __init__(self) -> None:
        # Not an OrderedDict, whose links are wrong for good after Ctrl-C in the `__hash__` of a key.
        self._entries: dict[Hashable, _Entry[Thing]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def enter(self, key: Hashable, make: Callable[[], Thing], user: int) -> _Entry[Thing]:
        """Return the entry of a key, which `user` has to leave. `make` opens its thing if there is none."""
        while True:
            with _state:
                entry = self._entries.get(key)
                if entry is None:
                    entry = self._entries[key] = _Entry()
                entry.last_use = next(_uses)
                entry.users.append(user)
            try:
                if entry.thing is None:
                    with entry.lock:
                        if entry.thing is None and not entry.is_dropped:  # otherwise another thread has made it
                            entry.thing = make()
            except BaseException:
                self.drop(entry)
                self.leave(entry, user)
                raise
            if not entry.is_dropped:
                return entry
            self.leave(entry, user)

    def leave(self, entry: _Entry[Thing], user: int) -> None:
        """End a use of an entry. It is closed if it was dropped, and this was the last use."""
        with _state:
            entry.users.remove(user)
            is_last = entry.is_dropped and not entry.users
            _left.notify_all()
        if is_last:
            entry.close()

    def drop(self, entry: _Entry[Thing]) -> None:
        """Let nobody begin to use an entry."""
        with _state:
            entry.is_dropped = True
            for key in [key for key, kept in self._entries.items() if kept is entry]:
                del self._entries[key]

    def close_oldest(self) -> bool:
        """Close the thing that nobody uses and that was used longest ago; return False if there is none."""
        with _state:
            idle = [entry for entry in self._entries.values() if not entry.users]
            if not idle:
                return False
            oldest = min(idle, key=lambda entry: entry.last_use)
            self.drop(oldest)
        oldest.close()
        return True

    def close(self) -> None:
        """Close everything, each thing after its use. A thing that a holder has is closed when the holder leaves it.

        This thread uses nothing by now. If Ctrl-C came right before `leave`, it is still among the users.
        """
        not_awaited = threading.get_ident(), _HOLDER
        with _state:
            entries = list(self._entries.values())
            for entry in entries:
                self.drop(entry)
            _left.wait_for(lambda: all(user in not_awaited for entry in entries for user in entry.users))
            free = [entry for entry in entries if _HOLDER not in entry.users]
        for entry in free:
            entry.close()


# -- sessions ---------------------------------------------------------------------------------------------------------


class Session(Closable):
    """An open device with its compiled kernels, and the engines that were used most recently on it; use with `with`.

    An engine has the memory for one format of frames or of planes. Another format takes another engine, which is made in some
    milliseconds, since kernels are compiled once for the device. `selector` is what chose the device. See `open_device` for
    `sharing` and the errors.
    """

    def __init__(self, selector: str | int | None, *, sharing: bool = False) -> None:
        self.selector = selector
        self.engines: Keeper[Closable] = Keeper()
        self.warnings: dict[str, tuple[Warning, ...]] = {}
        """The warnings about the device, by the text of the selector that chose it."""
        self._holds = 1
        self._is_closed = False
        self._stack = ExitStack()
        with closing_on_error(self._stack):
            self.device = open_device(self._stack, selector, sharing=sharing)
            self.pipelines = PipelineBuilder(self.device, self._stack, load_module, platformdirs.user_cache_path("vkssim"))
        log.info("opened %s", self.device.info.description)

    def make(self, make: Callable[[Session], Engine]) -> Engine:
        """Return a new engine. Engines that nobody uses make room for it."""
        self.close_surplus()
        return make(self)

    def close_surplus(self) -> None:
        """Close engines that nobody uses until those that are left are few and small enough to be kept."""
        while (count := len(self.engines)) > MAX_ENGINES or (count > 1 and self.device.memory_in_use > MAX_KEPT_BYTES):
            if not self.engines.close_oldest():
                return

    def make_room(self) -> bool:
        """Close the engines and the hardware decoders that nobody uses, to free their memory. Return whether there were any."""
        were = close_idle_decoders()
        while self.engines.close_oldest():
            were = True
        return were

    def outlives(self, error: BaseException) -> bool:
        """Return whether the device can be used after an error of an engine."""
        failed = isinstance(error, DeviceError) and not isinstance(error, DeviceMemoryError)
        return not (failed or self.device.abandoned)

    def hold(self) -> Callable[[], None]:
        """Keep the device open, even after `close`, until the function that this method returns is called."""
        with _state:
            self._holds += 1
        return self._release

    def _release(self) -> None:
        with _state:
            self._holds -= 1
            is_last = not self._holds
        if is_last:
            self._stack.close()

    def close(self) -> None:
        """Close the engines and the device; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self.engines.close()
            self._release()


def opened_session(stack: ExitStack, device: str | int | Session | None, *, sharing: bool = False) -> Session:
    """Return a session as it is. For a selector, return a session of its own, which `stack` closes."""
    return device if isinstance(device, Session) else stack.enter_context(Session(device, sharing=sharing))


class EngineInUse(Closable, Generic[Engine]):
    """An engine of a session that its user has until it closes it, and that other users may have too.

    `device` and `sharing` choose the session; see `open_device`. `make` makes the engine of a key if there is none. Both stay
    open for the next user. `user` is the thread, for which `close_sessions` waits, or a holder, which may be in any thread.
    """

    def __init__(
        self,
        device: str | int | None,
        key: Hashable,
        make: Callable[[Session], Engine],
        *,
        sharing: bool = False,
        user: int = _HOLDER,
    ) -> None:
        self._user = user
        self._session = _sessions.enter((device_uuid(device), sharing), lambda: Session(device, sharing=sharing), user)
        assert self._session.thing is not None
        self.session = session = self._session.thing
        try:
            self._engine = session.engines.enter(key, lambda: session.make(make), user)
        except BaseException as error:
            self._drop_session(error)
            _sessions.leave(self._session, user)
            raise
        self.engine: Engine = self._engine.thing  # type: ignore[assignment] # the key says which engine it is
        self.lock = self._engine.lock
        self._is_closed = False

    @property
    def is_dropped(self) -> bool:
        """Return whether nobody may begin to use the engine from now on."""
        return self._engine.is_dropped

    def drop(self) -> None:
        """Let nobody begin to use the engine from now on."""
        self.session.engines.drop(self._engine)

    def fail(self, error: BaseException) -> None:
        """Let nobody begin to use the engine after an error and, if the device failed, anything else on the device."""
        self.drop()
        self._drop_session(error)

    def _drop_session(self, error: BaseException) -> None:
        if not self.session.outlives(error):
            log.warning("%s is closed: %s", self.session.device.info.description, error)
            _sessions.drop(self._session)

    def close(self) -> None:
        """Leave the engine to its other users and to later ones; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self.session.engines.leave(self._engine, self._user)
            self.session.close_surplus()
            _sessions.leave(self._session, self._user)


def use_engine(
    device: str | int | None,
    key: Hashable,
    make: Callable[[Session], Engine],
    action: Callable[[Engine], Result],
    *,
    sharing: bool = False,
    harmless: tuple[type[BaseException], ...] = (),
) -> Result:
    """Return the result of `action` with an engine, for which `EngineInUse` describes the other arguments.

    One thread at a time uses an engine; threads with different engines, on one device or on several, do not wait for each
    other. The engine is closed after an error, so that the state of a failed call cannot reach the next call, unless the error
    is `harmless`. If the device fails and the policy allows another try, `action` is called again on a new device.
    """
    user = threading.get_ident()

    def use() -> Result:
        while True:
            with EngineInUse(device, key, make, sharing=sharing, user=user) as used, used.lock:
                if used.is_dropped:  # while this thread waited for it
                    continue
                try:
                    return action(used.engine)
                except BaseException as error:
                    if not isinstance(error, harmless):
                        used.fail(error)
                    raise

    return with_retries(use)


def open_ahead(device: str | int | None, *, sharing: bool) -> None:
    """Open a device for its next user. Errors are left to that user, who opens it again."""
    with suppress(VkssimError):
        _sessions.leave(
            _sessions.enter((device_uuid(device), sharing), lambda: Session(device, sharing=sharing), _HOLDER), _HOLDER
        )


def close_sessions() -> None:
    """Close all devices that are kept open, each after its use."""
    _sessions.close()


def _forget() -> None:
    """Drop everything without closing it, and the lock too: in a fork, a thread that does not exist may hold it."""
    global _state, _left, _sessions
    # `with` takes the lock itself: that of a Condition is released in Python's code, before which Ctrl-C may come.
    _state = threading.RLock()
    _left = threading.Condition(_state)
    _sessions = Keeper()


_state: threading.RLock
_left: threading.Condition
_sessions: Keeper[Session]
_uses = itertools.count(1)

_forget()
atexit.register(close_sessions)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
