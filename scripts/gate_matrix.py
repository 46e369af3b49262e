"""The matrix of the gate: frames of every kind, scored by Vulkan and by the CPU reference, beside libvmaf's own scores.

Each pair of frames is scored by both builds of the kernels, exact and fast, on lavapipe in both shapes. Other
devices run the staged shape alone: the strip shape needs workgroups of one subgroup, which a GPU with several sizes of
subgroups does not promise, and other software drivers take too long to compile it. The frames and libvmaf's scores of them are
files in fixtures/: no constant, formula or line of code of this project made those numbers, so that an error which both
backends share shows as well. The self-test of devices is left out, because the numbers themselves are checked here.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any
from unittest.mock import patch

import av
import numpy as np
import numpy.typing as npt

from vkssim import score_files
from vkssim.backends.base import Backend
from vkssim.backends.cpu import CpuBackend
from vkssim.backends.vulkan import VulkanBackend
from vkssim.errors import WrongNumbersError
from vkssim.frames.options import Selection
from vkssim.host.api import vk
from vkssim.host.devices import choose_device, list_devices
from vkssim.host.instance import shared_instance
from vkssim.metrics import with_options
from vkssim.metrics.plane_metrics import FrameMetrics, FrameSequence
from vkssim.report.results import ScoreReport
from vkssim.shaders.interface import INTERFACES, Precision, Shape
from vkssim.types import BackendInfo, Doubles, FrameFormat
from vkssim.utils.wording import counted

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

STORED_PLACES = 6
"""Decimals of libvmaf's scores in fixtures/: half a unit of the last one is their own rounding."""

EXACT_PLACES = 6
"""Decimals that the kernels are held to unless they are fast, and the CPU reference."""

SUMS_TOLERANCE = 1e-12
"""Between the host's additions in double and the same sums without any rounding. Additions in float32 are off by 1e-8."""

MS_SSIM, SSIM, PSNR = "float_ms_ssim=enable_lcs=true", "float_ssim=enable_lcs=true", "float_psnr"

_WINDOW_SIDE = 11
_LCS = ("l", "c", "s")

Samples = npt.NDArray[Any]

Scores = Mapping[int, Mapping[str, float | None]]
"""The scores of each frame by name, by the number of the frame; None or NaN if a score does not exist."""


# -- the rule of agreement ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoreDifference:
    """One score compared over all frames.

    `greatest` is the greatest difference, `frame` the first frame that has it, and `values` are the two scores of that frame.
    `mismatches` are the frames whose difference is beyond the tolerance.
    """

    name: str
    frames: int
    greatest: float
    frame: int
    values: tuple[float | None, float | None]
    mismatches: tuple[int, ...]


def tolerance_of(places: int) -> float:
    """Return the absolute difference that agreement to `places` decimal places allows: half a unit of the last place."""
    return 0.5 * 10.0**-places


def difference(first: float | None, second: float | None) -> float:
    """Return the absolute difference of two scores: 0 if neither exists, infinite if only one does."""
    missing = [score is None or math.isnan(score) for score in (first, second)]
    if first is None or second is None or any(missing):
        return 0.0 if all(missing) else math.inf
    return 0.0 if first == second else abs(first - second)


def compare(tested: Scores, trusted: Scores, tolerance: float) -> list[ScoreDifference]:
    """Compare every score of every frame that either side has. A score or a frame that one side lacks is a mismatch."""
    numbers = sorted({*tested, *trusted})
    comparisons = []
    for name in dict.fromkeys(name for side in (tested, trusted) for metrics in side.values() for name in metrics):
        gaps = {number: _gap(tested, trusted, number, name) for number in numbers}
        frame = max(gaps, key=lambda number: gaps[number])
        values = tested.get(frame, {}).get(name), trusted.get(frame, {}).get(name)
        mismatches = tuple(number for number, gap in gaps.items() if not gap <= tolerance)
        comparisons.append(ScoreDifference(name, len(numbers), gaps[frame], frame, values, mismatches))
    return comparisons


