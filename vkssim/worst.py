"""Deprecated: see `vkssim.report.worst`."""

from vkssim.utils.deprecated import moved

__getattr__ = moved(__name__, "vkssim.report.worst")
