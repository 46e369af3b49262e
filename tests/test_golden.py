"""Both backends against libvmaf's own scores: every case, every frame of the clips, every metric."""

from __future__ import annotations

import functools
import math

import pytest

from vkssim import score_files
from vkssim.backends.open import open_backend
from vkssim.metrics import with_options
from vkssim.metrics.plane_metrics import FrameMetrics
from vkssim.types import Doubles, FrameFormat

from .support import golden
from .support.differences import check_number, check_scores
from .support.tolerances import GOLDEN_CPU, GOLDEN_EXACT, GOLDEN_FAST, GOLDEN_INTEGERS, GOLDEN_PSNR, Tolerance

pytestmark = pytest.mark.usefixtures("shared_device")

TOLERANCES = {"cpu": GOLDEN_CPU, "vulkan": GOLDEN_EXACT, "vulkan fast": GOLDEN_FAST}
"""The tolerances by backend. Each kind of arithmetic runs on all sizes, not only on its default sizes."""


def _features(key: str, backend: str) -> list[str]:
    precision = "fast" if backend == "vulkan fast" else "exact"
    return [with_options(feature, precision=precision) for feature in golden.FEATURES[key]]


# libvmaf is wrong here (docs/adr/0001): a negative mean structure has no score, but with clip_db it gets 99 dB, the best score.
WRONG_IN_LIBVMAF = {("inverted", "libvmaf_clipped_db", "float_ms_ssim")}


KEYS_OF_SUMS = {**{key: key for key in golden.FEATURES}, "libvmaf_clipped_db": "libvmaf"}
"""The key whose sums give the scores of a key. The host converts to dB, and compiling kernels takes most of a test's time."""


def _scores(name: str, key: str, backend: str) -> dict[str, float]:
    scores = _metrics(name, key, backend).finish(_means(name, KEYS_OF_SUMS[key], backend))
    return {metric: float(column[0]) for metric, column in scores.items()}


@functools.cache
def _means(name: str, key: str, backend: str) -> list[list[Doubles]]:
    """Return the scores of a case by a backend."""
    case, metrics = golden.load_case(name, key), _metrics(name, key, backend)
    with open_backend(backend.split()[0], metrics.planes) as engine:
        batch = engine.batches[0]
        batch.reference[0][0], batch.distorted[0][0] = case.reference, case.distorted
        engine.submit(batch, 1)
        return engine.collect(batch)


def _metrics(name: str, key: str, backend: str) -> FrameMetrics:
    case = golden.load_case(name, key)
    height, width = case.reference.shape
    return FrameMetrics(_features(key, backend), [FrameFormat.of_bits(width, height, case.bits)])


WITHOUT_FAST = {"libvmaf_psnr", "libvmaf_vif", "libvmaf_adm"}
"""The keys of metrics whose kernels have one build."""

WITHOUT_DOWNSCALE = {
    (name, key) for name in ("autoscale3", "autoscale4") for key in ("libvmaf_scale1", "libvmaf_vif", "libvmaf_adm")
}
"""Large pictures are for the automatic downscale; without it the smallest and the largest of them are enough."""

CASES = [
    (name, key, backend)
    for name, key in golden.case_keys()
    for backend in TOLERANCES
    if key != "libvmaf_clipped_db"
    and not (key in WITHOUT_FAST and backend == "vulkan fast")
    and (name, key) not in WITHOUT_DOWNSCALE
]


@pytest.mark.parametrize(("name", "key", "backend"), CASES)
def test_case(name: str, key: str, backend: str) -> None:
    case = golden.load_case(name, key)
    of_metrics = {"libvmaf_psnr": GOLDEN_PSNR, "libvmaf_vif": GOLDEN_INTEGERS, "libvmaf_adm": GOLDEN_INTEGERS}
    tolerance: Tolerance = of_metrics.get(key, TOLERANCES[backend])
    check_scores(tolerance, f"{name} {key}", _scores(name, key, backend), case.scores)


@pytest.mark.parametrize("backend", TOLERANCES)
@pytest.mark.parametrize("name", [name for name, key in golden.case_keys() if key == "libvmaf_clipped_db"])
def test_case_in_decibel(name: str, backend: str) -> None:
    """Compared as the scores that the decibels stand for: near 1 the logarithm magnifies without limit."""
    key = "libvmaf_clipped_db"
    case = golden.load_case(name, key)
    got = _scores(name, key, backend)
    assert set(got) == set(case.scores)
    for metric, expected in case.scores.items():
        assert expected is not None
        if (name, key, metric) in WRONG_IN_LIBVMAF:
            assert expected == 99.0
            assert math.isnan(got[metric])
            continue
        where = f"{name}, {metric} in dB"
        check_number(TOLERANCES[backend], f"{metric} dB", where, _lost(got[metric]), _lost(expected))
        if (case.reference == case.distorted).all():
            assert got[metric] == expected  # the clip itself, a whole number


def _lost(decibel: float) -> float:
    """1 - score."""
    return 10 ** (-decibel / 10)


OF_CLIPS = [
    *((backend, "libvmaf", tolerance) for backend, tolerance in TOLERANCES.items()),
    *((backend, "psnr", GOLDEN_PSNR) for backend in ("cpu", "vulkan")),
]


@pytest.mark.parametrize(("backend", "key", "tolerance"), OF_CLIPS)
@pytest.mark.parametrize("clip", golden.CLIPS)
def test_clip(clip: str, backend: str, key: str, tolerance: Tolerance) -> None:
    """Every frame, and what is pooled of them where libvmaf's report has it."""
    features = "float_psnr" if key == "psnr" else _features(key, backend)
    report = score_files(*golden.clip_paths(clip), features=features, backend=backend.split()[0])
    expected = golden.clip_report(clip, key)
    assert [frame.index for frame in report.frames] == [frame["frameNum"] for frame in expected["frames"]]
    for frame, golden_frame in zip(report.frames, expected["frames"], strict=True):
        check_scores(tolerance, f"{clip} frame {frame.index}", frame.metrics, golden_frame["metrics"])
    pooled = report.pooled()
    for name, poolings in expected.get("pooled_metrics", {}).items():
        for pooling, value in poolings.items():
            check_number(tolerance, "pooled", f"{clip}, {pooling} of {name}", pooled[name][pooling], value)