def _gap(tested: Scores, trusted: Scores, number: int, name: str) -> float:
    sides = [side.get(number, {}) for side in (tested, trusted)]
    if any(name not in metrics for metrics in sides):
        return math.inf
    return difference(*(metrics[name] for metrics in sides))


def worst(comparisons: Sequence[ScoreDifference]) -> ScoreDifference:
    """Return the comparison with the greatest difference."""
    return max(comparisons, key=lambda comparison: comparison.greatest)


# -- the matrix ---------------------------------------------------------------------------------------------------------------


class Form(Enum):
    """The form of the samples of a pair. Similarities stay those of the stored samples, since the range grows with them.

    So does float_psnr, but as 10 bit: the peak of a depth is its largest sample, which grows by a little more.
    """

    STORED = "as stored"
    TEN_BITS = "as 10 bit"
    FLOAT = "as float32 of twice the range"
    THIRDS = "as uint16 of thrice the range"


@dataclass(frozen=True)
class CasePair:
    """A pair of frames of fixtures/cases.npz, its scores, and their tolerance.

    `features` gives each feature with the number of dispatches that a frame takes; the staged shape takes one more if the
    type of the samples can hold samples beyond their depth, to find them. `places` is what the fast kernels
    are held to: the more, the more texture the frames have (docs/adr/0001). `builds` are the builds of the kernels that score
    the pair: shapes and precisions. `with_libvmaf` is False for metrics that libvmaf does not have. With `tiled`, the frames
    are repeated to fill this width and height, for which there are scores of their own.
    """

    case: str
    features: tuple[tuple[str, int], ...]
    places: int
    form: Form = Form.STORED
    title: str = ""
    builds: tuple[tuple[Shape, Precision], ...] = tuple((shape, precision) for shape in Shape for precision in Precision)
    with_libvmaf: bool = True
    tiled: tuple[int, int] | None = None


_INTEGERS = ((MS_SSIM, 9), (SSIM, 1))
_INGESTED = ((MS_SSIM, 11), (SSIM, 3))
_PSNR = ((PSNR, 1),)
_VIF = (("vif", 7),)  # planes of three scales, sums of four
_ADM = (("adm", 8),)  # bands and rows of four scales
_UNIFORM, _ESTIMATE = (f"{SSIM}:window=uniform8", 1), (f"{SSIM}:window=uniform8:estimate=true", 1)

_EXACT = ((Shape.STRIP, Precision.EXACT), (Shape.STAGED, Precision.EXACT))
_EITHER = ((Shape.STRIP, Precision.FAST), (Shape.STAGED, Precision.EXACT))  # for code that both builds share

