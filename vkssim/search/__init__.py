"""Search the cheapest setting of an encoder whose scores meet targets.

`vkssim.search` and `vkssim.search_shots` are the ways in. The package knows vkssim's Python API, and the files that survive a
crash. Nothing knows it but the command line. Read `search` first, then `model`, which chooses the trials, and `encode`.
"""
