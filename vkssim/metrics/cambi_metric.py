"""cambi: how visible the banding of the distorted clip is, in integers like libvmaf's extractor of this name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Self, TypedDict

import numpy as np
import numpy.typing as npt

from ..host.plan import BufferSpec, Dispatch, Role
from ..shaders.constants import (
    CAMBI_CONTRASTS,
    CAMBI_LISTS_CONTRASTS,
    CAMBI_LISTS_LEVELS,
    CAMBI_SCALES,
    CAMBI_WORKGROUP,
)
from ..shaders.interface import REACH_CONSTANT, SCALED_CONSTANT, STRIDE_CONSTANT, SampleCode, Shape
from ..types import DoublePlane, Doubles, FrameFormat, Samples
from ..utils.values import Value, values_of
from .base import FeaturePlan, IntegerScorer
from .cambi import (
    CONTRAST_WEIGHTS,
    EOTFS,
    SPEEDUPS,
    CambiOptions,
    cambi_means,
    cambi_of_means,
    encoded_size,
    is_halved,
    may_have_dither,
    nearest,
    needed_equals,
    reciprocals,
    strongest_count,
    visible_levels,
    window_side,
)
from .dispatches import KernelShape, PlaneLayout, PlanePair, aligned, ceil_div, dispatch, partials, strip_rows
from .options import OptionValue
from .vmaf_model import output_name

_DEFAULTS = CambiOptions()

_ROWS = {Shape.STRIP: 64, Shape.STAGED: 128}
"""Rows of a strip of `cambi.comp` at most. lavapipe ends the loops of a thread after 65,535 turns: with 32 contrasts, 32 bands
of 64 rows and the window's 64 have 5 turns a row, and 64 rows have 33 for each of up to 16 bands of the threads of a vector."""
_POINTWISE_ROWS = 32  # of a strip of the kernels that make planes
_PLACES_ROWS = 64  # of a strip of cambi_places, which first reads the rows of a window
_PARTS = {Shape.STRIP: 1 << 17, Shape.STAGED: 1 << 14}  # contrasts of a workgroup that selects
_BINS = 4096  # of the histograms of a scale
_LISTS_COLUMNS = 128  # of a workgroup of cambi_lists at most, for each thread
_LISTS_ROWS = 96  # of a workgroup of it at most
_LISTS_WORKGROUPS = 16  # of a frame at once, each of which has up to 1.2 MB of histograms
_TURNS = 60_000  # of loops that a thread of it may have; lavapipe ends them after 65,535


LARGEST_ENCODED_SIDE = 7680
_ENCODED_SIDES = range(LARGEST_ENCODED_SIDE + 1)  # 0 for that of the frames
EncodedWidth = Annotated[
    int, Value(default=_DEFAULTS.enc_width, help="the encoding's width, if it was scaled up later", choices=_ENCODED_SIDES)
]
EncodedHeight = Annotated[int, Value(default=_DEFAULTS.enc_height, help="the encoding's height", choices=_ENCODED_SIDES)]
EncodedBits = Annotated[
    int, Value(default=_DEFAULTS.enc_bitdepth, help="the encoding's bit depth; 0 for that of the frames", choices=range(17))
]


class CambiMetricOptions(TypedDict, total=False):
    """The options of cambi."""

    cambi_high_res_speedup: Annotated[
        int,
        Value(
            default=_DEFAULTS.high_res_speedup,
            help="begin with half of the size from this height on, of 16:9; 0 never does",
            choices=list(SPEEDUPS),
        ),
    ]
    cambi_max_val: Annotated[float, Value(default=_DEFAULTS.max_val, help="the largest score", bounds=(0.0, 1000.0))]
    cambi_vis_lum_threshold: Annotated[
        float,
        Value(
            default=_DEFAULTS.vis_lum_threshold,
            help="the luminance in cd/m2 below which no banding is seen",
            bounds=(0.0, 299.0),
        ),
    ]
    cambi_topk: Annotated[
        float,
        Value(default=_DEFAULTS.topk, help="the share of places with the strongest contrasts that count", bounds=(0.0001, 1.0)),
    ]
    cambi_eotf: Annotated[
        str, Value(default=_DEFAULTS.eotf, help="the transfer function that gives luminances", choices=list(EOTFS))
    ]
    tvi_threshold: Annotated[
        float, Value(default=_DEFAULTS.tvi_threshold, help="the relative luminance of a visible step", bounds=(0.0001, 1.0))
    ]
    max_log_contrast: Annotated[
        int,
        Value(default=_DEFAULTS.max_log_contrast, help="count steps of up to 2 to this power, in 10 bits", choices=range(6)),
    ]
    window_size: Annotated[
        int, Value(default=_DEFAULTS.window_size, help="the window's side at 3840x2160", choices=range(15, 128))
    ]
    enc_width: EncodedWidth
    enc_height: EncodedHeight
    enc_bitdepth: EncodedBits


