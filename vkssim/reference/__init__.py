"""NumPy twins of the shaders, with the same names. They are the CPU backend, and the tests compare the shaders with them.

A twin uses the constants of the shaders, and no other part of vkssim. It needs no GPU. Read `window` first.
"""
