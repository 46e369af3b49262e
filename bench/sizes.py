"""Sizes of frames as options of scripts."""

from __future__ import annotations

import click


def parsed(text: str) -> tuple[int, int]:
    """Width and height of ``"1920x1080"``. Raises click.BadParameter for another form."""
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise click.BadParameter(f"{text!r} is not of the form WIDTHxHEIGHT")
    return int(width), int(height)
