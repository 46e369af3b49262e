"""Ask NVIDIA's driver for the video engines of a GPU, by the decoder capabilities of the Video Codec SDK (cuviddec.h)."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_LIBRARY = "libnvcuvid.so.1"
_H264, _420 = 4, 1  # cudaVideoCodec_H264, cudaVideoChromaFormat_420: every GPU with an engine decodes them


class _Capabilities(ctypes.Structure):
    """CUVIDDECODECAPS."""

    _fields_ = (
        ("codec", ctypes.c_int),
        ("chroma", ctypes.c_int),
        ("bits_beyond_8", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 3),
        ("is_supported", ctypes.c_ubyte),
        ("engines", ctypes.c_ubyte),
        ("output_formats", ctypes.c_ushort),
        ("limits", ctypes.c_uint * 32),
    )


def engines(ordinal: str | None) -> int:
    """Return how many video engines the GPU has that CUDA knows by that number; 1 where the driver does not say.

    It needs the package cuda-bindings.
    """
    with suppress(ImportError, OSError, AttributeError):
        from cuda.bindings import driver

        asked = _Capabilities(codec=_H264, chroma=_420)
        library = ctypes.CDLL(_LIBRARY)
        if int(driver.cuInit(0)[0]):
            return 1
        _, device = driver.cuDeviceGet(int(ordinal or 0))
        failed, context = driver.cuDevicePrimaryCtxRetain(device)
        if int(failed):
            return 1
        try:
            driver.cuCtxPushCurrent(context)
            if library.cuvidGetDecoderCaps(ctypes.byref(asked)) == 0 and asked.is_supported:
                return max(1, int(asked.engines))
        finally:
            driver.cuCtxPopCurrent()
            driver.cuDevicePrimaryCtxRelease(device)
    return 1
