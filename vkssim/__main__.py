"""`python -m vkssim`, and the command `vkssim`."""

from __future__ import annotations

import atexit

from .utils.interruption import ignore, listen


def run() -> None:
    """Run the command line in a process of its own: signals are heard before anything that takes time is imported."""
    atexit.register(ignore)  # the first to register is the last to be called
    listen()
    from .cli import main
    from .cli.streams import install

    install()
    main()


if __name__ == "__main__":
    run()
