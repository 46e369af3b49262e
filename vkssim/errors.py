"""Every error that the package raises on purpose, and its exit code."""

from __future__ import annotations

import errno
import signal
from typing import Any

from .host.errors import (
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    DeviceTimeoutError,
    ForkError,
    NoDeviceError,
    NoLoaderError,
    UnsuitableDeviceError,
    ValidationError,
    VkssimError,
    WrongNumbersError,
)

__all__ = [
    "EXIT_CODES",
    "DataRangeWarning",
    "DecoderBusyError",
    "DepthWarning",
    "DeviceError",
    "DeviceLostError",
    "DeviceMemoryError",
    "DeviceTimeoutError",
    "EncodeError",
    "ForkError",
    "FrameError",
    "HostMemoryError",
    "InputError",
    "InterruptedRunError",
    "LostWorkerWarning",
    "NoDeviceError",
    "NoLoaderError",
    "OptionError",
    "OutputError",
    "RangeError",
    "ReadError",
    "SmallerBatchWarning",
    "ThresholdError",
    "TruncatedInputError",
    "UnsuitableDeviceError",
    "UnusableGpuWarning",
    "ValidationError",
    "VkssimError",
    "WorkerLostError",
    "WrongNumbersError",
    "exit_code",
]


class InputError(VkssimError):
    """A file or a stream cannot be read as video, or two of them cannot be compared."""


class TruncatedInputError(InputError):
    """A stream ended within a frame. The complete frames before it can be scored."""


class ReadError(InputError):
    """The system failed to read a file further, for example from a disk or a network. Earlier frames are valid."""


class RangeError(InputError):
    """A range of frames cannot be read by itself, although the file has an index; a read from the start works."""


class EncodeError(InputError):
    """A clip cannot be encoded with a setting of an encoder, or the stream cannot be decoded."""


class WorkerLostError(VkssimError):
    """A pair of clips ended each process that scored it, for example by a fault of a decoder or a driver."""


class DecoderBusyError(DeviceError):
    """A hardware decoder that is in use cannot be opened once more, for example because memory is short."""


class FrameError(InputError, ValueError):
    """An array has the wrong shape, type or size, or a frame is too small for the metric."""


class OptionError(VkssimError, ValueError):
    """A feature or an option is unknown, or does not allow the value."""


class OutputError(VkssimError):
    """Scores cannot be written to their output."""


class ThresholdError(VkssimError):
    """Scores exist but fail a requirement of the user, such as `strict` or a threshold."""


class HostMemoryError(VkssimError):
    """The process cannot get the memory that a run needs. The scores that were computed earlier are in `report`.

    Parameters
    ----------
    problem : str
        The message.

    """

    def __init__(
        self,
        problem: str = "there is not enough memory. A run takes up to 1 GiB and 256 bytes for each pixel of a frame: free some,"
        " raise the limit that `ulimit -v` or a container sets, or score fewer clips at a time",
    ) -> None:
        super().__init__(problem)


def wants_memory(error: Exception) -> bool:
    """Return True for an error of the system, or of its dynamic loader, that is caused by a lack of memory."""
    return isinstance(error, ImportError | OSError) and (
        getattr(error, "errno", None) == errno.ENOMEM
        or any(text in str(error) for text in ("failed to map segment", "annot allocate memory"))
    )


class InterruptedRunError(KeyboardInterrupt):
    """Ctrl-C or another signal, with the number `signal`, stopped a run of files.

    It is a KeyboardInterrupt, as all other calls raise, and no VkssimError: a loop that goes on after the error of a clip ends.
    The scores that were computed earlier are in `report`; it is None if there are none.
    """

    report: Any = None
    signal: int = signal.SIGINT


def interrupted_run(stop: KeyboardInterrupt, problem: str, report: Any = None) -> InterruptedRunError:
    """Return the error of a run that a signal stopped, with that signal and the scores that were computed earlier."""
    error = InterruptedRunError(problem)
    error.signal, error.report = getattr(stop, "signal", InterruptedRunError.signal), report
    return error


class LostWorkerWarning(UserWarning):
    """A worker died or its device failed, and another worker repeats its task."""


class UnusableGpuWarning(UserWarning):
    """A software device computes, although a GPU is present that Vulkan cannot use."""


class DepthWarning(UserWarning):
    """No integer sample exceeds a quarter of the range, as if the samples had a smaller depth than stated."""


class ColourWarning(UserWarning):
    """The samples of two clips differ in meaning: they state different ranges, matrices or transfers."""


class DataRangeWarning(UserWarning):
    """Float samples lie far outside of `data_range`, or take a small part of it, as if it were wrong."""


class SmallerBatchWarning(UserWarning):
    """The device lacks the memory for batches of the usual size. Smaller ones give the same scores more slowly."""


EXIT_CODES: dict[type[VkssimError], int] = {
    ThresholdError: 1,
    InputError: 2,
    OptionError: 2,
    OutputError: 2,
    HostMemoryError: 2,
    DeviceError: 3,
    WorkerLostError: 3,
    VkssimError: 2,
}
"""Exit codes of the command line by class of error; the first matching class counts. 0 is success. See exit_code."""


def exit_code(error: VkssimError | KeyboardInterrupt) -> int:
    """Return the exit code of the command line for an error.

    Parameters
    ----------
    error : VkssimError or KeyboardInterrupt
        The error.

    Returns
    -------
    int
        The code of the first class in `EXIT_CODES` that matches. A command that a signal stopped has 128 plus the number of the
        signal, as in shells.

    """
    if isinstance(error, KeyboardInterrupt):
        return 128 + int(getattr(error, "signal", InterruptedRunError.signal))
    return next(code for family, code in EXIT_CODES.items() if isinstance(error, family))
