"""Choose the hardware decoder that goes with a backend: the video engine of the GPU that scores."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec

from ..errors import NoDeviceError, NoLoaderError, UnsuitableDeviceError
from ..frames.decode.hardware import HardwareDecoder, check_decode
from ..host.device import can_share
from ..host.devices import DeviceInfo, choose_device, list_devices
from ..host.instance import shared_instance
from .nvdec import NvidiaDriver

_NVIDIA = 0x10DE
_CUDA = "cuda"


def hardware_decoder(decode: str, backend: str, device: str | int | None) -> HardwareDecoder | None:
    """Return the decoder for clips that are scored on a device, by `decode` as in `score_files`; None for the processor alone.

    CUDA decodes on the GPU that scores. Nothing of CUDA is loaded before the first compressed clip is opened. Raises
    OptionError for a decoder that there is not.
    """
    check_decode(decode)
    if decode == "auto":
        gpu = _nvidia(device) if backend == "vulkan" and find_spec("cuda") is not None else None
        return HardwareDecoder(_CUDA, _driver(gpu), required=False) if gpu is not None and _has_bindings() else None
    if decode == "cpu":
        return None
    if decode != _CUDA:
        return HardwareDecoder(decode)
    gpu = _nvidia(device) if backend == "vulkan" and _has_bindings() else None
    return HardwareDecoder(decode, NvidiaDriver(None) if gpu is None else _driver(gpu))


def sessions(decoder: HardwareDecoder) -> int:
    """Return how many clips the engines of a decoder decode side by side; one where that is not known."""
    return decoder.gpu.engines if isinstance(decoder.gpu, NvidiaDriver) else 1


def _nvidia(device: str | int | None) -> DeviceInfo | None:
    """Return the device that scores where it is a GPU of NVIDIA's."""
    try:
        info = choose_device(list_devices(shared_instance()), device)
    except (NoLoaderError, NoDeviceError, UnsuitableDeviceError):  # the backend says so, after the clips were opened
        return None
    return info if info.vendor_id == _NVIDIA else None


def _driver(gpu: DeviceInfo) -> NvidiaDriver:
    return NvidiaDriver(gpu.uuid, shares=can_share(gpu))


def _has_bindings() -> bool:
    """Return whether the package cuda-bindings is installed. The question imports the package `cuda`, which is empty."""
    with suppress(ImportError):
        return find_spec("cuda.bindings") is not None
    return False
