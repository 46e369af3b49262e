"""Vulkan from Python: instance, device, memory, shaders, plan and executor.

Knows buffers and kernels, not metrics; imports nothing of the rest of the package.
"""
