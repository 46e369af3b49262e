"""Choose the hardware decoder that goes with a backend: the video engine of the GPU that scores."""

from __future__ import annotations

from ..errors import DeviceError
from ..frames.hardware import HardwareDecoder, check_decode
from ..host.device import can_share
from ..host.devices import DeviceInfo, choose_device, list_devices
from ..host.instance import shared_instance
from .cuda import Cuda, cuda_of
from .nvdec import engines

_NVIDIA = 0x10DE
_CUDA = "cuda"


def hardware_decoder(decode: str, backend: str, device: str | int | None) -> HardwareDecoder | None:
    """Return the decoder for clips that are scored on a device, by `decode` as in `score_files`; None for the processor.

    CUDA decodes on the GPU that scores. Raises OptionError for a decoder that there is not.
    """
    check_decode(decode)
    if decode == "cpu":
        return None
    gpu = _nvidia(device) if decode == _CUDA and backend == "vulkan" else None
    cuda = None if gpu is None else _cuda(gpu)
    return HardwareDecoder(decode) if cuda is None else HardwareDecoder(decode, str(cuda.ordinal), surfaces=cuda)


def sessions(decoder: HardwareDecoder) -> int:
    """Return how many clips the engines of a decoder decode side by side; one where that is not known."""
    return engines(decoder.device) if decoder.kind == _CUDA else 1


def _nvidia(device: str | int | None) -> DeviceInfo | None:
    """Return the device that scores where it is a GPU of NVIDIA's."""
    try:
        info = choose_device(list_devices(shared_instance()), device)
    except DeviceError:  # the backend says so, after the clips were opened
        return None
    return info if info.vendor_id == _NVIDIA else None


def _cuda(device: DeviceInfo) -> Cuda | None:
    """Return CUDA's side of a Vulkan device; None where it shares no memory, for FFmpeg then copies the frames to the host."""
    try:
        return cuda_of(device.uuid) if can_share(device) else None
    except DeviceError:
        return None
