"""Search the cheapest setting of an encoder whose scores meet targets.

`vkssim.search` is the way in. The package knows vkssim's Python API, and the files that survive a crash. Nothing knows it but
the command line.
"""
