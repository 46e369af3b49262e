"""The order of calls under the validation layer: side by side, but alone where the layer's table of devices changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from vkssim.host.api import ALONE, CallOrder, vk
from vkssim.host.instance import Instance

SOON = 20.0
"""Seconds after which a thread that should have gone on is taken to be stuck."""

A_WHILE = 0.05
"""Seconds for a thread that has to wait to go on by mistake."""


class Call:
    """A call of a thread, which lasts until it is ended."""

    def __init__(self, pool: ThreadPoolExecutor, order: CallOrder, name: str) -> None:
        self._begun, self._may_end = threading.Event(), threading.Event()

        def run() -> None:
            with order.call(name):
                self._begun.set()
                assert self._may_end.wait(SOON)

        self._future: Future[None] = pool.submit(run)

    def begins(self) -> bool:
        return self._begun.wait(SOON)

    def waits(self) -> bool:
        return not self._begun.wait(A_WHILE)

    def end(self) -> None:
        self._may_end.set()
        self._future.result(SOON)


@pytest.fixture
def begin() -> Iterator[Callable[[str], Call]]:
    with ThreadPoolExecutor(8) as pool:
        yield partial(Call, pool, CallOrder())


@pytest.mark.parametrize("earlier", ["vkQueueSubmit", "vkCreateDevice"])
@pytest.mark.parametrize("name", ALONE)
def test_a_call_that_is_alone(begin: Callable[[str], Call], name: str, earlier: str) -> None:
    first = begin(earlier)
    assert first.begins()
    alone = begin(name)
    assert alone.waits()
    later = begin("vkQueueSubmit")
    assert later.waits(), "else calls that follow each other keep it waiting for ever"
    first.end()
    assert alone.begins()
    assert later.waits()
    alone.end()
    assert later.begins()
    beside = begin("vkQueueSubmit")
    assert beside.begins(), "calls are side by side otherwise"
    beside.end()
    later.end()


@pytest.mark.parametrize("outer", ["vkQueueSubmit", "vkCreateDevice"])
@pytest.mark.parametrize("inner", ["vkDestroyBuffer", "vkDestroyDevice"])
def test_a_destructor_within_a_call(outer: str, inner: str) -> None:
    order = CallOrder()
    with order.call(outer), order.call(inner):
        pass
    with order.call("vkCreateDevice"):
        pass


def test_a_call_that_fails_is_over() -> None:
    order = CallOrder()
    with pytest.raises(ValueError, match="lost"), order.call("vkCreateDevice"):
        raise ValueError("lost")
    with ThreadPoolExecutor(1) as pool:
        Call(pool, order, "vkDestroyDevice").end()


def test_calls_are_ordered_where_the_layer_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vk, "order", None)
    with Instance(validation=False):
        assert vk.order is None
    with Instance(validation=True):
        assert vk.order is not None
