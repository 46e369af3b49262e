"""Provide the basis of every other package: limits, text, interruption, optional libraries, threads, declared options.

It knows the standard library, NumPy, PyAV and `vkssim.errors`, and nothing of clips or of Vulkan. Read `limits` first: it has
the bounds of everything that is read.
"""
