"""Work with many clips: score the pairs of a manifest, compare results with each other, and correlate them with opinions.

This package knows how pairs are scored, on one device or on several, and the page of their results. The functions of the Python
API do not use it. Read `manifest` first, then `batch`.
"""
