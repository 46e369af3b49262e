"""NumPy twins of the shaders. They are the CPU backend, and the tests compare the shaders with them.

The twin of a shader is in the file of its metric, or in `samples`. A twin needs no GPU. It uses the constants of the shaders,
and no other part of vkssim. Read `window` first.
"""
