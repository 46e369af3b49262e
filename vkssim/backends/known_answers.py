"""Two pictures with known results for the self-test: scores, and losses with their gradients, to six decimals.

The NumPy twins computed the numbers. The scores are equal to libvmaf's, to six decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..host.executor import Executor
from ..host.plan import Plan, Role
from ..loss.plan import loss_plan
from ..loss.reference import value_and_gradient
from ..loss.spec import MS_SSIM_WEIGHTS, Loss, Negative, Padding, Pyramid, constants, product
from ..metrics import make_scorer
from ..metrics.base import FrameScorer
from ..metrics.dispatches import CHROMA, KernelShape, PlanePair, deinterleave
from ..metrics.float_ssim import SsimMapScorer
from ..metrics.plane_metrics import PlaneMetrics
from ..metrics.samples import deinterleave as deinterleaved
from ..shaders.interface import Shape
from ..types import Doubles, FrameFormat, Samples
from .cpu import CpuBackend
from .loss_engine import LossEngine, LossStep
from .sessions import Session, opened_session
from .vulkan import VulkanBackend, frame_plan, with_largest_samples

Selector = str | int | Session | None
"""A device, by its selector or open."""

SIDE = 176
BANDED_SIDE = 240
"""The side of a third picture, which is large enough for cambi."""


@dataclass(frozen=True)
class Case:
    """One known result of the pictures, `right`. `numbers(device)` computes it on a device, and `twin=True` with NumPy."""

    name: str
    plan: Callable[[KernelShape], Plan]
    numbers: Callable[..., Doubles]
    right: tuple[float, ...]


def pictures() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the reference and the distorted picture, (SIDE, SIDE) uint8.

    The reference has waves of several lengths. The distorted picture is a darker copy with grain.
    """
    rows, columns = np.mgrid[:SIDE, :SIDE]
    waves = np.abs((3 * rows + columns) % 64 - 32) + np.abs((rows - 2 * columns) % 22 - 11) + rows * columns % 257 // 8
    reference = 70 + waves
    distorted = 7 * reference // 8 + (29 * rows + 17 * columns + rows * columns) % 23
    return reference.astype(np.uint8), distorted.astype(np.uint8)


