"""Whether a driver computes right: pictures whose scores are known, before anything else that it says is believed.

A kernel is tried once for a device, a version of its driver and a build of the kernel; that it was found right is remembered in
the cache folder.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import platformdirs

from . import __version__
from .backends.vulkan import VulkanBackend, frame_plan
from .errors import WrongNumbersError
from .features import make_scorer
from .features.base import FrameScorer
from .features.planes import KernelShape
from .features.ssim_map import SsimMap
from .formats import FrameFormat
from .host.devices import DeviceInfo
from .host.files import read_private, replace_private
from .host.plan import Plan
from .loss.engine import LossEngine
from .loss.plan import loss_plan
from .loss.spec import MS_SSIM_WEIGHTS, Loss, Negative, Padding, Pyramid, constants
from .loss.wang import product
from .planes import PlaneMetrics
from .shaders import load_module

Numbers = npt.NDArray[np.float64]
Where = str | int | None

SIDE = 176
TOLERANCE = 0.5e-4
"""The four places that every score is promised to."""

_LARGEST_FILE = 1 << 16
_passed: set[str] = set()  # in this process, by digest


@dataclass(frozen=True)
class Case:
    """Numbers that are known of the pictures: `numbers` has a device compute them, `twin` NumPy, from which `right` is."""

    name: str
    plan: Callable[[KernelShape], Plan]
    numbers: Callable[[Where], Numbers]
    twin: Callable[[], Numbers]
    right: tuple[float, ...]


def check(device: DeviceInfo, plan: Plan, selector: Where) -> None:
    """Try those kernels of a plan that were not tried yet on that device, which is the one that `selector` means.

    Raises WrongNumbersError where it computes something else than is known.
    """
    kernels = {_digest(device, dispatch.kernel.module) for dispatch in plan.dispatches}
    if kernels <= _passed:
        return
    file = _file(device)
    _passed.update(_remembered(file))
    shape = KernelShape.for_device(device)
    tried: set[str] = set()
    for case in CASES:
        covered = {_digest(device, dispatch.kernel.module) for dispatch in case.plan(shape).dispatches}
        if covered & kernels - _passed - tried:
            _try(case, device, selector)
            tried |= covered
    if tried:
        replace_private(file, "\n".join(sorted(tried | _remembered(file))).encode())  # where it cannot be, it is tried again
    _passed.update(tried | kernels)


def _try(case: Case, device: DeviceInfo, selector: Where) -> None:
    got = case.numbers(selector)
    if not np.allclose(got, case.right, rtol=0, atol=TOLERANCE):  # NaN is never close
        raise WrongNumbersError(
            f"{device.description} computes wrong numbers: {case.name} of two known pictures is"
            f" {', '.join(f'{value:.6f}' for value in case.right)}, it gives {', '.join(f'{value:.6f}' for value in got)}."
            " Update its driver, choose another device, or --backend cpu"
        )


@functools.cache
def _digest(device: DeviceInfo, module: str) -> str:
    """What a kernel on a device is known by."""
    words = [__version__, device.uuid.hex, str(device.driver_version), device.driver, str(device.api_version), module]
    return hashlib.sha256("\0".join(words).encode() + load_module(module)).hexdigest()


def _file(device: DeviceInfo) -> Path:
    return platformdirs.user_cache_path("vkssim") / f"{device.uuid.hex}-{device.driver_version:08x}.tried"


def _remembered(file: Path) -> set[str]:
    """The digests in a file; whatever else is in there means nothing, for nothing has it as its digest."""
    return set((read_private(file, _LARGEST_FILE) or b"").decode(errors="replace").split())


# -- what is known -------------------------------------------------------------------------------------------------------


def pictures() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """The reference and the distorted picture, (SIDE, SIDE) uint8: waves of several lengths, and a darker copy with a grain."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    waves = np.abs((3 * rows + columns) % 64 - 32) + np.abs((rows - 2 * columns) % 22 - 11) + rows * columns % 257 // 8
    reference = 70 + waves
    distorted = 7 * reference // 8 + (29 * rows + 17 * columns + rows * columns) % 23
    return reference.astype(np.uint8), distorted.astype(np.uint8)


