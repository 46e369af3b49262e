"""Backends compute the metrics and the losses: on a Vulkan device, or with NumPy.

A backend runs the plans of metrics and losses on a device. It opens the device, checks it against known answers and keeps it
open. It does not know which clips or arrays its samples come from. Read `base` first, then `vulkan`.
"""
