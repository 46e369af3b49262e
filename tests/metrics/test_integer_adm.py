"""adm as a metric: names, limits, refusals, and libvmaf's digits on both backends."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from vkssim import Scorer, Selection, score_files
from vkssim.errors import FrameError, OptionError
from vkssim.metrics import make_scorer
from vkssim.metrics.plane_metrics import FrameMetrics, plane_formats
from vkssim.types import FrameFormat

from ..support.golden import CLIPS, clip_paths, clip_report
from ..support.vmaf_golden import CASES, case_scores, scores_of, vmaf_clips

pytestmark = pytest.mark.usefixtures("shared_device")

LIMITS = {100: "", 1: "_egl_1"}


def _names(limit: int = 100) -> list[str]:
    return [f"integer_{name}{LIMITS[limit]}" for name in ("adm2", *(f"adm_scale{scale}" for scale in range(4)))]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("case", CASES)
def test_every_digit_of_the_cases(case: str, limit: int) -> None:
    references, distorted, bits = vmaf_clips(case)
    height, width = references.shape[1:]
    with Scorer(width, height, bits=bits, features=f"adm=adm_enhn_gain_limit={limit}") as scorer:
        frames = [dict(scores.metrics) for scores in scorer.score(zip(references, distorted, strict=True))]
    np.testing.assert_array_equal(scores_of(frames, *_names(limit)), case_scores(case, *_names(limit)))


@pytest.mark.parametrize(
    ("backend", "clip", "count"), [("vulkan", CLIPS[0], None), ("vulkan", CLIPS[1], None), ("cpu", CLIPS[1], 3)]
)
def test_every_digit_of_the_clips(backend: str, clip: str, count: int | None) -> None:
    expected = clip_report(clip, "vmaf")["frames"][:count]
    report = score_files(*clip_paths(clip), features="adm", backend=backend, selection=Selection(count=count))
    np.testing.assert_array_equal(
        scores_of([dict(frame.metrics) for frame in report.frames], *_names()), scores_of(expected, *_names())
    )


OF_MODELS = "adm_enhn_gain_limit=1:adm_csf_mode=2:adm_noise_weight=0.02:adm_dlm_weight=0.7:adm_min_val=0.5"
"""The options of VMAF's models of version 1."""


@pytest.mark.parametrize("backend", ["vulkan", "cpu"])
def test_options_of_models(backend: str) -> None:
    """Aim and adm3 too."""
    names = [f"integer_{name}_csf_2_dlmw_0.7_egl_1_min_0.5_nw_0.02" for name in ("adm2", "aim", "adm3", "adm_scale2")]
    expected = scores_of(clip_report(CLIPS[1], "vmaf_v1")["frames"][:2], *names)
    feature = f"adm={OF_MODELS}:adm_skip_aim=false"
    report = score_files(*clip_paths(CLIPS[1]), features=feature, backend=backend, selection=Selection(count=2))
    np.testing.assert_array_equal(scores_of([dict(frame.metrics) for frame in report.frames], *names), expected)


def test_distances_without_weights() -> None:
    frame = FrameFormat.of_bits(64, 48, 8)
    with pytest.raises(OptionError, match="must be 3240 at least, got 2160"):
        make_scorer("adm=adm_norm_view_dist=2", frame)
    with pytest.raises(OptionError, match="adm_csf_mode=2 has weights for"):
        make_scorer("adm=adm_norm_view_dist=4:adm_csf_mode=2", frame)
    with pytest.raises(OptionError, match=r"it must be a number from 0 to 1$"):
        make_scorer("adm=adm_dlm_weight=nan", frame)


def test_beside_other_metrics() -> None:
    """In one plan, whose steps it shares."""
    references, distorted, _ = vmaf_clips("odd")
    height, width = references.shape[1:]
    features = ["float_ms_ssim", "adm", "vif", "float_psnr"]
    scores = []
    for chosen in (features, *([feature] for feature in features)):
        with Scorer(width, height, bits=8, features=chosen) as scorer:
            scores.append([dict(frame.metrics) for frame in scorer.score(zip(references, distorted, strict=True))])
    together, *alone = scores
    assert together == [dict(chain.from_iterable(map(dict.items, frames))) for frames in zip(*alone, strict=True)]


def test_names_and_settings() -> None:
    frame = FrameFormat.of_bits(64, 48, 8)
    scorer = make_scorer("adm=adm_enhn_gain_limit=1", frame)
    assert scorer.names == tuple(_names(1))
    assert (scorer.text, scorer.similarities, scorer.limit_db) == ("adm=adm_enhn_gain_limit=1", (), None)
    assert make_scorer("adm", frame).text == "adm"


@pytest.mark.parametrize("limit", ["0", "101", "1.5", "much"])
def test_limits_that_are_refused(limit: str) -> None:
    with pytest.raises(OptionError, match=r"adm_enhn_gain_limit is .*; it must be a whole number from 1 to 100"):
        make_scorer(f"adm=adm_enhn_gain_limit={limit}", FrameFormat.of_bits(64, 48, 8))


def test_chroma_is_refused() -> None:
    with pytest.raises(OptionError, match="adm is a metric of the luma"):
        FrameMetrics("adm", plane_formats(FrameFormat.of_bits(80, 80, 8), "yuv"))


@pytest.mark.parametrize(
    "frame",
    [
        FrameFormat.of_array(64, 64, np.float32, 1.0),
        FrameFormat.of_array(64, 64, np.uint8, 250.0),
        FrameFormat.of_array(64, 64, np.uint16, 1000.0),
    ],
)
def test_samples_without_a_depth_are_refused(frame: FrameFormat) -> None:
    with pytest.raises(FrameError, match="integers of 8 to 16 bits"):
        make_scorer("adm", frame)


def test_frames_that_are_too_small() -> None:
    with pytest.raises(FrameError, match="adm needs 33x33 at least, got 64x32"):
        make_scorer("adm", FrameFormat.of_bits(64, 32, 8))
