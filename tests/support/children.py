"""Encoders of other projects run in child processes with a time limit, so that none of them can hold up or end the tests.

libx265 once stood still within `encode` for good, and libx264 once crashed there. A child is a fork, so the frames need not be
sent to it. It may be forked while drivers have threads, because it encodes and writes files, and uses no device.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

LIMIT = 90.0
"""Seconds that a child has. The clips of tests take a few at most."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ChildError(Exception):
    """A child crashed or stood still."""


OF_FFMPEG = frozenset({"ffv1", "mjpeg", "mpeg2video", "mpeg4", "png"})
"""Encoders of FFmpeg itself, none of which has ever stood still: a fork would take longer than they do."""

_is_child = False


def in_child(encode: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function that encodes: a child calls it, and a second one if the first one stands still or crashes.

    A call that has an encoder of OF_FFMPEG among its arguments needs no child. The result or the error comes back; changes of
    the arguments do not. Raises ChildError.
    """

    @wraps(encode)
    def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        work = partial(encode, *arguments, **options)
        if _is_child or any(isinstance(it, str) and it in OF_FFMPEG for it in (*arguments, *options.values())):
            return work()
        with suppress(ChildError):
            return _call(work)
        return _call(work)

    return call


def _call(work: Callable[[], Result]) -> Result:
    """Call a function in a child. Raises its error, and ChildError if the child stands still or crashes."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(work, send), daemon=True)
    with receive, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        with send:
            child.start()
        try:
            if not receive.poll(LIMIT):
                raise ChildError(f"the child that encodes did not end within {LIMIT:g} s")
            result, error = receive.recv()
        except EOFError:
            child.join()
            raise ChildError(f"the child that encodes crashed, exit code {child.exitcode}") from None
        finally:
            child.kill()
            child.join()
            child.close()
    if error is not None:
        raise error
    answer: Result = result
    return answer


def _answer(work: Callable[[], object], send: Connection) -> None:
    global _is_child
    _is_child = True
    try:
        send.send((work(), None))
    except Exception as error:
        send.send((None, error))
