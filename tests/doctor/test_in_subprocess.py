"""Test that work in a process of its own may fail, crash or hang, and costs only a clause."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

import pytest

from vkssim.doctor.in_subprocess import Send, run_in_process
from vkssim.errors import DeviceError


def _answers(send: Send, *values: object) -> None:
    for value in values:
        send("value", value)
    send("told", (os.environ.get("TOLD"), os.environ.get("HOME")))


def _fails(send: Send, kind: str) -> None:
    send("begun", None)
    if kind == "crash":
        ctypes.string_at(0)
    if kind == "exit":
        os._exit(7)
    if kind == "hang":
        threading.Event().wait()
    raise {"device": DeviceError("no such device"), "other": KeyError("name")}[kind]


def test_messages_arrive_in_order() -> None:
    heard: list[Any] = []
    environment = {"TOLD": "yes", "HOME": None}
    assert run_in_process(_answers, (1, ("two", None)), 60, lambda *message: heard.append(message), environment) is None
    assert heard == [("value", 1), ("value", ("two", None)), ("told", ("yes", None))]


@pytest.mark.parametrize(
    ("kind", "seconds", "clause"),
    [
        ("crash", 60, "it ended its process by SIGSEGV"),
        ("exit", 60, "it ended its process with exit code 7"),
        ("device", 60, "no such device"),
        ("other", 60, "KeyError: 'name'"),
        ("hang", 3, "it did not finish within 3 s"),
    ],
)
def test_work_that_does_not_end(kind: str, seconds: float, clause: str) -> None:
    heard: list[str] = []
    assert run_in_process(_fails, (kind,), seconds, lambda name, _: heard.append(name)) == clause
    assert heard in (["begun"], []) if kind == "hang" else ["begun"]
