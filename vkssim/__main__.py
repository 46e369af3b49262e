"""`python -m vkssim`."""

from .cli import main

main()
