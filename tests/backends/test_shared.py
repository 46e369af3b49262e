"""Backends that several runs share: when they are opened and closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import pytest

from vkssim.backends import shared
from vkssim.backends.base import Backend
from vkssim.backends.shared import Share, SharedBackend
from vkssim.errors import SmallerBatchWarning
from vkssim.metrics.plane_metrics import PlaneMetrics
from vkssim.types import FrameFormat

SMALLER = SmallerBatchWarning("smaller batches")


class _Backend:
    """A backend that only says whether it is open."""

    info: Any = None
    warnings = (SMALLER,)
    batches = tuple(range(4))

    def __init__(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


class _Shared(SharedBackend):
    """Opens backends after `before`. `closings` has how many backends were open each time when the device was closed."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        super().__init__("vulkan")
        self.opened: list[_Backend] = []
        self.closings: list[int] = []
        self._before = before

    def _open(self, planes: Sequence[PlaneMetrics]) -> Backend:
        self._before()
        self.opened.append(_Backend())
        return cast(Backend, self.opened[-1])

    def _close_devices(self) -> None:
        self.closings.append(sum(made.is_open for made in self.opened))


def _planes(width: int = 64) -> list[PlaneMetrics]:
    return [PlaneMetrics("y", FrameFormat.of_bits(width, 48, 8), ())]


def test_each_user_has_its_batches() -> None:
    with _Shared() as backend:
        first, second = (Share(backend, number, 2).open(_planes()) for number in range(2))
        batches: list[Any] = [part.batches for part in (first, second)]
        assert batches == [(0, 2), (1, 3)]
        assert (first.warnings, second.warnings) == ((SMALLER,), ())
        first.close()
        second.close()
    assert [made.is_open for made in backend.opened] == [False]


def test_frames_of_another_format_leave_the_device_open() -> None:
    """A backend that a run uses is closed after it."""
    backend = _Shared()
    backend.part(0, 1, _planes()).close()
    part = backend.part(0, 1, _planes(80))
    assert [made.is_open for made in backend.opened] == [False, True]
    backend.close()
    assert (backend.opened[1].is_open, backend.closings) == (True, [])
    part.close()
    assert (backend.opened[1].is_open, backend.closings) == (False, [0])


def test_a_backend_that_was_opened_ahead() -> None:
    """The first run that uses it gets its warnings. A closed one opens none."""
    backend = _Shared()
    backend.open_ahead(_planes())
    first, second = (backend.part(number, 2, _planes()) for number in range(2))
    assert (first.warnings, second.warnings) == ((SMALLER,), ())
    first.close()
    second.close()
    backend.close()
    backend.open_ahead(_planes())
    assert [made.is_open for made in backend.opened] == [False]


def test_closing_waits_for_a_run_that_begins() -> None:
    """A run that was left behind asks for a backend that nobody uses, while another thread closes the backends."""
    backend = _Shared()
    backend.part(0, 1, _planes()).close()
    closing = threading.Thread(target=backend.close)

    class Counted(type(backend._runs)):  # type: ignore[misc]
        def __setitem__(self, formats: Any, runs: int) -> None:
            if runs == 1 and not closing.ident:
                closing.start()
                closing.join(0.2)
            super().__setitem__(formats, runs)

    backend._runs = Counted(backend._runs)
    part = backend.part(0, 1, _planes())
    closing.join()
    assert backend.opened[-1].is_open
    part.close()
    assert not any(made.is_open for made in backend.opened)


@pytest.mark.parametrize("ahead", [False, True], ids=["by a run", "ahead of all runs"])
def test_closing_does_not_wait_for_a_device_that_never_opens(monkeypatch: pytest.MonkeyPatch, ahead: bool) -> None:
    monkeypatch.setattr(shared, "_SECONDS_TO_CLOSE", 0.01)
    going_on, asked = threading.Event(), threading.Event()

    def open_slowly() -> None:
        asked.set()
        going_on.wait()

    backend = _Shared(open_slowly)
    opening = partial(backend.open_ahead, _planes()) if ahead else lambda: backend.part(0, 1, _planes()).close()
    left_behind = threading.Thread(target=opening)
    left_behind.start()
    asked.wait()
    backend.close()
    going_on.set()
    left_behind.join()
    assert [made.is_open for made in backend.opened] == [False]
