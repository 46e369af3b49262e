"""motion as a metric: names, refusals, and libvmaf's digits on both backends."""

from __future__ import annotations

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

NAMES = ("integer_motion2", "integer_motion3")


@pytest.mark.parametrize("case", CASES)
def test_every_digit_of_the_cases(case: str) -> None:
    """First, last and only frames among them."""
    references, distorted, bits = vmaf_clips(case)
    height, width = references.shape[1:]
    with Scorer(width, height, bits=bits, features="motion", batch=2) as scorer:
        frames = [dict(scores.metrics) for scores in scorer.score(zip(references, distorted, strict=True))]
    np.testing.assert_array_equal(scores_of(frames, *NAMES), case_scores(case, *NAMES))


@pytest.mark.parametrize("backend", ["vulkan", "cpu"])
@pytest.mark.parametrize("clip", CLIPS)
def test_every_digit_of_the_clips(backend: str, clip: str) -> None:
    expected = clip_report(clip, "vmaf")["frames"]
    report = score_files(*clip_paths(clip), features="motion", backend=backend)
    np.testing.assert_array_equal(
        scores_of([dict(frame.metrics) for frame in report.frames], *NAMES), scores_of(expected, *NAMES)
    )


def test_the_largest_score() -> None:
    expected = clip_report(CLIPS[1], "vmaf_v1")["frames"]
    names = [f"{name}_mmxv_18" for name in NAMES]
    report = score_files(*clip_paths(CLIPS[1]), features="motion=motion_max_val=18")
    np.testing.assert_array_equal(
        scores_of([dict(frame.metrics) for frame in report.frames], *names), scores_of(expected, *names)
    )
    report = score_files(*clip_paths(CLIPS[1]), features="motion=motion_max_val=0.5")
    assert max(report.column("integer_motion2_mmxv_0.5")) == 0.5


def test_selected_frames_are_a_clip_of_their_own() -> None:
    """As with libvmaf's --frame_skip_ref and --frame_cnt: the first one has no frame before it, and the last one none after."""
    whole = score_files(*clip_paths(CLIPS[1]), features="motion")
    part = score_files(*clip_paths(CLIPS[1]), features="motion", selection=Selection(start=3, count=4))
    first, *inner, last = part.column("integer_motion2")
    assert first == 0
    assert inner == whole.column("integer_motion2")[4:6].tolist()
    assert last >= whole.column("integer_motion2")[6]


@pytest.mark.parametrize("step", [2, 3, 5, 12])
def test_every_nth_frame_is_compared_with_its_neighbours(step: int) -> None:
    """As libvmaf does with --subsample: they are read too."""
    features = ["float_psnr", "motion"]
    whole = score_files(*clip_paths(CLIPS[1]), features=features)
    part = score_files(*clip_paths(CLIPS[1]), features=features, selection=Selection(subsample=step))
    assert part.frames == whole.frames[::step]
    later = score_files(*clip_paths(CLIPS[1]), features=features, selection=Selection(subsample=step, start=1))
    assert [frame.metrics for frame in later.frames[1:]] == [frame.metrics for frame in whole.frames[1 + step :: step]]


def test_zero_is_forced() -> None:
    scorer = make_scorer("motion=motion_force_zero=true", FrameFormat.of_bits(64, 48, 8))
    assert scorer.names == tuple(f"{name}_force_0" for name in NAMES)
    scores = scorer.finish(np.array([[0.0], [1e6], [2e6]]))
    assert {name: column.tolist() for name, column in scores.items()} == {name: [0.0, 0.0, 0.0] for name in scorer.names}


def test_chroma_is_refused() -> None:
    with pytest.raises(OptionError, match="motion is a metric of the luma"):
        FrameMetrics("motion", plane_formats(FrameFormat.of_bits(64, 64, 8), "yuv"))


def test_what_has_no_depth_or_is_too_small_is_refused() -> None:
    with pytest.raises(FrameError, match="integers of 8 to 16 bits"):
        make_scorer("motion", FrameFormat.of_array(64, 64, np.float32, 1.0))
    with pytest.raises(FrameError, match="motion needs 3x3 at least, got 64x2"):
        make_scorer("motion", FrameFormat.of_bits(64, 2, 8))
