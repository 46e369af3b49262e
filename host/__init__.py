"""Vulkan from Python: instance, device, memory, pipelines, plan and executor.

It knows buffers and kernels, no metrics, and imports nothing of the rest of the package. Read `plan` first, then `executor`.
"""
