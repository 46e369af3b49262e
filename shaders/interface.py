"""What each kernel expects of its host: bindings, specialisation constants and push constants.

`scripts/build_shaders` holds the compiled SPIR-V to these declarations; the package packs its arguments by them.
This module imports only the standard library: the package's build runs it before anything is installed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum


class Shape(Enum):
    """The two shapes that a kernel comes in.

    STRIP, for CPUs: many columns a thread, no barrier, samples fetched 16 bytes at a time through a texel buffer.
    STAGED, for GPUs: neighbouring threads on neighbouring columns, rows staged in shared memory, storage buffers.
    """

    STRIP = "strip"
    STAGED = "staged"

    @property
    def row_unit(self) -> int:
        """Bytes of the unit in which a kernel counts rows and planes."""
        return 16 if self is Shape.STRIP else 4


class SampleCode(Enum):
    """Values of the specialisation constant FORMAT."""

    FLOAT32 = 0
    UINT8 = 1
    UINT16 = 2


WORKGROUP_CONSTANT = 0
FORMAT_CONSTANT = 1


@dataclass(frozen=True)
class Interface:
    """The arguments of one kernel. `push` names its push constants in order: ints, but floats where `floats` has the name."""

    push: tuple[str, ...]
    constants: dict[Shape, frozenset[int]]
    floats: frozenset[str] = frozenset({"scale", "weight"})

    def pack(self, **values: float) -> bytes:
        """The push constants as bytes. Raises TypeError where a name is missing or unknown."""
        if set(values) != set(self.push):
            raise TypeError(f"push constants are {self.push}, got {tuple(values)}")
        code = "<" + "".join("f" if name in self.floats else "i" for name in self.push)
        return struct.pack(code, *(values[name] for name in self.push))


_ANY_WORKGROUP = dict.fromkeys(Shape, frozenset({WORKGROUP_CONSTANT, FORMAT_CONSTANT}))
_OWN_WORKGROUP_WHEN_STAGED = {
    Shape.STRIP: frozenset({WORKGROUP_CONSTANT, FORMAT_CONSTANT}),
    Shape.STAGED: frozenset({FORMAT_CONSTANT}),  # the workgroup is part of the kernel
}
_WINDOW_PUSH = ("width", "height", "pitch", "plane", "strip", "first_partial", "frame_partials", "scale")
_SOURCE = ("width", "height", "pitch", "plane", "target_pitch", "target_plane")

INTERFACES: dict[str, Interface] = {
    "ingest": Interface((*_SOURCE, "first_plane", "scale"), _ANY_WORKGROUP),
    "ms_ssim_decimate": Interface((*_SOURCE, "strip", "scale"), _OWN_WORKGROUP_WHEN_STAGED),
    "ms_ssim": Interface(_WINDOW_PUSH, _OWN_WORKGROUP_WHEN_STAGED),
    "ssim_downscale": Interface((*_SOURCE, "factor", "weight", "scale"), _ANY_WORKGROUP),
    "ssim": Interface(_WINDOW_PUSH, _OWN_WORKGROUP_WHEN_STAGED),
}
"""The kernels by the stem of their source."""


def module_name(stem: str, shape: Shape) -> str:
    """The name of a compiled module, `stem.shape`."""
    return f"{stem}.{shape.value}"