class CambiScorer(IntegerScorer):
    """cambi for frames of one format, as in libvmaf's cambi.c.

    The reference does not matter, and a larger score is a worse frame. Raises FrameError for samples that are no integers of 8
    to 16 bits and if neither side has 216 samples, and OptionError for a window that is too large.
    """

    name = "cambi"
    options = values_of(CambiMetricOptions)

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        super().__init__(frame, options)
        self._settings = CambiOptions(**{name.removeprefix("cambi_"): value for name, value in self._options.items()})
        self._size = encoded_size(frame.width, frame.height, self._settings)
        self._side = window_side(*self._size, self._settings)
        self.names = (output_name(self.name, self._options),)

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return the steps: levels, flat places, the planes of the scales, their contrasts, the strongest ones."""
        scales = self._scales()
        values = BufferSpec("cambi.values", Role.WORK, aligned(4 * (scales[-1].first + scales[-1].places)))
        histograms = BufferSpec("cambi.histograms", Role.WORK, 4 * CAMBI_SCALES * _BINS)
        groups = ceil_div(scales[0].places, _PARTS[shape.shape])
        target = partials("cambi.partials", CAMBI_SCALES * (2 * groups + 1))
        modes = [_level_plane(f"scale{scale.number}", scale.width, scale.height) for scale in scales]
        tables = self._nearest_table(planes), self._contrast_table(), self._scale_table(scales)

        def select(run: int) -> Dispatch:
            return dispatch(
                shape,
                "cambi_select",
                flat,
                flat,
                (groups, CAMBI_SCALES),
                sources=(values.name, tables[2].name),
                targets=(histograms.name, target.name),
                label=f"cambi select {run}",
                run=run,
                part=_PARTS[shape.shape],
                frame_values=values.frame_bytes // 4,
                frame_partials=target.frame_bytes // 4,
            )

        flat_planes, made = self._flat_places(shape, planes, modes[0], tables[0], histograms, values)
        flat = flat_planes[-1]
        made += [_mode(shape, source, plane) for source, plane in pairwise((flat, *modes))]
        columns, contrast_steps = self._contrasts(shape, scales, modes, tables[1], values)
        runs = range(-1 if shape.shape is Shape.STRIP else 0, 4)
        steps = [*((dispatch,) for dispatch in made), *contrast_steps, *((select(run),) for run in runs)]
        planes_of_levels = [plane.spec(Role.WORK) for plane in (*flat_planes, *modes)]
        return FeaturePlan((*planes_of_levels, *columns, values, histograms, *tables, target), tuple(steps), target, (groups,))

    def _scales(self) -> list[_Scale]:
        width, height = self._size
        first, scales = 0, []
        for number in range(CAMBI_SCALES):
            if number > 0 or is_halved(*self._size, self._settings):
                width, height = ceil_div(width, 2), ceil_div(height, 2)
            scales.append(_Scale(number, width, height, first))
            first += ceil_div(scales[-1].places, 4) * 4
        return scales

    def _flat_places(
        self,
        shape: KernelShape,
        planes: PlanePair,
        scale: PlaneLayout,
        nearest_table: BufferSpec,
        histograms: BufferSpec,
        values: BufferSpec,
    ) -> tuple[list[PlaneLayout], list[Dispatch]]:
        """Return the planes that are made before the first scale, of which the last one has the flat places, and the steps."""
        make = partial(
            dispatch,
            shape,
            source=planes,
            sources=(planes.buffer, nearest_table.name),
            columns=self._size[0],
            rows=self._size[1],
            bits=self._bits,
            sample_shift=self._frame.shift,
            dither=int(may_have_dither(self._bits, self._settings)),
            cleared=histograms.frame_bytes // 4,
        )
        constants = {SCALED_CONSTANT: int((planes.width, planes.height) != self._size)}
        needed = needed_equals(*self._size)
        if shape.shape is Shape.STRIP:
            flat = _level_plane("flat", scale.width, scale.height)
            places = make(
                stem="cambi_places",
                target=flat,
                groups=_groups_of_blocks(shape, flat, _PLACES_ROWS),
                targets=(flat.buffer, histograms.name, values.name),
                constants={**constants, STRIDE_CONSTANT: _stride(self._size, flat)},
                strip=_PLACES_ROWS,
                needed=needed,
                frame_values=values.frame_bytes // 4,
            )
            return [flat], [places]
        levels, flat = (_level_plane(name, *self._size) for name in ("levels", "flat"))
        groups, rows = _groups_of_blocks(shape, flat), _POINTWISE_ROWS
        targets = levels.buffer, histograms.name
        made = make(stem="cambi_levels", target=levels, groups=groups, targets=targets, constants=constants, strip=rows)
        return [levels, flat], [made, dispatch(shape, "cambi_flat", levels, flat, groups, strip=rows, needed=needed)]

    def _contrasts(
        self, shape: KernelShape, scales: list[_Scale], planes: list[PlaneLayout], table: BufferSpec, values: BufferSpec
    ) -> tuple[list[BufferSpec], list[tuple[Dispatch, ...]]]:
        """Return the buffers for the contrasts of all scales, and the steps."""
        darkest, limits = visible_levels(self._settings)
        reach = self._side // 2
        compare = partial(dispatch, shape, frame_values=values.frame_bytes // 4, contrasts=len(limits), darkest=darkest)
        if shape.shape is Shape.STAGED or len(limits) > CAMBI_LISTS_CONTRASTS:
            found = []
            for scale, plane in zip(scales, planes, strict=True):
                groups_x = ceil_div(plane.width, CAMBI_WORKGROUP)
                strip = strip_rows(_ROWS[shape.shape], plane.height, groups_x)
                found.append(
                    compare(
                        "cambi",
                        plane,
                        plane,
                        (groups_x, ceil_div(plane.height, strip)),
                        label=f"cambi scale {scale.number}",
                        sources=(plane.buffer, table.name),
                        targets=(values.name,),
                        first_value=scale.first,
                        strip=strip,
                        reach=reach,
                    )
                )
            return [], [tuple(found)]

        # Levels count if they are compared or if others are compared with them.
        lowest, highest = max(darkest - 3 * len(limits) + 1, 0), limits[-1] + len(limits)
        levels = ceil_div(highest - lowest + 1, CAMBI_LISTS_LEVELS) + 1
        tilings = [_Tiling.of(plane, shape.workgroup, reach) for plane in planes]
        histograms = levels * max(tiling.columns_at_once for tiling in tilings)
        lists = max(tiling.list_texels for tiling in tilings)
        columns = BufferSpec("cambi.columns", Role.WORK, 16 * (histograms + lists), begins_with_zeros=True)
        steps = [
            compare(
                "cambi_lists",
                plane,
                plane,
                (tiling.across, min(tiling.at_once, tiling.strips - first_strip)),
                label=f"cambi scale {scale.number}",
                sources=(plane.buffer, table.name, columns.name),
                targets=(values.name, columns.name),
                constants={REACH_CONSTANT: reach},
                first_value=scale.first,
                tile=tiling.columns,
                strip=tiling.rows,
                first_strip=first_strip,
                frame_columns=columns.frame_bytes // 16,
                first_list=histograms,
                lowest=lowest,
                highest=highest,
            )
            for scale, plane, tiling in zip(scales, planes, tilings, strict=True)
            for first_strip in range(0, tiling.strips, tiling.at_once)
        ]
        return [columns], [(step,) for step in steps]  # all use the same histograms

    def _nearest_table(self, planes: PlanePair) -> BufferSpec:
        sides = zip((planes.width, planes.height), self._size, strict=True)
        return _table("nearest", np.concatenate([nearest(length, scaled) for length, scaled in sides]))

    def _contrast_table(self) -> BufferSpec:
        _, limits = visible_levels(self._settings)
        brightest = np.zeros(CAMBI_CONTRASTS, np.int32)
        brightest[: len(limits)] = limits
        return _table("contrasts", np.concatenate([brightest, CONTRAST_WEIGHTS, reciprocals(self._side).view(np.int32)]))

    def _scale_table(self, scales: list[_Scale]) -> BufferSpec:
        rows = [(scale.first, scale.places, strongest_count(scale.places, self._settings.topk), 0) for scale in scales]
        return _table("scales", np.array(rows).ravel())

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return (frames, 5) means of the strongest contrasts of each scale."""
        (groups,) = plan.groups
        numbers = partial_sums[:, : CAMBI_SCALES * (2 * groups + 1)].astype(np.float64)
        sums = numbers[:, :-CAMBI_SCALES].reshape(-1, CAMBI_SCALES, groups, 2).sum(axis=2)
        counts = [strongest_count(scale.places, self._settings.topk) for scale in self._scales()]
        means: Doubles = (sums[..., 0] + (counts - sums[..., 1]) * numbers[:, -CAMBI_SCALES:]) / counts
        return means

    def reference_means(self, reference: Samples, distorted: Samples, before: object = None) -> DoublePlane:
        """Return the (5,) means of a frame, computed by NumPy."""
        return cambi_means(distorted, self._bits, self._settings)

    def scores(self, means: Doubles) -> Doubles:
        """Return the scores."""
        return cambi_of_means(means, self._side, self._settings)[:, None]


