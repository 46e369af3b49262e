"""Deprecated: see `vkssim.page.pictures`."""

from vkssim.utils.deprecated import moved

__getattr__ = moved(__name__, "vkssim.page.pictures")
