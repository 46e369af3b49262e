"""Ask NVIDIA's driver what the video engines of a GPU can decode, by the decoder capabilities of the Video Codec SDK.

Structure and numbers are those of its header cuviddec.h. It needs the package cuda-bindings.
"""

from __future__ import annotations

import ctypes
import uuid
from dataclasses import dataclass
from functools import cache, cached_property

from ..errors import DeviceError
from ..frames.decode.hardware import EXACT, CodedVideo
from .cuda import Cuda, cuda_of

_LIBRARY = "libnvcuvid.so.1"
_CODECS = {"h264": 4, "hevc": 8, "vp8": 9, "vp9": 10, "av1": 11}  # cudaVideoCodec
_CHROMA = {"400": 0, "420": 1, "422": 2, "444": 3}  # cudaVideoChromaFormat
_CHROMA_NAMES = {"400": "grey", "422": "4:2:2", "444": "4:4:4"}
_MACROBLOCK = 16 * 16


class Capabilities(ctypes.Structure):
    """CUVIDDECODECAPS: the first three fields are asked, the driver fills in the others."""

    _fields_ = (
        ("codec", ctypes.c_int),
        ("chroma", ctypes.c_int),
        ("bits_beyond_8", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 3),
        ("is_supported", ctypes.c_ubyte),
        ("engines", ctypes.c_ubyte),
        ("output_formats", ctypes.c_ushort),
        ("most_width", ctypes.c_uint),
        ("most_height", ctypes.c_uint),
        ("most_macroblocks", ctypes.c_uint),
        ("least_width", ctypes.c_ushort),
        ("least_height", ctypes.c_ushort),
        ("has_histogram", ctypes.c_ubyte),
        ("histogram_bits", ctypes.c_ubyte),
        ("most_bins", ctypes.c_ushort),
        ("reserved_too", ctypes.c_uint * 10),
    )


@dataclass(frozen=True)
class Answer:
    """Hold what a driver says of a codec: whether it is decoded, by how many engines, and frames of which sizes."""

    is_supported: bool
    engines: int = 0
    most: tuple[int, int] = (0, 0)
    most_macroblocks: int = 0
    least: tuple[int, int] = (0, 0)


class NvidiaDriver:
    """Ask about the GPU that Vulkan knows by a UUID, None for the first one. Nothing is loaded before the first question.

    With `shares`, its memory can be shared with Vulkan, so that decoded frames stay there.
    """

    def __init__(self, gpu: uuid.UUID | None, *, shares: bool = False) -> None:
        self._gpu = gpu
        self._shares = shares

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NvidiaDriver) and other._gpu == self._gpu

    def __hash__(self) -> int:
        return hash(self._gpu)

    def __getstate__(self) -> dict[str, object]:
        """Leave out what CUDA opened, which belongs to this process."""
        return {"_gpu": self._gpu, "_shares": self._shares}

    @cached_property
    def _opened(self) -> Cuda | str:
        """Return CUDA's side of the GPU, or why there is none: cuda-bindings or the driver is missing, or CUDA refuses it."""
        try:
            return cuda_of(self._gpu)
        except DeviceError as error:
            return str(error)

    @property
    def _cuda(self) -> Cuda | None:
        return None if isinstance(self._opened, str) else self._opened

    @property
    def device(self) -> str | None:
        """Return the number by which CUDA knows the GPU; None where CUDA does not know it."""
        return None if self._cuda is None else str(self._cuda.ordinal)

    @property
    def surfaces(self) -> Cuda | None:
        """See `Driver`."""
        return self._cuda if self._shares else None

    @cached_property
    def engines(self) -> int:
        """Return how many engines the GPU has, which decode side by side; 1 where the driver does not say."""
        answer = self._ask("h264", "420", 8)  # every GPU with an engine decodes it
        return max(1, answer.engines) if answer is not None else 1

    def refuses(self, video: CodedVideo) -> str | None:
        """Return why the GPU cannot decode a stream; None where it can, or where the driver does not say."""
        if self._gpu is not None and isinstance(self._opened, str):
            return f"CUDA cannot open the GPU that scores ({self._opened})"
        label = " ".join(filter(None, [EXACT.get(video.codec, video.codec), _CHROMA_NAMES.get(video.chroma)]))
        if video.codec not in _CODECS or video.chroma not in _CHROMA:
            return f"the GPU has no decoder for {label}"
        answer = self._ask(video.codec, video.chroma, video.bits)
        if answer is None:  # FFmpeg asks as well, when the decoder is opened
            return None
        if not answer.is_supported:
            return f"the GPU has no decoder for {label} of {video.bits} bits"
        size, most = (video.width, video.height), answer.most
        if any(side < limit for side, limit in zip(size, answer.least, strict=True)):
            return f"{_size(size)} is smaller than its {_size(answer.least)}"
        if any(side > limit for side, limit in zip(size, most, strict=True)):
            return f"{_size(size)} is larger than its {_size(most)}"
        if video.width * video.height // _MACROBLOCK > answer.most_macroblocks:
            return f"{_size(size)} has more macroblocks than its {answer.most_macroblocks}"
        return None

    def _ask(self, codec: str, chroma: str, bits: int) -> Answer | None:
        """Return what the driver says of a codec, None where it cannot be asked."""
        if self._cuda is None:
            return None
        try:
            return ask(self._cuda, codec, chroma, bits)
        except DeviceError:
            return None


@cache
def ask(cuda: Cuda, codec: str, chroma: str, bits: int) -> Answer | None:
    """Return what NVIDIA's driver says of a codec; None where it has no library for video. It takes the driver some 0.1 s."""
    try:
        get_capabilities = ctypes.CDLL(_LIBRARY).cuvidGetDecoderCaps
    except (OSError, AttributeError):
        return None
    asked = Capabilities(codec=_CODECS[codec], chroma=_CHROMA[chroma], bits_beyond_8=bits - 8)
    with cuda.current():
        if get_capabilities(ctypes.byref(asked)) != 0:
            return None
    return Answer(
        bool(asked.is_supported),
        asked.engines,
        (asked.most_width, asked.most_height),
        asked.most_macroblocks,
        (asked.least_width, asked.least_height),
    )


def _size(sides: tuple[int, int]) -> str:
    return "x".join(map(str, sides))
