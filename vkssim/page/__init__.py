"""Reports as one self-contained HTML page: verdicts, tables, charts and the worst moments.

This package uses reports, maps and the rules of comparisons. No lower package imports it. Read `render` first.
"""

WORST = 6
"""The number of frames of each reference that are shown as pictures."""

PICTURE_BUDGET = 12_000_000
"""The most bytes of all pictures of a page together, encoded as base64."""
