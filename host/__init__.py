"""Vulkan from Python: instance, device, memory, pipelines, plan and executor.

It handles buffers and kernels, has no notion of metrics, and imports no other package of vkssim. Read `plan` first, then
`executor`.
"""
