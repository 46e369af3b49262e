"""The plan of a loss: its kernels and buffers for planes of one size, as plain data. A frame of the plan is one plane."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from ..host.plan import BufferSpec, Dispatch, Plan, Role
from ..metrics.dispatches import KernelShape, PlaneLayout, WindowWalk, ceil_div, decimate, dispatch, partials
from ..shaders.constants import LOSS_WORKGROUP, POINTWISE_ROWS, STRIP_COLUMNS
from ..shaders.interface import INTERFACES, PYRAMID_CONSTANT, TERM_CONSTANT, Precision, Shape
from .spec import RADIUS, Loss, Negative, Pyramid

DISTORTED, REFERENCE, GRADIENT, MEANS = "distorted", "reference", "gradient", "means"
"""The buffers that the caller fills and reads. MEANS has four floats for each scale: deficit, power, slope, mean."""

_STRIP_ROWS = {Shape.STRIP: 72, Shape.STAGED: 180}


def loss_plan(loss: Loss, shape: KernelShape, *, gradient: bool, weight: float = 1.0, packed: bool = False) -> Plan:
    """Return the plan of a loss, with or without the gradient with respect to the distorted planes.

    The plan reads DISTORTED and REFERENCE. It writes MEANS and, if `gradient` is set, GRADIENT: `weight` times the derivative
    of the mean, if there is one scale, or of the plane's whole value, if there are several. `packed` rows follow each other
    without a gap; otherwise rows begin on 16 bytes, as the strip shape requires.

        distorted, reference ──► pyramid ──► … ──► the last scale
                 │                  │                   │
                 ▼                  ▼                   ▼
              windows            windows             windows     a gradient for each scale, if requested
                 └──────────► partials ──► means ◄──────┘
                 ┌───────────── collect ◄── … ◄── collect        from the last scale to the first
                 ▼
              gradient
    """
    return _Builder(loss, shape, gradient, weight, packed).build()


class _Builder:
    def __init__(self, loss: Loss, shape: KernelShape, gradient: bool, weight: float, packed: bool) -> None:
        self._loss, self._gradient, self._weight = loss, gradient, weight
        self._shape = replace(shape, precision=Precision.FAST)  # gradients are those of the separable low-pass
        self._images = [
            [PlaneLayout.floats(f"{image}.{scale}" if scale else image, *size[::-1]) for scale, size in enumerate(loss.sizes)]
            for image in (DISTORTED, REFERENCE)
        ]
        if packed:
            for image in self._images:
                image[0] = replace(image[0], row_bytes=4 * loss.width)
        self._gradients = [replace(planes, buffer=_gradient_buffer(scale)) for scale, planes in enumerate(self._images[0])]
        self._walks = [self._walk(planes) for planes in self._images[0]]
        *self._first_partials, count = accumulate((walk.count for walk in self._walks), initial=0)
        self._partials = partials("partials", count, Role.WORK)
        self._buffers: list[BufferSpec] = []

    def build(self) -> Plan:
        gradient, scales = self._gradient, len(self._loss.weights)
        means = BufferSpec(MEANS, Role.OUTPUT, 16 * scales)
        self._buffers = [self._images[0][0].spec(Role.INPUT), self._images[1][0].spec(Role.INPUT), self._partials, means]
        for image in self._images:
            self._buffers += [planes.spec(Role.WORK) for planes in image[1:]]
        steps = [tuple(self._shrink(image[scale], image[scale + 1]) for image in self._images) for scale in range(scales - 1)]
        # Large scales come first, because the gradients of small scales overwrite their images. Each step occupies the device.
        windows = [self._windows(scale) for scale in range(scales)]
        steps += [tuple(step) for step in (windows[:2], windows[2:]) if step]
        if gradient and self._shape.shape is Shape.STRIP:
            gathers = [self._gather(scale) for scale in range(scales)]
            steps += [tuple(step) for step in (gathers[:2], gathers[2:]) if step]
        steps.append(tuple(self._means(scale) for scale in range(scales)))
        if gradient:
            added = {spec.name for spec in self._buffers}
            self._buffers += [planes.spec(Role.WORK) for planes in self._gradients[1:] if planes.buffer not in added]
            self._buffers.append(self._gradients[0].spec(Role.LARGE_OUTPUT))
            steps += [(self._collect(scale),) for scale in reversed(range(scales - 1))]
        return Plan(tuple(self._buffers), tuple(steps))

    def _walk(self, planes: PlaneLayout) -> WindowWalk:
        staged = self._shape.shape is Shape.STAGED
        halo = 4 * RADIUS if self._gradient else 2 * RADIUS
        columns = LOSS_WORKGROUP - halo if staged else STRIP_COLUMNS * self._shape.workgroup
        return WindowWalk.in_strips(self._shape, ceil_div(planes.width, columns), planes.height, _STRIP_ROWS)

    def _windows(self, scale: int) -> Dispatch:
        loss, planes, walk = self._loss, self._images[0][scale], self._walks[scale]
        targets = [self._partials.name]
        if self._gradient:
            stored = self._shape.shape is Shape.STRIP
            targets.insert(0, self._maps(scale) if stored else self._gradients[scale].buffer)
        return dispatch(
            self._shape,
            "loss_gradient" if self._gradient else "loss_value",
            planes,
            planes,
            walk.groups,
            label=f"windows, scale {scale}",
            sources=self._pair(scale),
            targets=targets,
            constants={TERM_CONSTANT: int(scale == len(loss.weights) - 1)},
            strip=walk.strip,
            margin=loss.padding.margin,
            first_partial=self._first_partials[scale],
            plane_partials=self._partials.frame_bytes // 4,
            c1=loss.c1,
            c2=loss.c2,
            weight=self._weight / loss.windows[scale],
            data_range=loss.data_range,
        )

    def _pair(self, scale: int) -> list[str]:
        return [image[scale].buffer for image in self._images]

    def _maps(self, scale: int) -> str:
        """Return the name of the buffer for the three maps of a plane that the strip shape stores for the gradient."""
        spec = BufferSpec(f"maps.{scale}", Role.WORK, 3 * self._images[0][scale].plane_bytes)
        self._buffers.append(spec)
        return spec.name

    def _gather(self, scale: int) -> Dispatch:
        return dispatch(
            self._shape,
            "loss_gather",
            self._images[0][scale],
            self._gradients[scale],
            self._walks[scale].groups,
            label=f"gather, scale {scale}",
            sources=(f"maps.{scale}", *self._pair(scale)),
            strip=self._walks[scale].strip,
            weight=self._weight / self._loss.windows[scale],
            data_range=self._loss.data_range,
        )

    def _shrink(self, fine: PlaneLayout, coarse: PlaneLayout) -> Dispatch:
        if self._loss.pyramid is Pyramid.LIBVMAF:
            return decimate(self._shape, coarse.buffer, fine, coarse)
        groups = self._pointwise(coarse.row_bytes // 4, coarse.height)
        return dispatch(self._shape, "loss_average", fine, coarse, groups, label=coarse.buffer)

    def _means(self, scale: int) -> Dispatch:
        loss = self._loss
        push = INTERFACES["loss_means"].pack(
            first_partial=self._first_partials[scale],
            plane_partials=self._partials.frame_bytes // 4,
            groups=self._walks[scale].count,
            scale_index=scale,
            scales=len(loss.weights),
            null_negative=int(loss.negative is Negative.NULL),
            weight=loss.weights[scale],
            windows=loss.windows[scale],
        )
        kernel = self._shape.kernel("loss_means", {})
        return Dispatch(f"means, scale {scale}", kernel, (self._partials.name,), (MEANS,), push, (1, 1))

    def _collect(self, scale: int) -> Dispatch:
        fine, coarse = self._gradients[scale], self._gradients[scale + 1]
        return dispatch(
            self._shape,
            "loss_collect",
            coarse,
            fine,
            self._pointwise(fine.width, fine.height),
            label=f"collect, scale {scale}",
            sources=(coarse.buffer, MEANS),
            constants={PYRAMID_CONSTANT: int(self._loss.pyramid is Pyramid.AVERAGE)},
            width=fine.width,
            height=fine.height,
            scale_index=scale,
            scales=len(self._loss.weights),
        )

    def _pointwise(self, width: int, height: int) -> tuple[int, int]:
        return ceil_div(width, self._shape.workgroup), ceil_div(height, POINTWISE_ROWS)


def _gradient_buffer(scale: int) -> str:
    """Return the buffer of a scale's gradient. Scales 2 and 3 reuse memory that their own windows do not need afterwards."""
    return {0: GRADIENT, 2: f"{DISTORTED}.1", 3: f"{REFERENCE}.1"}.get(scale, f"{GRADIENT}.{scale}")
