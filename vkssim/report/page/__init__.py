"""Deprecated: see `vkssim.page.render`."""

from vkssim.utils.deprecated import moved

__getattr__ = moved(__name__, "vkssim.page.render")
