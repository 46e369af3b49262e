"""The interface of each kernel: its bindings, specialisation constants and push constants.

`scripts/build_shaders` checks the compiled SPIR-V against these declarations, and the package packs its arguments by them.
This module imports only the standard library: the package's build runs it before anything is installed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Shape(Enum):
    """The two shapes of a kernel.

    STRIP is for CPUs: a thread has many columns, there are no barriers, and samples are read 16 bytes at a time through a texel
    buffer. STAGED is for GPUs: neighbouring threads have neighbouring columns, rows are staged in shared memory, and samples
    are in storage buffers.
    """

    STRIP = "strip"
    STAGED = "staged"

    @property
    def row_unit(self) -> int:
        """Return the bytes of the unit in which a kernel counts rows and planes."""
        return 16 if self is Shape.STRIP else 4


class Precision(Enum):
    """The ways in which the builds of a kernel add.

    EXACT rounds every product and the result of every pass as libvmaf does, and adds without loss. FAST adds in float32, in the
    order that is fastest. Most kernels have one build, which is EXACT.
    """

    EXACT = "exact"
    FAST = "fast"


class SampleCode(Enum):
    """Values of the specialisation constant FORMAT."""

    FLOAT32 = 0
    UINT8 = 1
    UINT16 = 2


WORKGROUP_CONSTANT = 0
FORMAT_CONSTANT = 1
TERM_CONSTANT = 2
PYRAMID_CONSTANT = 3
MAP_CONSTANT = 4
SCALE_CONSTANT = 5
AIM_CONSTANT = 6
SCALED_CONSTANT = 7
STRIDE_CONSTANT = 8
REACH_CONSTANT = 9


class Input(Enum):
    """The ways in which kernels read their sources."""

    BY_SHAPE = "texel buffers in the strip shape, storage buffers in the staged one"
    STORAGE = "storage buffers in both"


PART = ("first_workgroup_y", "first_workgroup_z")
"""The last push constants of every kernel. The host adds them, because a dispatch may be divided into parts."""


@dataclass(frozen=True)
class Interface:
    """The arguments of one kernel.

    `push` names its push constants in order, without PART. They are ints, except the names in `floats`. The buffers of
    `sources` are bound from 0, followed by those of `targets`. `constants` are the specialisation constants of every build.
    `own_workgroup` has the shapes whose workgroup size is fixed in the kernel and is no constant. `precisions` has the builds.
    """

    push: tuple[str, ...]
    sources: int = 1
    targets: int = 1
    shapes: tuple[Shape, ...] = tuple(Shape)
    own_workgroup: frozenset[Shape] = frozenset()
    precisions: tuple[Precision, ...] = (Precision.EXACT,)
    constants: frozenset[int] = frozenset({FORMAT_CONSTANT})
    input: Input = Input.BY_SHAPE
    floats: frozenset[str] = frozenset({"scale", "weight", "c1", "c2", "windows", "data_range", "middle"})

    def constants_of(self, shape: Shape) -> frozenset[int]:
        """Return the specialisation constants of a build."""
        return self.constants if shape in self.own_workgroup else self.constants | {WORKGROUP_CONSTANT}

    def reads_texels(self, shape: Shape) -> bool:
        """Return whether the sources are texel buffers."""
        return shape is Shape.STRIP and self.input is Input.BY_SHAPE

    def bindings(self, shape: Shape) -> dict[int, str]:
        """Return the bindings of a build, in the form of spirv.Reflection."""
        source = "texel buffer" if self.reads_texels(shape) else "storage buffer"
        sources = dict.fromkeys(range(self.sources), source)
        return sources | dict.fromkeys(range(self.sources, self.sources + self.targets), "storage buffer")

    def pack(self, **values: float) -> bytes:
        """Return the push constants as bytes. Raises TypeError if a name is missing or unknown."""
        if set(values) != set(self.push):
            raise TypeError(f"push constants are {self.push}, got {tuple(values)}")
        return struct.pack(self._code, *(values[name] for name in self.push))

    def unpack(self, data: bytes) -> dict[str, Any]:
        """Return the push constants by name from the bytes of `pack`: ints, or floats for names in `floats`."""
        return dict(zip(self.push, struct.unpack(self._code, data), strict=True))

    @property
    def _code(self) -> str:
        return "<" + "".join("f" if name in self.floats else "i" for name in self.push)


_WINDOW_PUSH = ("width", "height", "pitch", "plane", "strip", "first_partial", "frame_partials", "scale", "first_window")
_SOURCE = ("width", "height", "pitch", "plane", "target_pitch", "target_plane")
_LOSS_PUSH = (*_SOURCE, "strip", "margin", "first_partial", "plane_partials", "c1", "c2", "weight", "data_range")
_WINDOW_CONSTANTS = frozenset({FORMAT_CONSTANT, MAP_CONSTANT})
_SCALE_CONSTANTS = frozenset({FORMAT_CONSTANT, SCALE_CONSTANT})
_STAGED = frozenset({Shape.STAGED})
_BOTH = tuple(Precision)

INTERFACES: dict[str, Interface] = {
    "ingest": Interface((*_SOURCE, "first_plane", "scale")),
    "largest_sample": Interface(("width", "height", "pitch", "plane", "strip", "frame_partials"), shapes=(Shape.STAGED,)),
    "deinterleave": Interface(("height", "pitch", "plane"), targets=2, input=Input.STORAGE),
    "ms_ssim_decimate": Interface((*_SOURCE, "strip", "scale"), own_workgroup=_STAGED, precisions=_BOTH),
    "ssim_downscale": Interface((*_SOURCE, "factor", "weight", "scale")),
    "ssim": Interface(_WINDOW_PUSH, own_workgroup=_STAGED, precisions=_BOTH, constants=_WINDOW_CONSTANTS),
    "ms_ssim": Interface(_WINDOW_PUSH, own_workgroup=_STAGED, precisions=_BOTH),
    "ssim_uniform": Interface(_WINDOW_PUSH, own_workgroup=_STAGED, constants=_WINDOW_CONSTANTS),
    "ssim_estimate": Interface(_WINDOW_PUSH, own_workgroup=_STAGED, constants=_WINDOW_CONSTANTS),
    "psnr": Interface(_WINDOW_PUSH, own_workgroup=_STAGED),
    "vif_decimate": Interface((*_SOURCE, "mean_shift", "sample_shift"), constants=_SCALE_CONSTANTS),
    "vif": Interface(
        (
            *("width", "height", "pitch", "plane", "strip", "first_partial", "frame_partials"),
            *("mean_shift", "square_shift", "sample_shift", "gain_limit"),
        ),
        sources=2,
        own_workgroup=_STAGED,
        constants=_SCALE_CONSTANTS,
    ),
    "motion": Interface(
        ("width", "height", "pitch", "plane", "strip", "first_partial", "frame_partials", "bits", "sample_shift", "distance"),
        sources=2,
        own_workgroup=_STAGED,
    ),
    "adm": Interface(
        (
            *("width", "height", "pitch", "target_pitch", "strip", "top", "left", "bits", "sample_shift"),
            *("gain_limit", "edge_weight", "diagonal_weight", "mask_shift", "band_shift"),
        ),
        targets=2,
        own_workgroup=_STAGED,
        constants=_SCALE_CONSTANTS | {AIM_CONSTANT},
    ),
    "adm_rows": Interface(
        ("rows", "parts", "kinds", "mask_shift", "band_shift", "first_partial", "frame_partials"),
        own_workgroup=_STAGED,
        constants=frozenset(),
        input=Input.STORAGE,
    ),
    "speed": Interface(
        (*_SOURCE, "scale", "columns", "taps", "middle", "difference"),
        sources=2,
        constants=frozenset({FORMAT_CONSTANT, SCALED_CONSTANT}),
    ),
    "speed_blocks": Interface(
        ("width", "height", "pitch", "plane", "frame_partials"),
        own_workgroup=frozenset(Shape),
        constants=frozenset(),
    ),
    "cambi_levels": Interface(
        (*_SOURCE[1:], "strip", "columns", "rows", "bits", "sample_shift", "dither", "cleared"),
        sources=2,
        targets=2,
        shapes=(Shape.STAGED,),
        constants=frozenset({FORMAT_CONSTANT, SCALED_CONSTANT}),
    ),
    "cambi_flat": Interface((*_SOURCE, "strip", "needed"), shapes=(Shape.STAGED,), constants=frozenset()),
    "cambi_places": Interface(
        (
            *(*_SOURCE[1:], "strip", "columns", "rows", "bits", "sample_shift", "dither", "needed"),
            *("cleared", "frame_values"),
        ),
        sources=2,
        targets=3,
        shapes=(Shape.STRIP,),
        constants=frozenset({FORMAT_CONSTANT, SCALED_CONSTANT, STRIDE_CONSTANT}),
    ),
    "cambi_mode": Interface((*_SOURCE[1:], "strip", "columns", "rows", "stride"), constants=frozenset()),
    "cambi": Interface(
        (
            *("width", "height", "pitch", "plane", "strip", "reach"),
            *("first_value", "frame_values", "contrasts", "darkest"),
        ),
        sources=2,
        own_workgroup=frozenset(Shape),
        constants=frozenset(),
        input=Input.STORAGE,
    ),
    "cambi_lists": Interface(
        (
            *("width", "height", "pitch", "tile", "strip", "first_strip", "first_value", "frame_values"),
            *("frame_columns", "first_list", "contrasts", "darkest", "lowest", "highest"),
        ),
        sources=3,
        targets=2,
        shapes=(Shape.STRIP,),
        constants=frozenset({REACH_CONSTANT}),
    ),
    "cambi_select": Interface(
        ("run", "part", "frame_values", "frame_partials"),
        sources=2,
        targets=2,
        own_workgroup=_STAGED,
        constants=frozenset(),
    ),
    "loss_value": Interface(_LOSS_PUSH, sources=2, own_workgroup=_STAGED, constants=frozenset({TERM_CONSTANT})),
    "loss_gradient": Interface(
        _LOSS_PUSH,
        sources=2,
        targets=2,
        own_workgroup=_STAGED,
        constants=frozenset({TERM_CONSTANT}),
    ),
    "loss_gather": Interface(
        (*_SOURCE, "strip", "weight", "data_range"), sources=3, shapes=(Shape.STRIP,), constants=frozenset()
    ),
    "loss_average": Interface(_SOURCE, constants=frozenset(), input=Input.STORAGE),
    "loss_means": Interface(
        ("first_partial", "plane_partials", "groups", "scale_index", "scales", "null_negative", "weight", "windows"),
        own_workgroup=frozenset(Shape),
        constants=frozenset(),
        input=Input.STORAGE,
    ),
    "loss_collect": Interface(
        (*_SOURCE, "scale_index", "scales"), sources=2, constants=frozenset({PYRAMID_CONSTANT}), input=Input.STORAGE
    ),
}
"""The kernels by the stem of their source."""


def module_name(stem: str, shape: Shape, precision: Precision = Precision.EXACT) -> str:
    """Return the name of a compiled module: `stem.shape` or `stem.shape.fast`."""
    return f"{stem}.{shape.value}" + ".fast" * (precision is Precision.FAST)


def modules() -> Iterator[tuple[str, Shape, Precision]]:
    """Yield all builds: stem, shape, precision."""
    for stem, interface in INTERFACES.items():
        for shape in interface.shapes:
            for precision in interface.precisions:
                yield stem, shape, precision