def _score(feature: str, right: float, *, floats: bool = False, with_map: bool = False) -> Case:
    """A metric of the pictures, of floats where a kernel is to convert them first, or from the map of its windows."""

    def planes() -> tuple[PlaneMetrics, FrameScorer]:
        dtype = np.float32 if floats else np.uint8
        frame = FrameFormat.of_array(SIDE, SIDE, dtype, 255.0)
        name, _, options = feature.partition("=")
        scorer: FrameScorer = make_scorer(feature, frame)
        if with_map:
            scorer = SsimMap().for_frames(frame, dict(option.split("=") for option in options.split(":")))
        return PlaneMetrics("y", frame, (scorer,)), scorer

    def finished(means: npt.NDArray[np.float64], scorer: FrameScorer) -> Numbers:
        return scorer.finish(means)[scorer.names[0]]

    def numbers(device: Where) -> Numbers:
        plane, scorer = planes()
        with VulkanBackend([plane], device=device, batch=1, slots=1) as backend:
            batch = backend.batches[0]
            batch.reference[0][0], batch.distorted[0][0] = pictures()
            backend.submit(batch, 1)
            return finished(backend.collect(batch)[0][0], scorer)

    def twin() -> Numbers:
        _, scorer = planes()
        reference, distorted = (picture.astype(np.float32) for picture in pictures())
        return finished(scorer.reference_means(reference, distorted)[None], scorer)

    name = feature + " of floats" * floats + " from its map" * with_map
    return Case(name, lambda shape: frame_plan([planes()[0]], shape)[0], numbers, twin, (right,))


def _loss(name: str, right: tuple[float, ...], loss: Loss) -> Case:
    """A loss of the pictures, and its derivative in two directions: towards the reference, and along a grain."""

    def derivatives(gradient: npt.NDArray[np.float64]) -> list[float]:
        reference, distorted = (picture.astype(np.float64) for picture in pictures())
        rows, columns = np.mgrid[:SIDE, :SIDE]
        return [float((gradient * way).sum()) for way in (reference - distorted, rows * columns % 17 - 8.0)]

    def numbers(device: Where) -> Numbers:
        reference, distorted = (picture[None].astype(np.float32) for picture in pictures())
        gradient = np.empty((1, SIDE, SIDE), np.float32)
        with LossEngine(loss, gradient=True, device=device) as engine:
            values, slopes = product(loss, engine.run(reference, distorted, gradient))
        scale = slopes[0, 0] if len(loss.weights) == 1 else 1.0
        return np.array([values[0], *derivatives(scale * gradient[0].astype(np.float64))])

    def twin() -> Numbers:
        from .reference.loss import value_and_gradient

        reference, distorted = (picture[None].astype(np.float64) for picture in pictures())
        values, gradient = value_and_gradient(loss, reference, distorted)
        return np.array([values[0], *derivatives(gradient[0])])

    return Case(name, lambda shape: loss_plan(loss, shape, gradient=True).plan, numbers, twin, right)


def _ms_ssim(pyramid: Pyramid) -> Loss:
    negative = Negative.CLAMP
    return Loss(SIDE, SIDE, **constants(255.0), weights=MS_SSIM_WEIGHTS, pyramid=pyramid, negative=negative)


CASES = (
    _score("float_ssim=scale=1:exact=false", 0.848619),
    _score("float_ssim=scale=2:exact=false", 0.943472),
    _score("float_ssim=scale=2:exact=true", 0.943472),
    _score("float_ssim=scale=1:exact=false", 0.848619, floats=True),
    _score("float_ssim=scale=1:exact=false", 0.848619, with_map=True),
    _score("float_ssim=scale=1:exact=true", 0.848619, with_map=True),
    _score("float_ssim=scale=1:window=uniform8", 0.863617),
    _score("float_ssim=scale=1:window=uniform8:estimate=true", 0.863455),
    _score("float_ms_ssim=exact=false", 0.968322),
    _score("float_ms_ssim=exact=true", 0.968322),
    _loss(
        "SSIM and its gradient",
        (0.858720, 0.253192, 0.858720, 0.253192, 0.00013100131),
        Loss(SIDE, SIDE, **constants(255.0), padding=Padding.SAME),
    ),
    _loss(
        "MS-SSIM and its gradient",
        (0.969541, 0.969541, 0.060653, -0.00024060653, -0.969541, 0.060653, -0.00024000240),
        _ms_ssim(Pyramid.AVERAGE),
    ),
    _loss(
        "MS-SSIM of libvmaf's pyramid and its gradient",
        (0.968330, 0.968330, 0.062894, -0.00015462894, -0.968330, 0.062894, -0.00015400154),
        _ms_ssim(Pyramid.LIBVMAF),
    ),
)
"""Together they have every kernel there is."""
