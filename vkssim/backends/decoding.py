"""Choose the hardware decoder that goes with a backend: the video engine of the GPU that scores."""

from __future__ import annotations

import logging
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec

from ..errors import DeviceError, NoDeviceError, NoLoaderError, UnsuitableDeviceError
from ..frames.decode.hardware import EXACT, CodedVideo, HardwareDecoder, check_decode
from ..frames.pixels import SurfaceCopy
from ..host.device import missing_for_sharing
from ..host.devices import NVIDIA, DeviceInfo, choose_device, list_devices
from ..host.instance import shared_instance
from .cuda import CHROMA, CODECS, Capabilities, Cuda, ask, cuda_of

_log = logging.getLogger("vkssim")

_CUDA = "cuda"
_CHROMA_NAMES = {"400": "grey", "422": "4:2:2", "444": "4:4:4"}
_MACROBLOCK = 16 * 16


@dataclass(frozen=True)
class NvidiaDriver:
    """NVIDIA's driver of a GPU, by its UUID, or of the first one. Nothing is loaded before the first question.

    With `shares`, its memory can be shared with Vulkan, so that decoded frames stay there.
    """

    gpu: uuid.UUID | None
    shares: bool = field(default=False, kw_only=True)

    def __getstate__(self) -> dict[str, object]:
        """Leave out CUDA's side, which belongs to this process."""
        return {"gpu": self.gpu, "shares": self.shares}

    @cached_property
    def _opened(self) -> Cuda | str:
        """Return CUDA's side of the GPU, or why there is none: cuda-bindings or the driver is missing, or CUDA refuses it."""
        try:
            return cuda_of(self.gpu)
        except DeviceError as error:
            return str(error)

    @property
    def _cuda(self) -> Cuda | None:
        return None if isinstance(self._opened, str) else self._opened

    @property
    def device(self) -> str | None:
        """Return CUDA's number of the GPU; None if CUDA does not list it."""
        return None if self._cuda is None else str(self._cuda.ordinal)

    @property
    def surfaces(self) -> SurfaceCopy | None:
        """See `Driver`."""
        return self._cuda.copy if self.shares and self._cuda is not None else None

    @cached_property
    def engines(self) -> int:
        """Return how many engines the GPU has, which decode side by side; 1 if the driver does not say."""
        answer = self._ask("h264", "420", 8)  # every GPU with an engine decodes it
        return max(1, answer.engines) if answer is not None else 1

    def refuses(self, video: CodedVideo) -> str | None:
        """Return why the GPU cannot decode a stream; None if it can, or if the driver does not say."""
        if self.gpu is not None and isinstance(self._opened, str):
            return f"CUDA cannot open the GPU that scores ({self._opened})"
        label = " ".join(filter(None, [EXACT.get(video.codec, video.codec), _CHROMA_NAMES.get(video.chroma)]))
        if video.codec not in CODECS or video.chroma not in CHROMA:
            return f"the GPU has no decoder for {label}"
        answer = self._ask(video.codec, video.chroma, video.bits)
        if answer is None:  # FFmpeg asks as well, when the decoder is opened
            return None
        if not answer.is_supported:
            return f"the GPU has no decoder for {label} of {video.bits} bits"
        size = f"{video.width}x{video.height}"
        if video.width < answer.least_width or video.height < answer.least_height:
            return f"{size} is smaller than its {answer.least_width}x{answer.least_height}"
        if video.width > answer.most_width or video.height > answer.most_height:
            return f"{size} is larger than its {answer.most_width}x{answer.most_height}"
        if video.width * video.height // _MACROBLOCK > answer.most_macroblocks:
            return f"{size} has more macroblocks than its {answer.most_macroblocks}"
        return None

    def _ask(self, codec: str, chroma: str, bits: int) -> Capabilities | None:
        """Return the driver's answer about a codec, None if it cannot be asked."""
        if self._cuda is None:
            return None
        try:
            return ask(self._cuda, codec, chroma, bits)
        except DeviceError:
            return None


def hardware_decoder(decode: str, backend: str, device: str | int | None) -> HardwareDecoder | None:
    """Return the decoder for clips that are scored on a device, by `decode` as in `score_files`; None for the CPU alone.

    CUDA decodes on the GPU that scores. Nothing of CUDA is loaded before the first compressed clip is opened. The answer stays
    the same until the process ends, and so the decoders stay open that clips have left. Raises OptionError for an unknown
    decoder.
    """
    decoder = _decoder_of(decode, backend, device)
    return None if decoder is None else _decoders.setdefault(decoder, decoder)


_decoders: dict[HardwareDecoder, HardwareDecoder] = {}


def _decoder_of(decode: str, backend: str, device: str | int | None) -> HardwareDecoder | None:
    check_decode(decode)
    if decode == "cpu":
        return None
    if decode not in ("auto", _CUDA):
        return HardwareDecoder(decode)
    gpu = _nvidia(device) if backend == "vulkan" and find_spec("cuda") is not None else None
    if gpu is not None and _has_bindings():
        return HardwareDecoder(_CUDA, NvidiaDriver(gpu.uuid, shares=not missing_for_sharing(gpu)), required=decode == _CUDA)
    if decode == _CUDA:
        return HardwareDecoder(_CUDA, NvidiaDriver(None))
    _log.debug("decoded by the CPU: the device that scores is not a GPU of NVIDIA, or cuda-bindings is missing")
    return None


def may_share(decoder: HardwareDecoder) -> bool:
    """Return whether decoded frames stay on the GPU that scores, unless CUDA refuses it. CUDA is not loaded for the answer."""
    return isinstance(decoder.gpu, NvidiaDriver) and decoder.gpu.shares


def sessions(decoder: HardwareDecoder) -> int:
    """Return how many clips the engines of a decoder decode side by side; one if that is not known."""
    return decoder.gpu.engines if isinstance(decoder.gpu, NvidiaDriver) else 1


def _nvidia(device: str | int | None) -> DeviceInfo | None:
    """Return the device that scores if it is a GPU of NVIDIA's."""
    try:
        info = choose_device(list_devices(shared_instance()), device)
    except (NoLoaderError, NoDeviceError, UnsuitableDeviceError):  # the backend says so, after the clips were opened
        return None
    return info if info.vendor_id == NVIDIA else None


def _has_bindings() -> bool:
    """Return whether the package cuda-bindings is installed. The question imports the package `cuda`, which is empty."""
    with suppress(ImportError):
        return find_spec("cuda.bindings") is not None
    return False
