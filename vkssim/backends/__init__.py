"""Backends compute the metrics and the losses: on a Vulkan device, or with NumPy.

A backend knows the plans of metrics and losses and runs them on a device that it opens, checks against known answers and keeps
open. It does not know which clips or arrays its samples are from. Read `base` first, then `vulkan`.
"""
