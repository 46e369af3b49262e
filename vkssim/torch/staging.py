"""Whether tensors may go through the host's memory where a Vulkan device cannot reach theirs."""

from __future__ import annotations

from types import TracebackType

_allowed = False


class host_staging:  # noqa: N801 - reads as a function, as torch.no_grad does
    """Allow that tensors of a device whose memory cannot be shared with Vulkan go through pinned memory of the host.

    Called, it holds from then on; in a `with` statement until its end. Without it such tensors raise DeviceError, since the way
    through the host costs many times the loss itself.

    Parameters
    ----------
    allowed : bool
        False forbids it again.

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
    """Return whether the way through the host is open."""
    return _allowed
