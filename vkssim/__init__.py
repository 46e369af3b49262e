"""libvmaf's SSIM and MS-SSIM as Vulkan compute shaders, on every GPU and on any CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .utils.version import __version__

_HOME = {
    "FrameScores": "report.frame_scores",
    "PairScores": "many",
    "PictureOptions": "frames.pictures",
    "RawDescription": "frames.open",
    "ScoreReport": "report.results",
    "Scorer": "scorer",
    "Selection": "frames.selection",
    "VkssimError": "errors",
    "find_offset": "scoring.offset",
    "ms_ssim": "arrays",
    "ms_ssim_and_grad": "gradients",
    "score_files": "files",
    "score_many": "many",
    "ssim": "arrays",
    "ssim_and_grad": "gradients",
}

__all__ = [
    "FrameScores",
    "PairScores",
    "PictureOptions",
    "RawDescription",
    "ScoreReport",
    "Scorer",
    "Selection",
    "VkssimError",
    "__version__",
    "find_offset",
    "ms_ssim",
    "ms_ssim_and_grad",
    "score_files",
    "score_many",
    "ssim",
    "ssim_and_grad",
]

if TYPE_CHECKING:
    from .arrays import ms_ssim, ssim
    from .errors import VkssimError
    from .files import score_files
    from .frames.open import RawDescription
    from .frames.pictures import PictureOptions
    from .frames.selection import Selection
    from .gradients import ms_ssim_and_grad, ssim_and_grad
    from .many import PairScores, score_many
    from .report.frame_scores import FrameScores
    from .report.results import ScoreReport
    from .scorer import Scorer
    from .scoring.offset import find_offset


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `import vkssim` alone stays quick."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
