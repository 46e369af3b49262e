"""Building blocks of a frame's plan: pairs of planes on the device and the kernels that make and read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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

DECIMATE_ROWS = {Shape.STRIP: 72, Shape.STAGED: 68}
"""The largest number of rows of a strip of the low-pass, by the shape of the kernels."""

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
    """The shape of the kernels for a device.

    It has the workgroup size for kernels whose size is a constant, and the build to use for kernels that have two.
    """

    shape: Shape
    workgroup: int
    precision: Precision = Precision.EXACT

    @classmethod
    def for_device(cls, info: DeviceInfo) -> KernelShape:
        """Return the shape for a device: strip for lavapipe, staged for all other devices.

        The strip shape is made for lavapipe's compiler. SwiftShader's takes a minute and 6 GB for the window of it.
        """
        return cls.of_shape(Shape.STRIP if info.is_lavapipe else Shape.STAGED, info)

    @classmethod
    def of_shape(cls, shape: Shape, info: DeviceInfo) -> KernelShape:
        """Return the given shape for a device. Each shape computes the same on every device.

        A workgroup of the strip shape is one subgroup of the device.
        """
        return cls(shape, info.subgroup_size if shape is Shape.STRIP else _STAGED_WORKGROUP)

    def kernel(self, stem: str, code: SampleCode) -> Kernel:
        """Return the kernel of a stem for samples of a format."""
        return self.kernel_with(stem, {FORMAT_CONSTANT: code.value})

    def kernel_with(self, stem: str, values: Mapping[int, int]) -> Kernel:
        """Return the kernel of a stem with specialisation constants by number; the workgroup size is added."""
        interface = INTERFACES[stem]
        precision = self.precision if self.precision in interface.precisions else Precision.EXACT
        values = {WORKGROUP_CONSTANT: self.workgroup, MAP_CONSTANT: 0, **values}
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
class PlanePair:
    """The reference and the distorted plane of a frame in one buffer, one after the other.

    `scale` is the factor by which 16-bit samples are multiplied when they are read; 1 if they need none.
    """

    buffer: str
    width: int
    height: int
    code: SampleCode
    row_bytes: int
    scale: float = 1.0

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

    @classmethod
    def floats(cls, buffer: str, width: int, height: int) -> PlanePair:
        """Return float planes on the 0..255 scale, which a kernel makes."""
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
        """Return the buffer that holds both planes."""
        return BufferSpec(self.buffer, role, 2 * self.plane_bytes)

    def source(self, shape: Shape) -> dict[str, float]:
        """Return the push constants that describe the planes to a kernel that reads them."""
        unit = shape.row_unit
        size = {"width": self.width, "height": self.height}
        return {**size, "pitch": self.row_bytes // unit, "plane": self.plane_bytes // unit, "scale": self.scale}

    def target(self) -> dict[str, float]:
        """Return the push constants that describe float planes to a kernel that writes them."""
        return {"target_pitch": self.row_bytes // 4, "target_plane": self.plane_bytes // 4}


def ingest(shape: KernelShape, source: PlanePair, target: PlanePair, factor: float) -> tuple[Dispatch, Dispatch]:
    """Return the dispatches that convert samples to floats on the 0..255 scale: one for each of the two planes."""

    def one(plane: int) -> Dispatch:
        return Dispatch(
            label="ingest",
            kernel=shape.kernel("ingest", source.code),
            sources=(source.buffer,),
            targets=(target.buffer,),
            push=INTERFACES["ingest"].pack(
                **{**source.source(shape.shape), **target.target(), "first_plane": plane, "scale": factor}
            ),
            groups=(ceil_div(ceil_div(source.width, INGEST_COLUMNS), shape.workgroup), source.height),
        )

    return one(0), one(1)


def deinterleave(shape: KernelShape, source: PlanePair, cb: str, cr: str) -> Dispatch:
    """Return the dispatch that separates the chroma of both planes into two buffers, which have the layout `PlanePair.raw`."""
    row_words = source.row_bytes // 8
    return Dispatch(
        label="deinterleave",
        kernel=shape.kernel("deinterleave", source.code),
        sources=(source.buffer,),
        targets=(cb, cr),
        push=INTERFACES["deinterleave"].pack(height=source.height, pitch=row_words, plane=row_words * source.height),
        groups=(ceil_div(row_words, shape.workgroup), ceil_div(source.height, POINTWISE_ROWS)),
        layers=2,
    )


def largest_sample(shape: KernelShape, source: PlanePair, target: str) -> tuple[Dispatch, BufferSpec]:
    """Return the dispatch that finds the largest samples of both planes, and the buffer for them.

    The buffer is (2, workgroups) uint32: the samples of the reference, then those of the distorted plane; see
    `largest_of_groups`.
    """
    interface = INTERFACES["largest_sample"]
    groups = ceil_div(ceil_div(source.width, 4 // source.code_bytes), shape.workgroup), ceil_div(source.height, _LARGEST_ROWS)
    spec = partials(target, 2 * groups[0] * groups[1])
    planes = {name: value for name, value in source.source(shape.shape).items() if name in interface.push}
    dispatch = Dispatch(
        label="largest_sample",
        kernel=shape.kernel("largest_sample", source.code),
        sources=(source.buffer,),
        targets=(target,),
        push=interface.pack(**planes, strip=_LARGEST_ROWS, frame_partials=spec.frame_bytes // 4),
        groups=groups,
        layers=2,
    )
    return dispatch, spec


def decimate(shape: KernelShape, label: str, source: PlanePair, target: PlanePair) -> Dispatch:
    """Return the dispatch that makes the next scale of the pyramid for both planes."""
    groups_x = ceil_div(target.row_bytes // 4, shape.decimate_columns)
    strip = strip_rows(DECIMATE_ROWS[shape.shape], target.height, 2 * groups_x)
    return Dispatch(
        label=label,
        kernel=shape.kernel("ms_ssim_decimate", source.code),
        sources=(source.buffer,),
        targets=(target.buffer,),
        push=INTERFACES["ms_ssim_decimate"].pack(**source.source(shape.shape), **target.target(), strip=strip),
        groups=(groups_x, ceil_div(target.height, strip)),
        layers=2,
    )


def downscale(shape: KernelShape, source: PlanePair, target: PlanePair, factor: int) -> Dispatch:
    """Return the dispatch that computes means of boxes of `factor` x `factor` samples for both planes."""
    return Dispatch(
        label="ssim_downscale",
        kernel=shape.kernel("ssim_downscale", source.code),
        sources=(source.buffer,),
        targets=(target.buffer,),
        push=INTERFACES["ssim_downscale"].pack(
            **source.source(shape.shape), **target.target(), factor=factor, weight=1.0 / factor**2
        ),
        groups=(ceil_div(target.row_bytes // 4, shape.workgroup), target.height),
        layers=2,
    )


@dataclass(frozen=True)
class WindowWalk:
    """The workgroups that move a window over a pair of planes."""

    groups: tuple[int, int]
    strip: int

    @classmethod
    def over(cls, shape: KernelShape, planes: PlanePair) -> WindowWalk:
        """Return the workgroups of the 11x11 window."""
        return cls._of(shape, ceil_div(planes.width - MARGIN, shape.window_columns), planes.height - MARGIN)

    @classmethod
    def uniform(cls, shape: KernelShape, planes: PlanePair) -> WindowWalk:
        """Return the workgroups of the 8x8 window."""
        columns = WINDOW_WORKGROUP - UNIFORM + 1 if shape.shape is Shape.STAGED else STRIP_COLUMNS * shape.workgroup
        return cls._of(shape, ceil_div(planes.width - UNIFORM + 1, columns), planes.height - UNIFORM + 1)

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
        return cls._of(shape, groups_x, planes.height - UNIFORM + 1)

    @classmethod
    def samples(cls, shape: KernelShape, planes: PlanePair) -> WindowWalk:
        """Return the workgroups of a kernel without a window; each thread has one column of units."""
        threads = WINDOW_WORKGROUP if shape.shape is Shape.STAGED else shape.workgroup
        columns = shape.shape.row_unit // planes.code_bytes * threads
        return cls._of(shape, ceil_div(planes.width, columns), planes.height)

    @classmethod
    def _of(cls, shape: KernelShape, groups_x: int, rows: int) -> WindowWalk:
        strip = strip_rows(_WINDOW_ROWS[shape.shape], rows, groups_x)
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

    `stem` is the kernel of the function, and the label of the dispatch. With `first_window`, the kernel also writes the map,
    which begins there within a frame's sums.
    """
    return Dispatch(
        label=stem,
        kernel=shape.kernel_with(stem, {FORMAT_CONSTANT: planes.code.value, MAP_CONSTANT: int(first_window is not None)}),
        sources=(planes.buffer,),
        targets=(target.name,),
        push=INTERFACES[stem].pack(
            **planes.source(shape.shape),
            strip=walk.strip,
            first_partial=first_partial,
            frame_partials=target.frame_bytes // 4,
            first_window=first_window or 0,
        ),
        groups=walk.groups,
    )


def partials(name: str, count: int, role: Role = Role.OUTPUT) -> BufferSpec:
    """Return the buffer for `count` partial sums of a frame, float32."""
    return BufferSpec(name, role, aligned(4 * count))
