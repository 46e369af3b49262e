"""Every error that the package raises on purpose, and the exit code of each."""

from __future__ import annotations

import errno
import signal

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
    "DemandError",
    "DeviceError",
    "DeviceLostError",
    "DeviceMemoryError",
    "DeviceTimeoutError",
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
    "TruncatedInputError",
    "UnsuitableDeviceError",
    "ValidationError",
    "VkssimError",
    "WorkerLostError",
    "WrongNumbersError",
    "exit_code",
    "wants_memory",
]


class InputError(VkssimError):
    """A file or a stream cannot be read as video, or two of them cannot be compared."""


class TruncatedInputError(InputError):
    """A stream ended in the middle of a frame; the complete frames before it were kept."""


class ReadError(InputError):
    """The system could not read a file on, as where a disk or a network fails; the frames before were kept."""


class RangeError(InputError):
    """A range of a clip's frames cannot be read by itself, though the clip said so; reading it from the start on helps."""


class WorkerLostError(VkssimError):
    """A pair of clips ended each process that scored it, by a fault of a decoder or a driver, say."""


class FrameError(InputError, ValueError):
    """An array has the wrong shape, type or size, or a frame is too small for the metric."""


class OptionError(VkssimError, ValueError):
    """An unknown feature or option, or a value that it cannot have."""


class OutputError(VkssimError):
    """Scores cannot be written where they were asked for."""


class DemandError(VkssimError):
    """The scores exist but fail a demand that the user made, such as `strict`."""


class HostMemoryError(VkssimError):
    """Report that the process cannot have the memory that a run takes; what was scored before is in `report`.

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
    """Return True for an error of the system, or of its loader of libraries, that comes of a lack of memory.

    Parameters
    ----------
    error : Exception
        The error.

    Returns
    -------
    bool
        Whether memory was lacking.

    """
    return isinstance(error, ImportError | OSError) and (
        getattr(error, "errno", None) == errno.ENOMEM
        or any(text in str(error) for text in ("failed to map segment", "annot allocate memory"))
    )


class InterruptedRunError(VkssimError):
    """The run was stopped by Ctrl-C or another signal, whose number is `signal`; what was scored before is in `report`."""

    signal: int = signal.SIGINT


class LostWorkerWarning(UserWarning):
    """A worker died or its device failed; another one scores what it was at."""


class SmallerBatchWarning(UserWarning):
    """The device has not the memory for batches of the usual size; smaller ones are used, which score the same and slower."""


EXIT_CODES: dict[type[VkssimError], int] = {
    DemandError: 1,
    InputError: 2,
    OptionError: 2,
    OutputError: 2,
    HostMemoryError: 2,
    DeviceError: 3,
    WorkerLostError: 3,
    InterruptedRunError: 130,
    VkssimError: 2,
}
"""Exit codes of the command line by family of error; the first that fits counts. 0 is success. See exit_code."""


def exit_code(error: VkssimError) -> int:
    """Return the exit code of the command line for an error.

    Parameters
    ----------
    error : VkssimError
        The error.

    Returns
    -------
    int
        The code of the first family in `EXIT_CODES` that fits. A run that a signal stopped has 128 and the number of the
        signal, as shells have it.

    """
    if isinstance(error, InterruptedRunError):
        return 128 + error.signal
    return next(code for family, code in EXIT_CODES.items() if isinstance(error, family))
