"""Many clips: score the pairs of a manifest, compare results with each other, and correlate them with opinions.

This package uses the engine that scores pairs, `vkssim.clips` to look at clips, and the page of their results. The functions of
the Python API do not use it.
Read `manifest` first, then `batch`.
"""
