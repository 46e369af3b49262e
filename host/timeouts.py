"""How long a device and its driver may take."""

from __future__ import annotations

import math
import os

from .errors import VkssimError

TIMEOUT_VARIABLE = "VKSSIM_TIMEOUT"
"""The environment variable with the seconds that a submission may take."""

SLICE_SECONDS = 0.1
"""The longest single wait for a device or a driver. Waits are divided, because Python handles signals only between them."""

_SUBMISSION_SECONDS = 300.0
_COMPILATION_SECONDS = 120.0  # the slowest known: SwiftShader takes 5 s for a window, longer on a busy machine
_LONGEST_SECONDS = 7 * 24 * 3600.0


def timeout_seconds() -> float:
    """Return the seconds that a batch may take on a device. Raises VkssimError if VKSSIM_TIMEOUT is not a valid time."""
    text = os.environ.get(TIMEOUT_VARIABLE) or str(_SUBMISSION_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise VkssimError(
            f"{TIMEOUT_VARIABLE} is {text!r}; it is the seconds that a batch of frames may take on the device, above 0 and at"
            f" most {_LONGEST_SECONDS:g}"
        )
    return seconds


def compilation_seconds() -> float:
    """Return the seconds that a driver may take to compile one kernel: 120, or VKSSIM_TIMEOUT if it is set to more.

    A smaller VKSSIM_TIMEOUT is meant for submissions, and does not shorten this time.
    """
    return max(_COMPILATION_SECONDS, timeout_seconds()) if os.environ.get(TIMEOUT_VARIABLE) else _COMPILATION_SECONDS
