"""What each kernel expects of its host: bindings, specialisation constants and push constants.

`scripts/build_shaders` holds the compiled SPIR-V to these declarations; the package packs its arguments by them.
This module imports only the standard library: the package's build runs it before anything is installed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
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
    """The arguments of one kernel.

    `push` names its push constants in order: ints, but floats where `floats` has the name. `own_workgroup`: in the staged
    shape its workgroup is part of the kernel and no constant. `exact`: there is also a build that rounds as libvmaf does,
    with columns of its own and an open workgroup in both shapes.
    """

    push: tuple[str, ...]
    own_workgroup: bool = False
    exact: bool = False
    floats: frozenset[str] = frozenset({"scale", "weight"})

    def constants(self, shape: Shape, exact: bool = False) -> frozenset[int]:
        """The specialisation constants of a build."""
        if self.own_workgroup and shape is Shape.STAGED and not exact:
            return frozenset({FORMAT_CONSTANT})
        return frozenset({WORKGROUP_CONSTANT, FORMAT_CONSTANT})

    def pack(self, **values: float) -> bytes:
        """The push constants as bytes. Raises TypeError where a name is missing or unknown."""
        if set(values) != set(self.push):
            raise TypeError(f"push constants are {self.push}, got {tuple(values)}")
        code = "<" + "".join("f" if name in self.floats else "i" for name in self.push)
        return struct.pack(code, *(values[name] for name in self.push))


_WINDOW_PUSH = ("width", "height", "pitch", "plane", "strip", "first_partial", "frame_partials", "scale")
_SOURCE = ("width", "height", "pitch", "plane", "target_pitch", "target_plane")

INTERFACES: dict[str, Interface] = {
    "ingest": Interface((*_SOURCE, "first_plane", "scale")),
    "ms_ssim_decimate": Interface((*_SOURCE, "strip", "scale"), own_workgroup=True, exact=True),
    "ms_ssim": Interface(_WINDOW_PUSH, own_workgroup=True, exact=True),
    "ssim_downscale": Interface((*_SOURCE, "factor", "weight", "scale")),
    "ssim": Interface(_WINDOW_PUSH, own_workgroup=True, exact=True),
}
"""The kernels by the stem of their source."""


def module_name(stem: str, shape: Shape, exact: bool = False) -> str:
    """The name of a compiled module: `stem.shape`, or `stem.shape.exact`."""
    return f"{stem}.{shape.value}.exact" if exact else f"{stem}.{shape.value}"


def modules() -> Iterator[tuple[str, Shape, bool]]:
    """All builds: stem, shape, exact."""
    for stem, interface in INTERFACES.items():
        for shape in Shape:
            yield stem, shape, False
            if interface.exact:
                yield stem, shape, True
