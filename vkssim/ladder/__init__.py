"""Many clips are scored from a manifest, compared with each other, and compared with what people said of them.

It knows how pairs are scored, on one device or on several, and the page of their results; no door of the Python API knows it.
Read `manifest` first, then `batch`.
"""
