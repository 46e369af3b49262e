"""Encoders of other projects run in child processes with a time limit, so that none of them can hold up or end the tests.

libx265 once stood still within `encode` for good, and libx264 once crashed there. A child is a fork, which may be forked while
drivers have threads, because it encodes and writes files, and uses no device. One is forked before the first test, when no test
has patched anything yet, and stays to encode what it is sent: a fork of a process with all tests in memory takes longer than
most encodes. What cannot be sent has a fork of its own.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any, ParamSpec, TypeVar

import av
import numpy as np

LIMIT = 90.0
"""Seconds that a child has. The clips of tests take a few at most."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ChildError(Exception):
    """A child crashed or stood still."""


OF_FFMPEG = frozenset({"ffv1", "mjpeg", "mpeg2video", "mpeg4", "png"})
"""Encoders of FFmpeg itself, none of which has ever stood still: a child would take longer than they do."""

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
            # By the name of this wrapper, which calls the function right away in the child.
            data = None if resident is None else pickled((os.getcwd(), partial(call, *arguments, **options)))
            return _call(work) if resident is None or data is None else resident.call(data, work)
        return _call(work)

    return call


def _call(work: Callable[[], Result]) -> Result:
    """Call a function in a child of its own. Raises its error, and ChildError if the child stands still or crashes."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(work, send), daemon=True)
    with receive, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        with send:
            child.start()
        try:
            result, error = _outcome(receive)
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


def _outcome(receive: Connection) -> tuple[Any, Exception | None]:
    if not receive.poll(LIMIT):
        raise ChildError(f"the child that encodes did not end within {LIMIT:g} s")
    outcome: tuple[Any, Exception | None] = receive.recv()
    return outcome


def _answer(work: Callable[[], object], send: Connection) -> None:
    global _is_child
    _is_child = True
    try:
        send.send((work(), None))
    except Exception as error:
        send.send((None, error))


# -- the child that stays ---------------------------------------------------------------------------------------------


class _UnknownError(Exception):
    """The child that stays lacks what it was sent, such as a module that was imported after the fork."""


class Resident:
    """A child that stays; after one that stood still or crashed, each call has a child of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection, childs_end = multiprocessing.Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # as above
            self.process = os.fork()
        if self.process == 0:
            try:
                self._connection.close()  # its end is the end of this child, even if the tests are killed
                _serve(childs_end)
            finally:
                os._exit(0)
        childs_end.close()

    def call(self, data: bytes, work: Callable[[], Result]) -> Result:
        """Call a pickled function. Raises its error, and ChildError if the child stands still or crashes."""
        if self._connection.closed:
            return _call(work)
        try:
            with self._lock:  # tests may encode in threads
                send_handle(self._connection, 2, None)  # what an encoder says goes where the test's own messages go
                self._connection.send_bytes(data)
                result, error = _outcome(self._connection)
        except BaseException as failure:
            code = self.close()
            if isinstance(failure, EOFError | ConnectionError):
                raise ChildError(f"the child that encodes crashed, exit code {code}") from None
            raise  # also if the tests are interrupted, for the next answer would be that of this call
        if isinstance(error, _UnknownError):
            return _call(work)
        if error is not None:
            raise error
        answer: Result = result
        return answer

    def close(self) -> int | None:
        """End the child; return how it ended, as `subprocess` does."""
        if self._connection.closed:
            return None
        self._connection.close()
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


resident: Resident | None = None


def start_resident() -> None:
    """Fork the child that stays."""
    global resident
    resident = Resident()


def end_resident() -> None:
    """End the child that stays, if there is one."""
    global resident
    if resident is not None:
        resident.close()
        resident = None


def _serve(connection: Connection) -> None:
    """Call what is sent, until the tests end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests are interrupted, and end this child
    with suppress(EOFError, ConnectionError):
        while True:
            messages = recv_handle(connection)
            for stream in (1, 2):
                os.dup2(messages, stream)
            os.close(messages)
            data = connection.recv_bytes()
            try:
                folder, work = pickle.loads(data)
            except Exception:
                connection.send((None, _UnknownError()))
                continue
            os.chdir(folder)
            _answer(work, connection)
            if hasattr(os, "sched_setscheduler"):  # SVT-AV1 raises the priority of what comes after it
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def pickled(work: object) -> bytes | None:
    """Return the bytes of a call, or None if it cannot be sent."""
    file = io.BytesIO()
    try:
        FramePickler(file, pickle.HIGHEST_PROTOCOL).dump(work)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    return file.getvalue()


OF_A_FRAME = ("color_primaries", "color_range", "color_trc", "colorspace", "pict_type", "duration", "dts", "pts", "time_base")
"""The attributes of a frame that are sent with its planes."""


class FramePickler(pickle.Pickler):
    """Sends the frames of PyAV, too, except for those that have more than can be set from Python."""

    def reducer_override(self, it: Any) -> Any:
        if not isinstance(it, av.VideoFrame):
            return NotImplemented
        if it.interlaced_frame or it.rotation or it.format.name == "pal8" or len(it.side_data) or it.metadata:
            raise pickle.PicklingError("this frame")
        planes = [np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size) for plane in it.planes]  # type: ignore[call-overload]
        facts = {name: getattr(it, name) for name in OF_A_FRAME if getattr(it, name) is not None}
        return _frame, (it.width, it.height, it.format.name, planes, facts)


def _frame(width: int, height: int, pixel_format: str, planes: list[np.ndarray], facts: dict[str, Any]) -> av.VideoFrame:
    frame = av.VideoFrame(width, height, pixel_format)
    for plane, rows in zip(frame.planes, planes, strict=True):
        samples: Any = plane  # some versions of PyAV declare its buffer, some do not
        memory = np.frombuffer(samples, np.uint8).reshape(-1, plane.line_size)
        size = min(plane.line_size, rows.shape[1])  # they differ by what rows are padded with
        memory[:, :size] = rows[:, :size]
    for name, value in facts.items():
        setattr(frame, name, value)
    return frame
