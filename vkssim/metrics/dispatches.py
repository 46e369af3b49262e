"""Building blocks of a frame's plan: pairs of planes on the device and the kernels that make and read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Self

from ..host.devices import DeviceInfo
from ..host.plan import BufferSpec, Dispatch, Kernel, Role
from ..shaders.constants import (
    DECIMATE_COLUMNS,
    DECIMATE_OUTPUTS,
    DECIMATE_WORKGROUP,
    EXACT_OUTPUTS,
    EXACT_WORKGROUP,
    FRAGMENT,
    FRAGMENT_WINDOWS,
    GAUSSIAN,
    INGEST_COLUMNS,
    POINTWISE_ROWS,
    STRIP_COLUMNS,
    UNIFORM,
    WINDOW_WORKGROUP,
)
from ..shaders.interface import (
    FORMAT_CONSTANT,
    INTERFACES,
    MAP_CONSTANT,
    WORKGROUP_CONSTANT,
    Precision,
    SampleCode,
    Shape,
    module_name,
)
from ..types import FrameFormat

ROW_ALIGNMENT = 16
"""Each row begins at a multiple of these bytes: four floats, which a kernel reads at once."""

_DECIMATE_ROWS = {Shape.STRIP: 72, Shape.STAGED: 68}  # of a strip of the low-pass at most, by the shape of the kernels

_SMALLEST_STRIP = 16
_ENOUGH_WORKGROUPS = 16  # for one frame or plane; a batch has many frames


def strip_rows(longest: int, rows: int, groups_x: int) -> int:
    """Return the rows of a strip.

    Long strips are better, because each strip first reads a margin, but there must be enough strips to occupy the device. The
    result depends only on the size of the frame: the division changes the last bits of sums, which must not depend on the
    batch.
    """
    strips = ceil_div(rows, longest)
    enough = ceil_div(_ENOUGH_WORKGROUPS, groups_x)
    return ceil_div(rows, max(strips, min(enough, ceil_div(rows, _SMALLEST_STRIP))))


def aligned(size: int) -> int:
    """Return a size in bytes, rounded up to a multiple of `ROW_ALIGNMENT`."""
    return ceil_div(size, ROW_ALIGNMENT) * ROW_ALIGNMENT


def ceil_div(value: int, divisor: int) -> int:
    """Return the quotient, rounded up."""
    return -(-value // divisor)


MARGIN = len(GAUSSIAN) - 1
"""The difference between the sides of a plane and of its map of windows."""

SAMPLES = "samples"
"""The buffer to which the host writes frames."""

CHROMA = "chroma"
"""The buffer to which another API of the GPU writes the chroma of surfaces: Cb and Cr of each sample side by side."""

_WINDOW_ROWS = {Shape.STRIP: 72, Shape.STAGED: 134}
_LARGEST_ROWS = 32
_STAGED_WORKGROUP = 64


@dataclass(frozen=True)
class KernelShape:
    """The shape of the kernels for a device, their workgroup size if it is a constant, and the build if a kernel has two."""

    shape: Shape
    workgroup: int
    precision: Precision = Precision.EXACT

    @classmethod
    def for_device(cls, info: DeviceInfo, shape: Shape | None = None) -> KernelShape:
        """Return the shape for a device, by default strip for lavapipe and staged for all other devices.

        The staged shape computes the same on every device. The strip shape is made for lavapipe's compiler: SwiftShader's takes
        a minute and 6 GB for the window of it, and NVIDIA's gives other sums of adm. Its workgroup is one subgroup.
        """
        shape = shape or (Shape.STRIP if info.is_lavapipe else Shape.STAGED)
        return cls(shape, info.subgroup_size if shape is Shape.STRIP else _STAGED_WORKGROUP)

    def kernel(self, stem: str, constants: Mapping[int, int]) -> Kernel:
        """Return the kernel of a stem with specialisation constants by number; the workgroup size is added."""
        interface = INTERFACES[stem]
        precision = self.precision if self.precision in interface.precisions else Precision.EXACT
        values = {WORKGROUP_CONSTANT: self.workgroup, MAP_CONSTANT: 0, **constants}
        return Kernel(
            module_name(stem, self.shape, precision),
            tuple((number, values[number]) for number in sorted(interface.constants_of(self.shape))),
            texel_input=interface.reads_texels(self.shape),
            sources=interface.sources,
            targets=interface.targets,
        )

    @property
    def window_columns(self) -> int:
        """Return the columns of windows that a workgroup processes."""
        if self.shape is Shape.STRIP:
            return STRIP_COLUMNS * self.workgroup
        return EXACT_WORKGROUP if self.precision is Precision.EXACT else WINDOW_WORKGROUP - MARGIN

    @property
    def decimate_columns(self) -> int:
        """Return the output columns that a workgroup of the decimation makes."""
        if self.shape is Shape.STRIP:
            return DECIMATE_COLUMNS * self.workgroup
        return EXACT_OUTPUTS * DECIMATE_WORKGROUP if self.precision is Precision.EXACT else DECIMATE_OUTPUTS


@dataclass(frozen=True)
class PlaneLayout:
    """Planes of one size in one buffer, one after the other: `count` for each frame of a plan.

    `scale` is the factor that converts stored samples to the 0..255 scale; 1 if they need none.
    """

    buffer: str
    width: int
    height: int
    code: SampleCode
    row_bytes: int
    scale: float = 1.0
    count: ClassVar[int] = 1

    @classmethod
    def floats(cls, buffer: str, width: int, height: int) -> Self:
        """Return float planes whose rows begin on 16 bytes, such as those on the 0..255 scale that a kernel makes."""
        return cls(buffer, width, height, SampleCode.FLOAT32, aligned(4 * width))

    @property
    def code_bytes(self) -> int:
        """Return the bytes of a sample."""
        return {SampleCode.FLOAT32: 4, SampleCode.UINT8: 1, SampleCode.UINT16: 2}[self.code]

    @property
    def plane_bytes(self) -> int:
        """Return the bytes of one plane."""
        return self.row_bytes * self.height

    def spec(self, role: Role) -> BufferSpec:
        """Return the buffer that holds the planes."""
        return BufferSpec(self.buffer, role, self.count * self.plane_bytes)


@dataclass(frozen=True)
class PlanePair(PlaneLayout):
    """The reference and the distorted plane of a frame in one buffer."""

    count: ClassVar[int] = 2

    @classmethod
    def raw(cls, frame: FrameFormat) -> PlanePair:
        """Return the planes in the layout in which the host writes them."""
        row_bytes = aligned(frame.row_bytes)
        return cls(SAMPLES, frame.width, frame.height, frame.code, row_bytes, frame.stored_factor)

    @classmethod
    def interleaved(cls, chroma: FrameFormat) -> PlanePair:
        """Return planes with Cb and Cr side by side, as `deinterleave` reads them, from the format of Cb and of Cr.

        Rows are twice as long as those of `raw`, so that samples lie at twice the address that they have there.
        """
        separate = cls.raw(chroma)
        return cls(CHROMA, 2 * chroma.width, chroma.height, chroma.code, 2 * separate.row_bytes, separate.scale)


def dispatch(
    shape: KernelShape,
    stem: str,
    source: PlaneLayout,
    target: PlaneLayout,
    groups: tuple[int, int],
    layers: int = 1,
    *,
    label: str | None = None,
    sources: Sequence[str] = (),
    targets: Sequence[str] = (),
    constants: Mapping[int, int] = MappingProxyType({}),
    **push: float,
) -> Dispatch:
    """Return the dispatch of a kernel that reads planes of one layout and may write float planes of another.

    `stem` is the kernel, and by default the label. `sources` and `targets` name the buffers if they are not those of the
    layouts. `push` has the push constants that do not follow from the layouts.
    """
    interface = INTERFACES[stem]
    unit = shape.shape.row_unit if interface.reads_texels(shape.shape) else 4
    of_layouts = {
        "width": source.width,
        "height": source.height,
        "pitch": source.row_bytes // unit,
        "plane": source.plane_bytes // unit,
        "scale": source.scale,
        "target_pitch": target.row_bytes // 4,
        "target_plane": target.plane_bytes // 4,
    }
    return Dispatch(
        label or stem,
        shape.kernel(stem, {FORMAT_CONSTANT: source.code.value, **constants}),
        tuple(sources) or (source.buffer,),
        tuple(targets) or (target.buffer,),
        interface.pack(**{**{name: value for name, value in of_layouts.items() if name in interface.push}, **push}),
        groups,
        layers,
    )


def ingest(shape: KernelShape, source: PlanePair, target: PlanePair) -> tuple[Dispatch, Dispatch]:
    """Return the dispatches that convert samples to floats on the 0..255 scale: one for each of the two planes."""
    groups = ceil_div(ceil_div(source.width, INGEST_COLUMNS), shape.workgroup), source.height
    first, second = (dispatch(shape, "ingest", source, target, groups, first_plane=plane) for plane in range(2))
    return first, second


def deinterleave(shape: KernelShape, source: PlanePair, cb: str, cr: str) -> Dispatch:
    """Return the dispatch that separates the chroma of both planes into two buffers, which have the layout `PlanePair.raw`."""
    row_words = source.row_bytes // 8
    groups = ceil_div(row_words, shape.workgroup), ceil_div(source.height, POINTWISE_ROWS)
    plane = row_words * source.height
    return dispatch(shape, "deinterleave", source, source, groups, 2, targets=(cb, cr), pitch=row_words, plane=plane)


def largest_sample(shape: KernelShape, source: PlanePair, target: str) -> tuple[Dispatch, BufferSpec]:
    """Return the dispatch that finds the largest samples of both planes, and the buffer for them.

    The buffer is (2, workgroups) uint32: the samples of the reference, then those of the distorted plane.
    """
    groups = ceil_div(ceil_div(source.width, 4 // source.code_bytes), shape.workgroup), ceil_div(source.height, _LARGEST_ROWS)
    spec = partials(target, 2 * groups[0] * groups[1])
    floats = spec.frame_bytes // 4
    made = dispatch(
        shape, "largest_sample", source, source, groups, 2, targets=(target,), strip=_LARGEST_ROWS, frame_partials=floats
    )
    return made, spec


def decimate(shape: KernelShape, label: str, source: PlaneLayout, target: PlaneLayout) -> Dispatch:
    """Return the dispatch that makes the next scale of the pyramid for all planes."""
    groups_x = ceil_div(target.row_bytes // 4, shape.decimate_columns)
    strip = strip_rows(_DECIMATE_ROWS[shape.shape], target.height, target.count * groups_x)
    groups = groups_x, ceil_div(target.height, strip)
    return dispatch(shape, "ms_ssim_decimate", source, target, groups, source.count, label=label, strip=strip)


def downscale(shape: KernelShape, source: PlanePair, target: PlanePair, factor: int) -> Dispatch:
    """Return the dispatch that computes means of boxes of `factor` x `factor` samples for both planes."""
    groups = ceil_div(target.row_bytes // 4, shape.workgroup), target.height
    return dispatch(shape, "ssim_downscale", source, target, groups, 2, factor=factor, weight=1.0 / factor**2)


@dataclass(frozen=True)
class WindowWalk:
    """The workgroups that move a window over planes, in x and y, and the rows that each of them processes.

    The strip shape of vif processes columns in place of rows.
    """

    groups: tuple[int, int]
    strip: int

    @classmethod
    def over(cls, shape: KernelShape, planes: PlanePair) -> WindowWalk:
        """Return the workgroups of the 11x11 window."""
        return cls.in_strips(shape, ceil_div(planes.width - MARGIN, shape.window_columns), planes.height - MARGIN)

    @classmethod
    def uniform(cls, shape: KernelShape, planes: PlanePair) -> WindowWalk:
        """Return the workgroups of the 8x8 window."""
        columns = WINDOW_WORKGROUP - UNIFORM + 1 if shape.shape is Shape.STAGED else STRIP_COLUMNS * shape.workgroup
        return cls.in_strips(shape, ceil_div(planes.width - UNIFORM + 1, columns), planes.height - UNIFORM + 1)

    @classmethod
    def estimate(cls, shape: KernelShape, planes: PlanePair) -> WindowWalk:
        """Return the workgroups of the estimate, the 8x8 window in fragments."""
        columns = planes.width - UNIFORM + 1
        if shape.shape is Shape.STAGED:
            groups_x = ceil_div(columns, WINDOW_WORKGROUP)
        else:
            fragments, rest = divmod(columns, FRAGMENT)
            threads = ceil_div(fragments * FRAGMENT_WINDOWS + min(rest, FRAGMENT_WINDOWS), STRIP_COLUMNS)
            groups_x = ceil_div(threads, shape.workgroup)
        return cls.in_strips(shape, groups_x, planes.height - UNIFORM + 1)

    @classmethod
    def samples(cls, shape: KernelShape, planes: PlanePair) -> WindowWalk:
        """Return the workgroups of a kernel without a window; each thread has one column of units."""
        threads = WINDOW_WORKGROUP if shape.shape is Shape.STAGED else shape.workgroup
        columns = shape.shape.row_unit // planes.code_bytes * threads
        return cls.in_strips(shape, ceil_div(planes.width, columns), planes.height)

    @classmethod
    def in_strips(
        cls, shape: KernelShape, groups_x: int, rows: int, longest: Mapping[Shape, int] = MappingProxyType(_WINDOW_ROWS)
    ) -> WindowWalk:
        """Return `groups_x` workgroups side by side, in strips that have `longest` rows at most."""
        strip = strip_rows(longest[shape.shape], rows, groups_x)
        return cls((groups_x, ceil_div(rows, strip)), strip)

    @property
    def count(self) -> int:
        """Return the number of workgroups of a frame. Each writes one set of sums."""
        return self.groups[0] * self.groups[1]


def window(
    shape: KernelShape,
    stem: str,
    planes: PlanePair,
    walk: WindowWalk,
    target: BufferSpec,
    first_partial: int = 0,
    first_window: int | None = None,
) -> Dispatch:
    """Return the dispatch that sums a function of every window, for each workgroup.

    `stem` is the kernel of the function. With `first_window`, the kernel also writes the map, which begins there within a
    frame's sums.
    """
    return dispatch(
        shape,
        stem,
        planes,
        planes,
        walk.groups,
        targets=(target.name,),
        constants={MAP_CONSTANT: int(first_window is not None)},
        strip=walk.strip,
        first_partial=first_partial,
        frame_partials=target.frame_bytes // 4,
        first_window=first_window or 0,
    )


def partials(name: str, count: int, role: Role = Role.OUTPUT) -> BufferSpec:
    """Return the buffer for `count` partial sums of a frame, float32."""
    return BufferSpec(name, role, aligned(4 * count))
