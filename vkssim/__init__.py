"""libvmaf's SSIM and MS-SSIM as Vulkan compute shaders, on every GPU and on any CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "FrameScores": "scorer",
    "RawDescription": "frames.open",
    "ScoreReport": "results",
    "Scorer": "scorer",
    "Selection": "files",
    "VkssimError": "errors",
    "ms_ssim": "arrays",
    "score_files": "files",
    "ssim": "arrays",
}

__all__ = [
    "FrameScores",
    "RawDescription",
    "ScoreReport",
    "Scorer",
    "Selection",
    "VkssimError",
    "__version__",
    "ms_ssim",
    "score_files",
    "ssim",
]

if TYPE_CHECKING:
    from .arrays import ms_ssim, ssim
    from .errors import VkssimError
    from .files import Selection, score_files
    from .frames.open import RawDescription
    from .results import ScoreReport
    from .scorer import FrameScores, Scorer


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `import vkssim` alone stays quick."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
