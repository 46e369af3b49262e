"""Repeat a request that failed because the server or the network failed for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from ..utils.interruption import check

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses in seconds between one try and the next. There is one try more than pauses."""

_TRANSIENT_STATUSES = (429, 500, 502, 503, 504)
_TRANSIENT_ERRORS = ("ClientConnectionError", "ClientPayloadError")  # of aiohttp, which need not be installed
_SECONDS_BETWEEN_CHECKS = 0.1

Answer = TypeVar("Answer")


def retried(ask: Callable[[], Answer]) -> Answer:
    """Return the result of `ask`. If it fails for a moment, call it again after a pause, a few times.

    Raises the error of the last try. Any other error is raised at once.
    """
    for pause in _PAUSES:
        try:
            return ask()
        except Exception as error:
            if not is_transient(error):
                raise
        _wait(pause)
    return ask()


def is_transient(error: BaseException | None) -> bool:
    """Return whether the same request may succeed later: after an overload, a lost connection, or a timeout."""
    while error is not None:
        if getattr(error, "status", None) in _TRANSIENT_STATUSES or isinstance(error, ConnectionError | TimeoutError):
            return True
        if any(kind.__name__ in _TRANSIENT_ERRORS for kind in type(error).__mro__):
            return not _is_certificate_error(error)
        error = error.__cause__
    return False


def _is_certificate_error(error: BaseException) -> bool:
    return any(kind.__name__ == "ClientConnectorCertificateError" for kind in type(error).__mro__)


def _wait(seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        check()
        time.sleep(min(left, _SECONDS_BETWEEN_CHECKS))
