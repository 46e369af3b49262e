"""speed_chroma: how much information the distorted chroma adds or lacks, like libvmaf's extractor of this name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt

from ..errors import FrameError
from ..host.plan import BufferSpec, Dispatch, Role
from ..shaders.constants import SPEED_SAMPLES_AT_ONCE, SPEED_WORKGROUP
from ..shaders.interface import SCALED_CONSTANT, Shape
from ..types import DoublePlane, Doubles, FrameFormat, Samples
from ..utils.values import Value, values_of
from .base import FeaturePlan, FrameScorer, IntegerScorer, Metric
from .dispatches import KernelShape, PlanePair, ceil_div, dispatch, partials
from .options import OptionValue
from .speed import (
    BLOCK,
    PLACES,
    WEIGHT_MODES,
    Blocks,
    Entries,
    SpeedOptions,
    check_size,
    combined,
    mean_entries,
    mean_taps,
    small_plane_entries,
    small_size,
    speed,
    speed_of_blocks,
    wide_taps,
)
from .vmaf_model import output_name

_DEFAULTS = SpeedOptions()

_TURNS = 65_000
"""Turns of all loops of a thread of `speed_blocks.comp` at most. lavapipe ends them after 65,535."""


class SpeedChromaOptions(TypedDict, total=False):
    """The options of speed_chroma."""

    speed_kernelscale: Annotated[
        float, Value(default=_DEFAULTS.kernelscale, help="multiply the widths of the filters", bounds=(0.1, 4.0))
    ]
    speed_prescale: Annotated[float, Value(default=_DEFAULTS.prescale, help="scale the chroma first", bounds=(0.1, 4.0))]
    speed_prescale_method: Annotated[
        str, Value(default=_DEFAULTS.prescale_method, help="how it is scaled", choices=["nearest", "bilinear"])
    ]
    speed_sigma_nn: Annotated[
        float, Value(default=_DEFAULTS.sigma_nn, help="the standard deviation of neural noise", bounds=(0.1, 2.0))
    ]
    speed_nn_floor: Annotated[
        float, Value(default=_DEFAULTS.nn_floor, help="the share of this noise above which blocks count", bounds=(0.0, 1.0))
    ]
    speed_weight_var_mode: Annotated[
        int,
        Value(
            default=_DEFAULTS.weight_var_mode, help="whose variances weight the entropies, as in libvmaf", choices=WEIGHT_MODES
        ),
    ]
    speed_max_val: Annotated[float, Value(default=1000.0, help="the largest score", bounds=(0.0, 1000.0))]


def _names_of_plane(options: Mapping[str, OptionValue]) -> tuple[str, ...]:
    """Return the names of the scores of a plane of chroma."""
    return tuple(output_name(name, options) for name in ("speed", "speed_singular"))


def _table(name: str, entries: Entries) -> BufferSpec:
    return BufferSpec(f"speed.{name}", Role.TABLE, entries.nbytes, entries.tobytes())


def _turns(columns: int, rows: int) -> int:
    """Return how many turns the loops of a thread have in strips, for small planes of this size."""
    sums = 3 * rows * (ceil_div(columns, SPEED_SAMPLES_AT_ONCE) + 1)  # the means, and two parts of the covariance
    variances = 400 * ceil_div((columns // BLOCK) * (rows // BLOCK), SPEED_WORKGROUP)
    return sums + variances + 15_000  # most for 500 rotations of 24 places


class SpeedPlaneScorer(IntegerScorer):
    """The score of a plane of chroma, and whether its covariance is singular.

    The device makes the statistics of blocks, and the host their entropies, which need logarithms in double precision. If the
    luma has an odd side, libvmaf leaves the last sample of chroma out.
    """

    name = "speed_chroma"
    options = values_of(SpeedChromaOptions)

    def __init__(self, chroma: FrameFormat, options: Mapping[str, OptionValue], luma: FrameFormat) -> None:
        super().__init__(chroma, options)
        self._settings = SpeedOptions(**{field.name: self._options[f"speed_{field.name}"] for field in fields(SpeedOptions)})
        sides = ((chroma.height, luma.height), (chroma.width, luma.width))
        self._height, self._width = (side if side == of_luma else min(side, of_luma // 2) for side, of_luma in sides)
        check_size(self._width, self._height, self._settings.prescale)
        self.names = _names_of_plane(self._options)

    def plan(self, shape: KernelShape, planes: PlanePair) -> FeaturePlan:
        """Return the steps: the small planes, their contrasts, the statistics of blocks, which are its partial sums.

        Raises FrameError on CPUs if the small planes have more samples than lavapipe adds.
        """
        columns, rows = small_size(self._width, self._height, self._settings)
        if shape.shape is Shape.STRIP and _turns(columns, rows) > _TURNS:
            raise FrameError(
                f"speed_chroma: chroma of {self._width}x{self._height}, scaled by {self._settings.prescale:g}, is larger than"
                " the 4096x4096 that lavapipe computes; use a GPU, `backend=cpu`, or a smaller speed_prescale"
            )
        small, contrasts = (PlanePair.floats(f"speed.{name}", columns, rows) for name in ("small", "contrasts"))
        tables = (
            _table("filter", small_plane_entries(self._width, self._height, self._settings)),
            _table("neighbours", mean_entries(columns, rows, self._settings)),
        )
        target = partials("speed.partials", 2 * self._statistics)

        def blur(
            source: PlanePair, made: PlanePair, table: BufferSpec, taps: int, *, middle: float, scaled: bool = False
        ) -> Dispatch:
            return dispatch(
                shape,
                "speed",
                source,
                made,
                (ceil_div(columns, shape.workgroup), rows),
                made.count,
                sources=(source.buffer, table.name),
                label=table.name,
                constants={SCALED_CONSTANT: int(scaled)},
                columns=columns,
                taps=taps,
                middle=middle,
                difference=int(made is contrasts),
            )

        count = dispatch(
            shape,
            "speed_blocks",
            contrasts,
            contrasts,
            (1, 1),
            contrasts.count,
            targets=(target.name,),
            frame_partials=target.frame_bytes // 4,
        )
        wide, narrow = len(wide_taps(self._settings)), len(mean_taps(self._settings))
        steps = (
            (blur(planes, small, tables[0], wide, middle=128.0, scaled=self._settings.prescale != 1),),
            (blur(small, contrasts, tables[1], narrow, middle=0.0),),
            (count,),
        )
        buffers = *(plane.spec(Role.WORK) for plane in (small, contrasts)), *tables, target
        return FeaturePlan(buffers, steps, target, (2 * self._statistics,))

    @property
    def _statistics(self) -> int:
        """The numbers of a plane: the eigenvalues, whether the covariance is singular, and the variances."""
        columns, rows = small_size(self._width, self._height, self._settings)
        return PLACES + 1 + (columns // BLOCK) * (rows // BLOCK)

    def means(self, partial_sums: npt.NDArray[np.float32], plan: FeaturePlan) -> Doubles:
        """Return (frames, 2) scores and singularities from statistics of blocks."""
        found = partial_sums[:, : plan.groups[0]].reshape(-1, 2, self._statistics)
        pairs = Blocks(found[..., :PLACES], found[..., PLACES + 1 :], found[..., PLACES] != 0)
        return speed_of_blocks(pairs, self._settings)

    def reference_means(self, reference: Samples, distorted: Samples, before: object = None) -> DoublePlane:
        """Return the (2,) score of a plane, and 1 if its covariance is singular."""
        first, second = (plane[: self._height, : self._width] for plane in (reference, distorted))
        return np.array(speed(first, second, self._bits, self._settings), np.float64)

    def scores(self, means: Doubles) -> Doubles:
        """Return the means."""
        return means


class SpeedChromaMetric(Metric):
    """speed_chroma for frames of one format, as in libvmaf's speed.c: the scores of Cb and Cr, and of both together.

    A larger score is a worse frame. Raises FrameError for samples that are no integers of 8 to 16 bits, and for chroma below
    80x80.
    """

    name = "speed_chroma"
    options = values_of(SpeedChromaOptions)
    has_chroma = False
    reads_integers = True

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        super().__init__(frame, options)
        self._frame = frame
        self.names = tuple(output_name(f"speed_chroma_{plane}", self._options) for plane in ("uv", "u", "v"))

    @classmethod
    def reads_chroma(cls, options: Mapping[str, OptionValue]) -> bool:
        """Return True."""
        return True

    @property
    def scorers(self) -> tuple[FrameScorer, ...]:
        """Return no metric: nothing is computed from the luma."""
        return ()

    def chroma_scorers(self, chroma: FrameFormat) -> tuple[FrameScorer, ...]:
        """Return the metric of a plane of chroma."""
        return (SpeedPlaneScorer(chroma, self._options, self._frame),)

    def combine(self, scores: Mapping[str, Doubles]) -> Mapping[str, Doubles]:
        """Return the scores of both planes together, of Cb and of Cr."""
        names = _names_of_plane(self._options)
        cb, cr = (np.stack([scores[f"{name}_{plane}"] for name in names], axis=1) for plane in ("cb", "cr"))
        columns = combined(cb, cr), cb[:, 0], cr[:, 0]
        largest = self._options["speed_max_val"]
        return {name: np.minimum(column, largest) for name, column in zip(self.names, columns, strict=True)}
