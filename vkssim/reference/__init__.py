"""NumPy twins of the shaders, each of the same stem, are the CPU backend and the oracle of the tests.

A twin knows the constants of the shaders and nothing else of vkssim; it needs no GPU. Read `window` first.
"""