PAIRS = (
    # Sizes and depths. Odd sizes have a border in the middle of a word and of a thread's columns; the edges of twelve_bit and
    # odd_height make errors at the border of the low-pass larger than half of the fourth place.
    CasePair("min_size", _INTEGERS, 5),
    CasePair("odd", _INTEGERS, 5),
    CasePair("odd_height", _INTEGERS, 4),
    CasePair("ten_bit", _INTEGERS, 5),
    CasePair("twelve_bit", _INTEGERS, 4),
    CasePair("sixteen_bit", _INTEGERS, 4, builds=_EITHER),
    # Wide enough for workgroups of the decimation that touch no border and read four samples at a time, of either depth.
    CasePair("wide", _INTEGERS, 5, builds=_EITHER),
    CasePair("wide", _INTEGERS, 5, Form.TEN_BITS, builds=_EITHER),
    # Samples that are converted first.
    CasePair("odd", _INGESTED, 5, Form.FLOAT),
    CasePair("odd", _INGESTED, 5, Form.THIRDS, builds=_EITHER),
    # Negative structure, whose score does not exist, and variances and covariances that rounding makes negative.
    CasePair("inverted", _INTEGERS, 5, builds=_EITHER),
    CasePair("flat_shift", _INTEGERS, 5, builds=_EITHER),
    # Boxes of an even and of an odd number of samples. The stored score is that of scale=0, which chooses 2 here and 3 there.
    CasePair("autoscale2", ((f"{SSIM}:scale=2", 2),), 5, title="scale=2"),
    CasePair("autoscale3", ((SSIM, 2),), 5, title="scale=0", builds=_EITHER),
    # Squared differences: every depth, a last unit of a row that is not full, and floats, whose digits are split another way.
    CasePair("odd", _PSNR, 6, title="psnr", builds=_EXACT),
    CasePair("ten_bit", _PSNR, 6, title="psnr", builds=_EXACT),
    CasePair("sixteen_bit", _PSNR, 6, title="psnr", builds=_EXACT),
    CasePair("inverted", _PSNR, 6, title="psnr", builds=_EXACT),
    CasePair("odd", ((PSNR, 3),), 6, Form.FLOAT, title="psnr", builds=_EXACT),
    # Information and bands in integers: every depth, odd sizes, and windows that are flat, alike and inverted.
    *(
        CasePair(case, features, 6, title=features[0][0], builds=_EXACT)
        for features in (_VIF, _ADM)
        for case in ("odd", "dark", "inverted", "ten_bit", "sixteen_bit")
    ),
    # The window that libvmaf does not have.
    CasePair("odd_height", (_UNIFORM,), 6, title="uniform8", builds=_EXACT, with_libvmaf=False),
    CasePair("ten_bit", (_ESTIMATE,), 6, title="uniform8 estimate", builds=_EXACT, with_libvmaf=False),
)

LARGE_PAIRS = (
    CasePair("autoscale5", ((MS_SSIM, 9), (SSIM, 2)), 4, tiled=(1920, 1080)),
    CasePair("autoscale5", ((MS_SSIM, 9), (SSIM, 2)), 4, Form.TEN_BITS, tiled=(2305, 1297)),
)
"""Frames of usual sizes of videos, which take the CPU reference too long for each run of the gate."""

CLIPS = ("bbb_576x324", "bbb_576x324_10bit")
"""Clips of fixtures/ by name. They are read from their files, as users' clips are, and scored by the kernels of the shape that
the device is given, several frames in a batch.
"""

VMAF_CLIPS = ("moving_texture", "odd", "sharper", "ten_bit", "sixteen_bit", "one_frame")
"""Clips of fixtures/vmaf_cases.npz, whose frames look at their neighbours."""

VMAF = ("vmaf", "vmaf=model=vmaf_v0.6.1neg:name=vmaf_neg", "motion")

VMAF_V1 = ("vmaf=model=vmaf_v1.0.16_3d0h:name=v1_1080p", "vmaf=model=vmaf_v1.0.16_5d0h:name=v1_phone")
"""Metrics that read chroma."""

CAMBI = ("cambi=max_log_contrast=5",)
"""For CPUs this is a kernel of its own. There are no stored scores of it."""

V1_FRAMES = 4
"""Frames of a clip with chroma. The scores of the last one are those of the end of the clip, and are not compared."""

CLIP_FRAMES = 16
"""Frames of a clip: two batches on a CPU."""


@dataclass(frozen=True)
class GateRow:
    """The result of one pair and one build, or of one clip: the comparisons of each two sides, and other problems."""

    name: str
    places: int
    comparisons: Mapping[tuple[str, str], list[ScoreDifference]]
    problems: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.problems and not any(score.mismatches for found in self.comparisons.values() for score in found)


@dataclass(frozen=True)
class Result:
    """All rows, the backends that computed them, and the version of libvmaf that made the stored scores."""

    rows: tuple[GateRow, ...]
    backends: tuple[BackendInfo, ...]
    stored: str

    @property
    def agrees(self) -> bool:
        """Return whether every row agrees."""
        return all(row.agrees for row in self.rows)


