"""`python -m vkssim`, and the command `vkssim`."""

from .interruption import listen


def run() -> None:
    """The command line in a process of its own: signals are heard before anything that takes time is imported."""
    listen()
    from .cli import main

    main()


if __name__ == "__main__":
    run()
