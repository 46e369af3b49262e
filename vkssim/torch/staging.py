"""Permission to copy tensors through host memory if their memory cannot be shared with Vulkan."""

from __future__ import annotations

from types import TracebackType

_allowed = False


class host_staging:  # noqa: N801 - reads as a function, as torch.no_grad does
    """A permission for copies through pinned host memory, for tensors whose memory cannot be shared with Vulkan.

    A call allows them from then on, and a `with` statement until its end. Otherwise such tensors raise DeviceError, because the
    copies take many times as long as the loss itself.

    Parameters
    ----------
    allowed : bool
        False forbids them again.

    """

    def __init__(self, allowed: bool = True) -> None:
        global _allowed
        self._before, _allowed = _allowed, allowed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        global _allowed
        _allowed = self._before


def is_allowed() -> bool:
    """Return whether copies through host memory are allowed."""
    return _allowed
