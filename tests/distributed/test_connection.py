"""The handler of SIGTERM, which Ray replaces while it connects."""

from __future__ import annotations

import signal

import pytest

from vkssim.distributed.cluster import _same_handler


def test_the_handler_of_the_program_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with _same_handler():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_handler_that_python_did_not_install_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that embeds Python has its own, which Python cannot install again."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(signal, "getsignal", lambda _number: None)
    with _same_handler():
        pass
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGTERM) == before
