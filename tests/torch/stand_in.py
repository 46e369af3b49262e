"""Stand in for PyTorch's side of CUDA on a machine without it: tensors on the CPU are the GPU's, and there is one stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from vkssim.backends.sessions import close_sessions
from vkssim.host import device as host_device
from vkssim.host.devices import choose_device, list_devices
from vkssim.host.instance import shared_instance
from vkssim.shaders.interface import Shape
from vkssim.torch import cuda

from ..support.devices.geometry import use_shape
from ..support.devices.host_cuda import HostCuda

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
"""The device of the tensors for which memory is shared."""

STREAM = SimpleNamespace(cuda_stream=0)


@contextmanager
def sharing() -> Iterator[None]:
    """Have losses of tensors on DEVICE computed in shared memory: by CUDA itself if it is there."""
    with pytest.MonkeyPatch.context() as patch:
        if DEVICE == "cpu":
            _stand_in(patch)
        try:
            yield
        finally:
            close_sessions()
            cuda._gpus.clear()
            cuda._refusals.clear()


def _stand_in(patch: pytest.MonkeyPatch) -> None:
    gpu = choose_device(list_devices(shared_instance()))
    patch.setattr(host_device, "SHARING_EXTENSIONS", ("VK_KHR_timeline_semaphore",))
    use_shape(patch, Shape.STAGED)  # that of GPUs
    patch.setattr(cuda, "Cuda", lambda _gpu: HostCuda())
    patch.setattr(cuda, "_index_of", lambda _device: 0)
    patch.setattr(cuda, "takes", lambda _device: True)
    patch.setattr(cuda, "tensor_of", _tensor_of)
    patch.setattr(torch.cuda, "current_stream", lambda _index: STREAM)
    patch.setattr(torch.cuda, "get_device_properties", lambda _index: SimpleNamespace(uuid=gpu.uuid))
    patch.setattr(torch.cuda, "synchronize", lambda _index: None)


class _Array:
    """A lease as NumPy takes it."""

    def __init__(self, lease: Any) -> None:
        self._lease = lease
        self.__array_interface__ = lease.__cuda_array_interface__


def _tensor_of(lease: Any, _device: torch.device) -> Tensor:
    return torch.from_numpy(np.asarray(_Array(lease)))


def empty(shape: tuple[int, ...]) -> Tensor:
    """Return a tensor in shared memory, as `vkssim.torch.empty` does."""
    return cuda.use_sharing(torch.device(DEVICE), lambda opened: opened.lease(shape, opened.stream().cuda_stream))
