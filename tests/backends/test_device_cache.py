"""Test the policy for devices that fail, and the objects that stay open between calls: how many, and when they are closed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import NoReturn

import pytest

from vkssim.backends.device_cache import DeviceCache, FailurePolicy
from vkssim.errors import (
    DeviceLostError,
    DeviceMemoryError,
    DeviceTimeoutError,
    InputError,
    UnsuitableDeviceError,
    WrongNumbersError,
)
from vkssim.host.devices import DEVICE_VARIABLE
from vkssim.utils.thread_pool import Closable

from ..support.commands import python_process


class _Thing(Closable):
    """Counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def _fail(error: Exception) -> NoReturn:
    raise error


@pytest.fixture
def kept() -> Iterator[DeviceCache[_Thing]]:
    made: DeviceCache[_Thing] = DeviceCache(most=2)
    yield made
    made.close()


def _use(kept: DeviceCache[_Thing], key: str) -> _Thing:
    return kept.run(key, _Thing, lambda thing: thing)


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


def test_what_was_used_longest_ago_is_closed(kept: DeviceCache[_Thing]) -> None:
    first, second = _use(kept, "a"), _use(kept, "b")
    _use(kept, "a")
    _use(kept, "c")
    assert (first.closed, second.closed) == (0, 1)
    assert _use(kept, "a") is first
    assert _use(kept, "b") is not second


def test_a_use_that_fails_closes_its_thing(kept: DeviceCache[_Thing]) -> None:
    other, first = _use(kept, "b"), _use(kept, "a")
    with pytest.raises(RuntimeError, match="half way"):
        kept.run("a", _Thing, lambda _: _fail(RuntimeError("half way")))
    assert (first.closed, other.closed) == (1, 0)
    assert _use(kept, "a") is not first


@pytest.mark.parametrize("failures", [1, 2])
def test_a_lost_device_is_opened_again_once(kept: DeviceCache[_Thing], failures: int) -> None:
    errors = [DeviceLostError("lost") for _ in range(failures)]
    things: list[_Thing] = []

    def use(thing: _Thing) -> None:
        things.append(thing)
        if errors:
            raise errors.pop()

    with pytest.raises(DeviceLostError) if failures > 1 else nullcontext():
        kept.run("a", _Thing, use)
    assert [thing.closed for thing in things] == [1, failures - 1]


def test_a_harmless_error_closes_nothing() -> None:
    kept: DeviceCache[_Thing] = DeviceCache(most=2, outlives=lambda _thing, error: isinstance(error, DeviceMemoryError))
    first = _use(kept, "a")
    with pytest.raises(DeviceMemoryError, match="full"):
        kept.run("a", _Thing, lambda _: _fail(DeviceMemoryError("full")))
    assert _use(kept, "a") is first
    kept.close()
    assert first.closed == 1


def test_ctrl_c_while_an_older_thing_is_closed_leaves_no_user(kept: DeviceCache[_Thing]) -> None:
    """A user that never leaves would be waited for at the end of the process."""

    class Interrupted(_Thing):
        def close(self) -> None:
            raise KeyboardInterrupt

    kept.run("a", Interrupted, lambda thing: None)
    _use(kept, "b")
    with pytest.raises(KeyboardInterrupt):
        _use(kept, "c")
    assert not any(entry.users for entry in kept._entries.values())


def test_ctrl_c_right_before_a_use_ends_does_not_hold_close(kept: DeviceCache[_Thing], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_entry: object) -> NoReturn:
        raise KeyboardInterrupt

    thing = _use(kept, "a")
    with monkeypatch.context() as patch:
        patch.setattr(kept, "_leave", interrupt)
        with pytest.raises(KeyboardInterrupt):
            _use(kept, "a")
    monkeypatch.setattr(kept._left, "wait", lambda _limit=None: pytest.fail("it waits for its own thread"))
    kept.close()
    assert thing.closed == 1


@pytest.mark.parametrize("last", range(1, 12))
def test_ctrl_c_in_the_hash_of_a_key_leaves_the_cache_in_order(kept: DeviceCache[_Thing], last: int) -> None:
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


def test_another_device_by_the_environment_is_another_thing(kept: DeviceCache[_Thing], monkeypatch: pytest.MonkeyPatch) -> None:
    first = _use(kept, "a")
    monkeypatch.setenv(DEVICE_VARIABLE, "another")
    assert _use(kept, "a") is not first


def test_close_lets_go_of_everything_and_forgetting_closes_nothing(kept: DeviceCache[_Thing]) -> None:
    things = [_use(kept, "a"), _use(kept, "b")]
    kept.close()
    kept.close()
    assert [thing.closed for thing in things] == [1, 1]
    thing = _use(kept, "a")
    assert thing not in things
    kept.forget()
    assert _use(kept, "a") is not thing
    assert not thing.closed


def test_a_forked_child_forgets_and_the_parent_closes_at_its_end() -> None:
    """In a process of its own: the child makes a thing anew, and closes that one alone when it ends."""
    script = """
        import os
        from vkssim.backends.device_cache import DeviceCache, FailurePolicy

        class Thing:
            def __init__(self):
                self.maker = os.getpid()
            def close(self):
                os.write(1, b"parent closes\\n" if self.maker == parent else b"child closes\\n")

        parent, kept = os.getpid(), DeviceCache(most=2)
        kept.run("a", Thing, lambda thing: None)
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        else:
            maker = kept.run("a", Thing, lambda thing: thing.maker)
            os.write(1, b"anew\\n" if maker == os.getpid() else b"the parent's\\n")
    """
    done = python_process("-c", textwrap.dedent(script), check=True)
    assert done.stdout.splitlines() == [b"anew", b"child closes", b"parent closes"]
