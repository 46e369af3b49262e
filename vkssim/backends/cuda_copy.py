"""Copy rows on a GPU by calls of CUDA's library that keep the interpreter's lock.

A call of the package cuda-bindings releases the lock, and has to get it back. Where several threads decode, that takes longer
than the call itself, which only queues the copy (docs/adr/0012). Structure and numbers are those of the header cuda.h.
"""

from __future__ import annotations

import ctypes

from ..frames.picture.surfaces import Rows

_LIBRARY = "libcuda.so.1"
_ON_DEVICE = 2  # CU_MEMORYTYPE_DEVICE
_DEFAULT_STREAM = None


class Region(ctypes.Structure):
    """CUDA_MEMCPY2D: rows that are copied."""

    _fields_ = (
        ("source_x", ctypes.c_size_t),
        ("source_y", ctypes.c_size_t),
        ("source_type", ctypes.c_uint),
        ("source_host", ctypes.c_void_p),
        ("source_device", ctypes.c_uint64),
        ("source_array", ctypes.c_void_p),
        ("source_pitch", ctypes.c_size_t),
        ("target_x", ctypes.c_size_t),
        ("target_y", ctypes.c_size_t),
        ("target_type", ctypes.c_uint),
        ("target_host", ctypes.c_void_p),
        ("target_device", ctypes.c_uint64),
        ("target_array", ctypes.c_void_p),
        ("target_pitch", ctypes.c_size_t),
        ("row_bytes", ctypes.c_size_t),
        ("rows", ctypes.c_size_t),
    )


class DeviceCopy:
    """Queue copies in a context, which is given by its address. Raises OSError where CUDA's library cannot be loaded."""

    def __init__(self, context: int) -> None:
        library = ctypes.PyDLL(_LIBRARY)
        self._context = ctypes.c_void_p(context)
        self._push, self._pop = library.cuCtxPushCurrent_v2, library.cuCtxPopCurrent_v2
        self._copy = library.cuMemcpy2DAsync_v2

    def copy(self, source: Rows, target: Rows, row_bytes: int, rows: int) -> tuple[str, int]:
        """Queue a copy on the default stream. Return the last function that was called, and its result, 0 for success."""
        code = int(self._push(self._context))
        if code != 0:
            return "cuCtxPushCurrent", code
        region = Region(
            source_type=_ON_DEVICE,
            source_device=source.address,
            source_pitch=source.pitch,
            target_type=_ON_DEVICE,
            target_device=target.address,
            target_pitch=target.pitch,
            row_bytes=row_bytes,
            rows=rows,
        )
        code = int(self._copy(ctypes.byref(region), _DEFAULT_STREAM))
        self._pop(ctypes.byref(ctypes.c_void_p()))
        return "cuMemcpy2DAsync", code