# -- dispatches -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scale:
    """A scale, and the place of its contrasts among those of a frame.

    The place is a multiple of 4.
    """

    number: int
    width: int
    height: int
    first: int

    @property
    def places(self) -> int:
        return self.width * self.height


@dataclass(frozen=True)
class _Tiling:
    """The workgroups of `cambi_lists` for a plane: those of a row, strips and those at once, and the columns and rows of each.

    `columns_at_once` are the columns with histograms, and `list_texels` the texels of the lists of flat places.
    """

    across: int
    strips: int
    at_once: int
    columns: int
    rows: int
    columns_at_once: int
    list_texels: int

    @classmethod
    def of(cls, plane: PlaneLayout, threads: int, reach: int) -> Self:
        side = 2 * reach + 1
        across = ceil_div(plane.width, _LISTS_COLUMNS * threads)
        columns = aligned(ceil_div(plane.width, across))
        with_margins = columns + 2 * aligned(reach)
        of_list = ceil_div(with_margins, threads) + 1  # turns, if all places are flat
        of_row = 2 * ceil_div(with_margins, 8 * threads) + 2 + 2 * of_list
        rows = (_TURNS - 2 * side * of_row) // (of_row + of_list)  # more enter before the first one and leave after the last
        strips = ceil_div(plane.height, min(rows, _LISTS_ROWS))
        times = ceil_div(strips * across, _LISTS_WORKGROUPS)
        at_once = ceil_div(strips, times)
        workgroups = across * at_once
        list_texels = workgroups * side * (with_margins // 4 + 1)
        return cls(across, strips, at_once, columns, ceil_div(plane.height, strips), workgroups * with_margins, list_texels)


def _level_plane(name: str, width: int, height: int) -> PlaneLayout:
    return PlaneLayout(f"cambi.{name}", width, height, SampleCode.UINT16, aligned(2 * width))


def _table(name: str, numbers: npt.NDArray[np.integer]) -> BufferSpec:
    content = numbers.astype("<i4").tobytes()
    return BufferSpec(f"cambi.{name}", Role.TABLE, aligned(len(content)), content.ljust(aligned(len(content)), b"\0"))


def _groups_of_blocks(shape: KernelShape, target: PlaneLayout, rows: int = _POINTWISE_ROWS) -> tuple[int, int]:
    """Return the workgroups of a kernel whose threads have a block of 16 bytes in each row of a strip."""
    return ceil_div(target.row_bytes // 16, shape.workgroup), ceil_div(target.height, rows)


def _stride(size: tuple[int, int], target: PlaneLayout) -> int:
    """Return 2 if a plane has every second sample of one of this size, else 1."""
    return 1 if (target.width, target.height) == size else 2


def _mode(shape: KernelShape, source: PlaneLayout, target: PlaneLayout) -> Dispatch:
    return dispatch(
        shape,
        "cambi_mode",
        source,
        target,
        _groups_of_blocks(shape, target),
        strip=_POINTWISE_ROWS,
        columns=target.width,
        rows=target.height,
        stride=_stride((source.width, source.height), target),
    )