def run(device: str | None, *, large: bool = False) -> Result:
    """Run the whole matrix on a Vulkan device, by index, name or UUID, or large frames alone.

    Raises VkssimError if it cannot run.
    """
    cases = json.loads((FIXTURES / "cases.json").read_text("utf-8"))
    shapes = tuple(Shape) if choose_device(list_devices(shared_instance()), device).is_lavapipe else (Shape.STAGED,)
    seen: dict[str, BackendInfo] = {}
    rows: list[GateRow] = []
    with np.load(FIXTURES / "cases.npz") as archive:
        for pair in LARGE_PAIRS if large else PAIRS:
            builds = tuple(build for build in pair.builds if build[0] in shapes)
            samples = stored_samples(pair, archive)
            rows += _score_pair(replace(pair, builds=builds), cases["cases"][pair.case], samples, device, seen)
    if not large:
        rows += _score_vmaf_clips(device, shapes)
        rows += [_score_clip(name, device) for name in CLIPS]
        rows += _score_clips_with_chroma(device, shapes)
    return Result(tuple(rows), (seen["vulkan"], seen["cpu"]), cases["source"])


# -- pairs of frames ------------------------------------------------------------------------------------------------------


def stored_samples(pair: CasePair, archive: Mapping[str, Samples]) -> tuple[Samples, Samples]:
    """Return the frames of a pair from fixtures/cases.npz, repeated if it is tiled."""
    reference, distorted = (archive[f"{pair.case}_{side}"] for side in ("ref", "dis"))
    if pair.tiled is None:
        return reference, distorted
    width, height = pair.tiled
    rows, columns = -(-height // reference.shape[0]), -(-width // reference.shape[1])
    reference, distorted = (np.tile(frame, (rows, columns))[:height, :width] for frame in (reference, distorted))
    return reference, distorted


def stored_scores(pair: CasePair, case: Mapping[str, Any]) -> Mapping[str, float | None]:
    """Return libvmaf's scores of a pair by name, from its case in fixtures/cases.json."""
    if pair.tiled is not None:
        tiled: Mapping[str, float | None] = case["libvmaf_tiled"]["{}x{}".format(*pair.tiled)]
        return tiled
    return {**case["libvmaf"], **case["libvmaf_psnr"], **case["libvmaf_vif"], **case["libvmaf_adm"]}


def _score_pair(
    pair: CasePair, case: Mapping[str, Any], stored: tuple[Samples, Samples], device: str | None, seen: dict[str, BackendInfo]
) -> Iterator[GateRow]:
    frame, samples = _formed(pair.form, case["bitdepth"], stored)
    title = " ".join(filter(None, (f"{case['bitdepth']} bit", f"{frame.width}x{frame.height}", pair.title)))
    name = f"{pair.case}, {title}" + (f" {pair.form.value}" if pair.form is not Form.STORED else "")
    trusted: dict[str, float | None] = {}
    for feature, _ in pair.features:
        metrics = FrameMetrics(feature, [frame])
        with CpuBackend(metrics.planes, slots=1) as cpu:
            trusted |= _score(cpu, metrics, samples)
            seen["cpu"] = cpu.info
    libvmaf = {name: stored_scores(pair, case)[name] for name in trusted} if pair.with_libvmaf else None
    for shape, precision in pair.builds:
        tested: dict[str, float | None] = {}
        problems: list[str] = []
        for feature, dispatches in pair.features:
            metrics = FrameMetrics(with_options(feature, precision=precision.value), [frame])
            with VulkanBackend(metrics.planes, device=device, batch=1, slots=1, shape=shape) as vulkan:
                with _dispatches() as recorded:  # only once: a device whose speed was measured gets other commands
                    scores = _score(vulkan, metrics, samples)
                seen["vulkan"] = vulkan.info
                problems += _wrong_sums(vulkan, scores)
                problems += _unseen_excess(vulkan, metrics, samples)
            looks = int(shape is Shape.STAGED and frame.may_be_exceeded)
            if len(recorded) != dispatches + looks:
                problems.append(f"{feature} takes {len(recorded)} dispatches a frame, not {dispatches + looks}")
            tested |= scores
        places = EXACT_PLACES if precision is Precision.EXACT else pair.places
        sides = _compare_sides({0: tested}, {0: trusted}, {0: libvmaf} if libvmaf else None, places)
        yield GateRow(f"{name}, {shape.value} {precision.value}", places, sides, tuple(problems))


def _formed(form: Form, bits: int, samples: tuple[Samples, Samples]) -> tuple[FrameFormat, tuple[Samples, Samples]]:
    """Return the format and the samples of a pair in that form. Its factor of 1/2, 1/3 or 1/4 gives the stored samples back."""
    height, width = samples[0].shape
    peak = 2.0**bits - 1
    reference, distorted = samples
    if form is Form.TEN_BITS:
        return FrameFormat.of_bits(width, height, bits + 2), (4 * reference.astype(np.uint16), 4 * distorted.astype(np.uint16))
    if form is Form.FLOAT:
        frame = FrameFormat.of_array(width, height, np.float32, 2 * peak)
        return frame, (2 * reference.astype(np.float32), 2 * distorted.astype(np.float32))
    if form is Form.THIRDS:
        frame = FrameFormat.of_array(width, height, np.uint16, 3 * peak)
        return frame, (3 * reference.astype(np.uint16), 3 * distorted.astype(np.uint16))
    return FrameFormat.of_bits(width, height, bits), samples


def _score(backend: Backend, metrics: FrameMetrics, samples: tuple[Samples, Samples]) -> dict[str, float | None]:
    """Return the scores of one pair of frames by name."""
    batch = backend.batches[0]
    batch.reference[0][0], batch.distorted[0][0] = samples
    backend.submit(batch, 1)
    return {name: float(column[0]) for name, column in metrics.finish(backend.collect(batch)).items()}


def _unseen_excess(backend: VulkanBackend, metrics: FrameMetrics, samples: tuple[Samples, Samples]) -> Iterator[str]:
    """Yield a problem for each plane in whose last corner a sample beyond its depth is not found."""
    plane = metrics.planes[0].format
    if not plane.may_be_exceeded:
        return
    for clip in range(2):
        pair = [side.copy() for side in samples]
        pair[clip][-1, -1] = excess = int(plane.peak) + 1
        _score(backend, metrics, (pair[0], pair[1]))
        out_of_range = backend.batches[0].out_of_range
        if out_of_range is None or (out_of_range.clip, out_of_range.value) != (clip, excess):
            yield f"a sample of {excess}, where {plane.peak:g} is the largest there can be, is found as {out_of_range}"


@contextmanager
def _dispatches() -> Iterator[list[tuple[int, ...]]]:
    """Collect the workgroups of every dispatch that is recorded for the device within the context."""
    record: Any = vk.vkCmdDispatch
    recorded: list[tuple[int, ...]] = []

    def note(commands: Any, *groups: int) -> None:
        recorded.append(groups)
        record(commands, *groups)

    with patch.object(vk, "vkCmdDispatch", note):
        yield recorded


def _wrong_sums(backend: VulkanBackend, scores: Mapping[str, float | None]) -> Iterator[str]:
    """Yield a problem for each mean that is not the exact sum of the partial sums that the Gaussian window's kernels wrote."""
    scale = 0
    for dispatch in backend.plan.dispatches:
        stem = dispatch.kernel.module.partition(".")[0]
        if stem == "ms_ssim":
            names = [f"float_ms_ssim_{term}_scale{scale}" for term in _LCS]
            numbers = 2  # of a term: distances from 1 or 0, and how many are from 0
            scale += 1
        elif stem == "ssim":
            names = ["float_ssim", *(f"float_ssim_{term}" for term in _LCS)]
            numbers = 1
        else:
            continue
        push = INTERFACES[stem].unpack(dispatch.push)
        windows = (push["width"] - _WINDOW_SIDE + 1) * (push["height"] - _WINDOW_SIDE + 1)
        if windows < 1:
            yield f"{dispatch.label} is told of {push['width']}x{push['height']} samples, which have no window"
            continue
        first, count = push["first_partial"], dispatch.groups[0] * dispatch.groups[1] * numbers * len(names)
        left = backend.batches[0].slot.outputs[dispatch.targets[0]][0].view(np.float32)[first : first + count]
        for number, name in enumerate(names):
            column = left.reshape(-1, numbers, len(names))[..., number]
            score, right = scores[name], 1.0 - math.fsum(column.ravel().tolist()) / windows
            if score is None or not abs(score - right) <= SUMS_TOLERANCE:
                yield f"the host makes {name} {score!r} of sums that give {right!r}"


# -- clips ----------------------------------------------------------------------------------------------------------------


def _score_clip(name: str, device: str | None) -> GateRow:
    paths = FIXTURES / f"{name}_ref.mp4", FIXTURES / f"{name}_dis.mp4"
    features = (MS_SSIM, SSIM)
    libvmaf = json.loads((FIXTURES / f"{name}.libvmaf.json").read_text("utf-8"))
    first = Selection(count=CLIP_FRAMES)
    trusted = score_files(*paths, features=features, selection=first, backend="cpu")
    row = f"{name}, {trusted.bits} bit {trusted.width}x{trusted.height}, {len(trusted.frames)} frames of a file"
    try:
        tested = score_files(*paths, features=features, selection=first, backend="vulkan", device=device)
    except WrongNumbersError as error:  # the self-test of the device, which files pass through
        return GateRow(row, EXACT_PLACES, {}, (str(error),))
    stored = {frame["frameNum"]: frame["metrics"] for frame in libvmaf["frames"][:CLIP_FRAMES]}
    return GateRow(row, EXACT_PLACES, _compare_sides(by_frame(tested), by_frame(trusted), stored, EXACT_PLACES))


def _score_vmaf_clips(device: str | None, shapes: Sequence[Shape]) -> Iterator[GateRow]:
    cases = json.loads((FIXTURES / "vmaf_cases.json").read_text("utf-8"))["cases"]
    with np.load(FIXTURES / "vmaf_cases.npz") as archive:
        for name in VMAF_CLIPS:
            clips, bits = [archive[f"{name}_{side}"] for side in ("ref", "dis")], cases[name]["bitdepth"]
            count, height, width = clips[0].shape
            metrics = FrameMetrics(VMAF, [FrameFormat.of_bits(width, height, bits)])
            frames = cases[name]["libvmaf"]["frames"]
            stored = {number: {score: frame[score] for score in metrics.names} for number, frame in enumerate(frames)}
            with CpuBackend(metrics.planes) as cpu:
                trusted = _score_frames(cpu, metrics, [[clip] for clip in clips])
            for shape in shapes:
                with VulkanBackend(metrics.planes, device=device, batch=2, slots=2, shape=shape) as vulkan:
                    tested = _score_frames(vulkan, metrics, [[clip] for clip in clips])
                row = f"{name}, {bits} bit {width}x{height}, {counted(count, 'frame')}, vmaf, {shape.value} exact"
                yield GateRow(row, EXACT_PLACES, _compare_sides(tested, trusted, stored, EXACT_PLACES))


def _score_clips_with_chroma(device: str | None, shapes: Sequence[Shape]) -> Iterator[GateRow]:
    for name in CLIPS:
        clips = [_planes_of(FIXTURES / f"{name}_{side}.mp4", V1_FRAMES) for side in ("ref", "dis")]
        (_, height, width), bits = clips[0][0].shape, 10 if "10bit" in name else 8
        stored = json.loads((FIXTURES / f"{name}.vmaf_v1.json").read_text("utf-8"))["frames"][: V1_FRAMES - 1]
        for what, features, frames in (("vmaf v1", VMAF_V1, stored), (CAMBI[0], CAMBI, None)):
            metrics = FrameMetrics(features, [FrameFormat.of_bits(width, height, bits)])
            libvmaf = frames and {
                number: {score: frame[score] for score in metrics.names} for number, frame in enumerate(frames)
            }
            read = [planes[: len(metrics.planes)] for planes in clips]
            with CpuBackend(metrics.planes) as cpu:
                trusted = _score_frames(cpu, metrics, read)
            for shape in shapes:
                with VulkanBackend(metrics.planes, device=device, batch=2, slots=2, shape=shape) as vulkan:
                    tested = _score_frames(vulkan, metrics, read)
                row = f"{name}, {bits} bit {width}x{height}, {counted(len(stored), 'frame')}, {what}, {shape.value} exact"
                first, right = ({number: scores[number] for number in range(len(stored))} for scores in (tested, trusted))
                sides = _compare_sides(first, right, libvmaf, EXACT_PLACES)
                yield GateRow(row, EXACT_PLACES, sides)


def _planes_of(path: Path, count: int) -> list[Samples]:
    """Return Y, Cb and Cr of the first frames of a clip, each (N, H, W)."""
    with av.open(str(path)) as container:
        frames = list(itertools.islice(container.decode(video=0), count))
    return [np.stack([_samples_of(frame, number) for frame in frames]) for number in range(3)]


def _samples_of(frame: Any, number: int) -> Samples:
    plane = frame.planes[number]
    rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
    return rows.view(np.uint16 if frame.format.components[number].bits > 8 else np.uint8)[:, : plane.width]


def _score_frames(backend: Backend, metrics: FrameMetrics, clips: Sequence[Sequence[Samples]]) -> Scores:
    """Return the scores of consecutive frames, in batches that follow each other, from the planes of both clips."""
    sequence, before = FrameSequence(metrics), None
    columns: dict[str, list[float]] = {name: [] for name in metrics.names}

    def add(settled: Mapping[str, Doubles]) -> None:
        for name, scores in settled.items():
            columns[name] += scores.tolist()

    count = len(clips[0][0])
    for number, first in enumerate(range(0, count, backend.batch_size)):
        batch = backend.batches[number % len(backend.batches)]
        frames = min(backend.batch_size, count - first)
        for memory, clip in zip((batch.reference, batch.distorted), clips, strict=True):
            for target, plane in zip(memory, clip, strict=True):
                target[:frames] = plane[first : first + frames]
        backend.submit(batch, frames, before)
        add(sequence.add(backend.collect(batch)))
        before = batch
    add(sequence.end())
    return {number: {name: scores[number] for name, scores in columns.items()} for number in range(count)}


def by_frame(report: ScoreReport) -> Scores:
    """Return the scores of a report by the number of the frame."""
    return {frame.index: frame.metrics for frame in report.frames}


def _compare_sides(
    tested: Scores, trusted: Scores, libvmaf: Scores | None, places: int
) -> dict[tuple[str, str], list[ScoreDifference]]:
    """Compare each two of the sides. Differences from libvmaf's scores may be larger by the rounding of these."""
    tolerance, rounding = tolerance_of(places), tolerance_of(STORED_PLACES)
    sides = {("vulkan", "cpu"): compare(tested, trusted, tolerance)}
    if libvmaf is not None:
        sides["vulkan", "libvmaf"] = compare(tested, libvmaf, tolerance + rounding)
        sides["cpu", "libvmaf"] = compare(trusted, libvmaf, tolerance_of(EXACT_PLACES) + rounding)
    return sides
