"""`python -m vkssim`, and the command `vkssim`."""

from __future__ import annotations

import atexit
import os
import signal
from types import FrameType


def run() -> None:
    """Run the command line in a process of its own: signals are heard before anything that takes time is imported."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # which would raise within an import
        signal.signal(signal.SIGINT, _end)
    from .utils.interruption import ignore, listen

    # NumPy's linear algebra, which computes nothing here, would start a thread for each core, and these spin before they sleep.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    atexit.register(ignore)  # the first to register is the last to be called
    listen()
    from .cli import main
    from .cli.streams import install

    install()
    main()


def _end(number: int, _frame: FrameType | None) -> None:
    """End the process at once: nothing has begun."""
    os._exit(128 + number)


if __name__ == "__main__":
    run()
