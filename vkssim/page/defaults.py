"""The defaults of a page, in a module of their own, so that the command line need not load the page."""

WORST = 6
"""The number of frames of each reference that are shown as pictures."""

PICTURE_BUDGET = 12_000_000
"""The most bytes that all pictures of a page take together, encoded as base64."""
