"""The version of vkssim, the one place where it stands."""

from __future__ import annotations

__version__ = "0.1.0"
