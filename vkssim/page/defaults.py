"""What a page has unless the user asks for something else. Beside the page, so that the command line need not load it."""

WORST = 6
"""Frames of each reference that are shown as pictures."""

PICTURE_BUDGET = 12_000_000
"""Bytes that all pictures of a page take at most, in the page, where they are base64."""
