"""Test the policy for devices that fail, and the things that stay open between calls: when they are closed."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import NoReturn

import pytest

from vkssim.backends import sessions
from vkssim.backends.failures import FailurePolicy
from vkssim.backends.sessions import _HOLDER, Keeper
from vkssim.errors import (
    DeviceLostError,
    DeviceMemoryError,
    DeviceTimeoutError,
    InputError,
    UnsuitableDeviceError,
    WrongNumbersError,
)
from vkssim.utils.thread_pool import Closable

from ..support.commands import python_process

WAIT_S = 30.0  # longer than any test, and far below the limits of a run


class _Thing(Closable):
    """Counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def _fail(error: BaseException) -> NoReturn:
    raise error


@pytest.fixture
def kept() -> Iterator[Keeper[_Thing]]:
    made: Keeper[_Thing] = Keeper()
    yield made
    made.close()


def _use(kept: Keeper[_Thing], key: str) -> _Thing:
    entry = kept.enter(key, _Thing, threading.get_ident())
    kept.leave(entry, threading.get_ident())
    assert entry.thing is not None
    return entry.thing


@pytest.mark.parametrize(
    ("error", "batches"),
    [
        (DeviceLostError("lost"), [9]),
        (DeviceMemoryError("full"), [4, 2, 1]),
        (DeviceTimeoutError("hangs"), []),
        (UnsuitableDeviceError("lacks"), []),
        (WrongNumbersError("wrong"), []),
        (InputError("damaged"), []),
        (MemoryError(), []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_how_often_a_failure_is_tried_again_and_with_which_batches(error: Exception, batches: list[int]) -> None:
    policy, tried = FailurePolicy(9), []
    while policy.allows_another_try(error):
        tried.append(policy.batch)
    assert tried == batches
    assert not FailurePolicy().allows_another_try(DeviceMemoryError("full")), "nothing was opened"


def test_what_was_used_longest_ago_is_closed(kept: Keeper[_Thing]) -> None:
    first, second = _use(kept, "a"), _use(kept, "b")
    _use(kept, "a")
    assert kept.close_oldest()
    assert (first.closed, second.closed) == (0, 1)
    assert _use(kept, "a") is first
    assert _use(kept, "b") is not second


def test_what_is_in_use_is_not_closed(kept: Keeper[_Thing]) -> None:
    entry, used = kept.enter("a", _Thing, 7), _use(kept, "a")
    assert not kept.close_oldest()
    kept.leave(entry, 7)
    assert kept.close_oldest()
    assert (used.closed, len(kept)) == (1, 0)


def test_what_is_dropped_is_closed_after_its_last_user(kept: Keeper[_Thing]) -> None:
    entry, dropped = kept.enter("a", _Thing, 7), _use(kept, "a")
    kept.drop(entry)
    assert _use(kept, "a") is not dropped
    assert dropped.closed == 0
    kept.leave(entry, 7)
    assert dropped.closed == 1


def test_what_a_holder_has_is_closed_after_it(kept: Keeper[_Thing]) -> None:
    """It may leave in any thread, and nothing waits for it."""
    entry = kept.enter("a", _Thing, _HOLDER)
    thing = entry.thing
    assert thing is not None
    kept.close()
    assert thing.closed == 0
    leaving = threading.Thread(target=kept.leave, args=(entry, _HOLDER))
    leaving.start()
    leaving.join()
    assert thing.closed == 1


def test_closing_does_not_wait_for_a_device_that_never_opens(kept: Keeper[_Thing]) -> None:
    going_on, asked, made = threading.Event(), threading.Event(), _Thing()

    def open_slowly() -> _Thing:
        asked.set()
        assert going_on.wait(WAIT_S)
        return made

    def hold() -> None:
        kept.leave(kept.enter("a", open_slowly, _HOLDER), _HOLDER)

    left_behind = threading.Thread(target=hold)
    left_behind.start()
    assert asked.wait(WAIT_S)
    kept.close()
    going_on.set()
    left_behind.join()
    assert made.closed == 1


def test_ctrl_c_right_before_a_use_ends_does_not_hold_close(kept: Keeper[_Thing], monkeypatch: pytest.MonkeyPatch) -> None:
    thing = kept.enter("a", _Thing, threading.get_ident()).thing
    assert thing is not None
    monkeypatch.setattr(sessions._left, "wait", lambda _limit=None: pytest.fail("it waits for its own thread"))
    kept.close()
    assert thing.closed == 1


def test_ctrl_c_while_a_thing_is_made_leaves_no_user(kept: Keeper[_Thing]) -> None:
    """A user that never leaves would be waited for at the end of the process."""
    with pytest.raises(KeyboardInterrupt):
        kept.enter("a", lambda: _fail(KeyboardInterrupt()), 7)
    assert len(kept) == 0
    thing = _use(kept, "a")
    kept.close()
    assert thing.closed == 1


@pytest.mark.parametrize("last", range(1, 12))
def test_ctrl_c_in_the_hash_of_a_key_leaves_the_cache_in_order(kept: Keeper[_Thing], last: int) -> None:
    """Keys are data classes, whose hash is Python's code."""

    class Key(str):
        left = last

        def __hash__(self) -> int:
            Key.left -= 1
            if not Key.left:
                raise KeyboardInterrupt
            return super().__hash__()

    with suppress(KeyboardInterrupt):
        for name in ("a", "b", "a", "c"):
            _use(kept, Key(name))
    Key.left = 0
    for name in ("a", "b", "c", "a"):
        assert _use(kept, Key(name)) is _use(kept, Key(name))


def test_closing_closes_everything_once(kept: Keeper[_Thing]) -> None:
    things = [_use(kept, "a"), _use(kept, "b")]
    kept.close()
    kept.close()
    assert [thing.closed for thing in things] == [1, 1]
    assert _use(kept, "a") not in things


def test_a_forked_child_forgets_and_the_parent_closes_at_its_end() -> None:
    """In a process of its own: the child makes a thing anew, and closes that one alone when it ends."""
    script = """
        import os
        from vkssim.backends import sessions

        class Session:
            def __init__(self, *_, **__):
                self.maker, self.engines = os.getpid(), sessions.Keeper()
            def make(self, make):
                return make(self)
            def close_surplus(self):
                pass
            def close(self):
                os.write(1, b"parent closes\\n" if self.maker == parent else b"child closes\\n")

        class Engine:
            def __init__(self, session):
                self.maker = session.maker
            def close(self):
                pass

        parent = os.getpid()
        sessions.Session, sessions.device_uuid = Session, lambda selector: selector
        sessions.use_engine("a", 1, Engine, lambda engine: None)
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        else:
            maker = sessions.use_engine("a", 1, Engine, lambda engine: engine.maker)
            os.write(1, b"anew\\n" if maker == os.getpid() else b"the parent's\\n")
    """
    done = python_process("-c", textwrap.dedent(script), check=True)
    assert done.stdout.splitlines() == [b"anew", b"child closes", b"parent closes"]
