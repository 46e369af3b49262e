"""NumPy twins of the shaders, each of the same stem: the CPU backend, and what the shaders are compared with."""