def banded_picture() -> npt.NDArray[np.uint8]:
    """Return a picture of slopes with visible steps, (BANDED_SIDE, BANDED_SIDE) uint8."""
    rows, columns = np.mgrid[:BANDED_SIDE, :BANDED_SIDE]
    levels: npt.NDArray[np.uint8] = (60 + (2 * rows + columns) // 24 + np.abs(columns - 120) // 40).astype(np.uint8)
    return levels


def _computed(plane: PlaneMetrics, pair: Sequence[Samples], device: Selector, twin: bool) -> tuple[Doubles, int]:
    """Return the means of a pair of pictures, and a sample that is too large, or 0.

    For a metric that compares frames, the pictures change places in a second frame.
    """
    with CpuBackend([plane]) if twin else VulkanBackend([plane], device=device, batch=1, slots=1) as backend:
        batch = backend.batches[0]
        batch.reference[0][0], batch.distorted[0][0] = pair
        backend.submit(batch, 1)
        means = backend.collect(batch)[0][0]
        if plane.scorers[0].distance:
            batch.reference[0][0], batch.distorted[0][0] = pair[::-1]
            backend.submit(batch, 1, after=batch)
            means = np.concatenate([means, backend.collect(batch)[0][0]])
        return means, 0 if batch.out_of_range is None else batch.out_of_range.value


_FORMATS = {
    "": FrameFormat.of_bits(SIDE, SIDE, 8),
    " of 10 bits": FrameFormat.of_bits(SIDE, SIDE, 10),
    " of floats": FrameFormat.of_array(SIDE, SIDE, np.float32, 255.0),
    " of range 250": FrameFormat.of_array(SIDE, SIDE, np.uint8, 250.0),
    " of range 1000": FrameFormat.of_array(SIDE, SIDE, np.uint16, 1000.0),
}
"""A kernel is compiled for each type of samples that it reads, and samples of an unusual range are converted first."""


def _scores(feature: str, *right: float | tuple[float, ...], with_map: bool = False) -> Iterator[Case]:
    """Yield the cases of a metric, one for each format: the first of its scores are the numbers `right`."""
    for (samples, frame), value in zip(_FORMATS.items(), right, strict=False):
        yield _score(feature, samples, frame, value if isinstance(value, tuple) else (value,), with_map)


def _of_bands(feature: str, *right: float) -> Iterator[Case]:
    """Yield the cases of a metric of the banded picture, of 8 and of 10 bits."""
    for bits, value in zip((8, 10), right, strict=True):
        frame = FrameFormat.of_bits(BANDED_SIDE, BANDED_SIDE, bits)
        yield _score(feature, f" of {bits} bits", frame, (value,), with_map=False)


def _score(feature: str, samples: str, frame: FrameFormat, right: tuple[float, ...], with_map: bool) -> Case:
    """Return the case of a metric; with `with_map` of the kernel that also writes a map."""

    def planes() -> PlaneMetrics:
        _, _, options = feature.partition("=")
        scorer: FrameScorer = make_scorer(feature, frame)
        if with_map:
            scorer = SsimMapScorer(frame, dict(option.split("=") for option in options.split(":")))
        return PlaneMetrics("y", frame, (scorer,))

    def numbers(device: Selector = None, *, twin: bool = False) -> Doubles:
        plane = planes()
        scorer = plane.scorers[0]
        scores = scorer.finish(_computed(plane, _samples(frame), device, twin)[0])
        return np.array([scores[name][-1] for name in scorer.names[: len(right)]])

    name = feature + samples + " from its map" * with_map
    return Case(name, lambda shape: frame_plan([planes()], shape)[0], numbers, right)


def _samples(frame: FrameFormat) -> tuple[Samples, Samples]:
    """Return the pictures in a format. Those of 10 bits have other low bits, so that a kernel that loses them is noticed."""
    if frame.width == BANDED_SIDE:
        banded = banded_picture().astype(frame.dtype) * int(frame.peak // 255)
        return banded, banded
    reference, distorted = (picture.astype(frame.dtype) for picture in pictures())
    if frame.peak == 1023:
        rows, columns = np.mgrid[:SIDE, :SIDE].astype(frame.dtype)
        return 4 * reference + (rows + columns) % 4, 4 * distorted + rows * columns % 4
    return reference, distorted


def _largest_sample(samples: str, right: float) -> Case:
    """Return the case of the largest sample: the pictures in a format, one of them with a sample that is too large."""
    frame = _FORMATS[samples]
    plane = PlaneMetrics("y", frame, (make_scorer("float_ssim=scale=1", frame),))

    def pair() -> tuple[Samples, Samples]:
        reference, distorted = _samples(frame)
        distorted[SIDE - 1, SIDE // 2] = int(right)
        return reference, distorted

    def plan(shape: KernelShape) -> Plan:
        if shape.shape is Shape.STRIP:  # the host finds the largest sample itself
            return Plan((), ())
        whole, dispatches = with_largest_samples(frame_plan([plane], shape)[0], [plane], shape)
        return Plan(whole.buffers, (tuple(filter(None, dispatches)),))  # the other kernels have cases of their own

    def numbers(device: Selector = None, *, twin: bool = False) -> Doubles:
        return np.array([_computed(plane, pair(), device, twin)[1]], np.float64)

    return Case(f"the largest sample{samples}", plan, numbers, (right,))


def _interleaved_chroma(bits: int) -> Case:
    """Return the case of chroma in surfaces: the pictures are Cb and Cr, and the numbers count the samples that differ."""
    frame, cb, cr = FrameFormat.of_bits(SIDE, SIDE, bits), "cb", "cr"

    def plan(shape: KernelShape) -> Plan:
        source = PlanePair.interleaved(frame)
        targets = [replace(PlanePair.raw(frame), buffer=name).spec(Role.OUTPUT) for name in (cb, cr)]
        return Plan((source.spec(Role.INPUT), *targets), ((deinterleave(shape, source, cb, cr),),))

    def chroma() -> Samples:
        """Return a frame whose reference has the pictures as Cb and Cr, and whose distorted clip has them the other way."""
        first, second = _samples(frame)
        return np.stack([np.stack([first, second], axis=-1), np.stack([second, first], axis=-1)]).reshape(2, SIDE, 2 * SIDE)

    def differing(*planes: Samples) -> Doubles:
        first, second = _samples(frame)
        expected = np.stack([first, second]), np.stack([second, first])
        return np.array([np.count_nonzero(got != right) for got, right in zip(planes, expected, strict=True)], np.float64)

    def numbers(device: Selector = None, *, twin: bool = False) -> Doubles:
        if twin:
            return differing(*deinterleaved(chroma()))
        with ExitStack() as stack:
            session = opened_session(stack, device)
            made = plan(KernelShape.for_device(session.device.info))
            executor = stack.enter_context(Executor(session.device, made, session.pipelines, slots=1))
            slot = executor.slots[0]
            slot.inputs[CHROMA][0] = chroma().view(np.uint8).ravel()
            executor.submit(slot, 1)
            executor.wait(slot)
            return differing(*(slot.outputs[name][0].view(frame.dtype).reshape(2, SIDE, SIDE) for name in (cb, cr)))

    return Case(f"misplaced samples of Cb and Cr of {bits} bits", plan, numbers, (0.0, 0.0))


def _loss(loss: Loss, right: tuple[float, ...], name: str) -> Case:
    """Return the case of a loss, or with its derivatives in two directions: towards the reference, and along a grain."""
    with_gradient = len(right) > 1

    def derivatives(gradient: npt.NDArray[np.float64]) -> list[float]:
        reference, distorted = (picture.astype(np.float64) for picture in pictures())
        rows, columns = np.mgrid[:SIDE, :SIDE]
        return [float((gradient * way).sum()) for way in (reference - distorted, rows * columns % 17 - 8.0)]

    def numbers(device: Selector = None, *, twin: bool = False) -> Doubles:
        reference, distorted = (picture[None].astype(np.float32) for picture in pictures())
        gradient = np.zeros((1, SIDE, SIDE), np.float32)
        if twin:
            values, slope = value_and_gradient(loss, reference.astype(np.float64), distorted.astype(np.float64))
        else:
            with LossEngine(LossStep(loss, with_gradient), device=device) as engine:
                values, slopes = product(loss, engine.run(reference, distorted, gradient if with_gradient else None))
            slope = gradient.astype(np.float64) * (slopes[0, 0] if len(loss.weights) == 1 else 1.0)
        return np.array([values[0], *derivatives(slope[0])]) if with_gradient else values

    return Case(name, lambda shape: loss_plan(loss, shape, gradient=with_gradient), numbers, right)


_SSIM = Loss(SIDE, SIDE, **constants(255.0), padding=Padding.SAME)


def _ms_ssim(pyramid: Pyramid) -> Loss:
    negative = Negative.CLAMP
    return Loss(SIDE, SIDE, **constants(255.0), weights=MS_SSIM_WEIGHTS, pyramid=pyramid, negative=negative)


CASES = (
    *_scores("float_ssim=scale=1:precision=fast", 0.848619, 0.848016, 0.848619),
    *_scores("float_ssim=scale=1", 0.848619, 0.848016, 0.848619, 0.847376, 0.961554),
    *_scores("float_ssim=scale=2", 0.943472, 0.943196, 0.943472),
    *_scores("float_ssim=scale=1:precision=fast", 0.848619, 0.848016, 0.848619, with_map=True),
    *_scores("float_ssim=scale=1", 0.848619, 0.848016, 0.848619, with_map=True),
    *_scores("float_ssim=scale=1:window=uniform8", 0.863617, 0.863097, 0.863617),
    *_scores("float_ssim=scale=1:window=uniform8", 0.863617, 0.863097, 0.863617, with_map=True),
    *_scores("float_ssim=scale=1:window=uniform8:estimate=true", 0.863455, 0.862932, 0.863455),
    *_scores("float_ms_ssim=precision=fast", 0.968322, 0.968240),
    *_scores("float_ms_ssim", 0.968322, 0.968240),
    *_scores("float_psnr", 30.913967, 30.868376, 30.913967),
    *_scores("vif", (0.295463, 0.854009, 0.890572, 0.893658), (0.294751, 0.854016, 0.890570, 0.893537)),
    *_scores(
        "adm",
        (0.880082, 0.902755, 0.862428, 0.875038, 0.879551),
        (0.880175, 0.903672, 0.861768, 0.875119, 0.879554),
    ),
    *_scores(
        "adm=adm_skip_aim=false",
        (0.880082, 0.049733, 0.915175, 0.902755, 0.862428, 0.875038, 0.879551),
        (0.880175, 0.049748, 0.915214, 0.903672, 0.861768, 0.875119, 0.879554),
    ),
    *_scores("motion", 2.894804, 2.997776),
    *_of_bands("cambi", 19.734012, 20.143009),
    *_of_bands("cambi=max_log_contrast=5", 21.325606, 21.807634),
    *_of_bands("cambi=enc_width=236:enc_height=221", 20.648083, 21.056846),
    *_scores("speed_chroma", 10.530090, 10.528410),
    *_scores("speed_chroma=speed_prescale=1.7:speed_prescale_method=bilinear", 23.136253, 23.309923),
    _largest_sample(" of 10 bits", 1500.0),
    _largest_sample(" of range 250", 252.0),
    _interleaved_chroma(8),
    _interleaved_chroma(10),
    _loss(_SSIM, (0.858720,), "SSIM"),
    _loss(_SSIM, (0.858720, 0.253192, 0.000131), "SSIM and its gradient"),
    _loss(_ms_ssim(Pyramid.AVERAGE), (0.969541,), "MS-SSIM"),
    _loss(_ms_ssim(Pyramid.AVERAGE), (0.969541, 0.060653, -0.000240), "MS-SSIM and its gradient"),
    _loss(_ms_ssim(Pyramid.LIBVMAF), (0.968330, 0.062894, -0.000154), "MS-SSIM of libvmaf's pyramid and its gradient"),
)
"""Together the cases use every kernel with all its constants."""
