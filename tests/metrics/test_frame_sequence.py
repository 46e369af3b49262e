"""Frames whose scores depend on their neighbours, batch by batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from vkssim.metrics.plane_metrics import FrameMetrics, FrameSequence
from vkssim.types import Doubles, FrameFormat

FRAME = FrameFormat.of_bits(64, 48, 8)
MOTION = FrameMetrics("motion", [FRAME])
WIDE = FrameMetrics("motion=motion_five_frame_window=true:motion_moving_average=true", [FRAME])
PSNR = FrameMetrics("float_psnr", [FRAME])


def _sums(count: int) -> Doubles:
    sums = np.random.default_rng(count).integers(0, 1 << 20, (count, 1)).astype(np.float64)
    sums[:1] = 0
    return sums


@settings(max_examples=100)
@given(some.lists(some.integers(1, 4), min_size=1, max_size=6), some.sampled_from([MOTION, WIDE]))
def test_any_batches_give_the_scores_of_the_whole_clip(batches: list[int], metrics: FrameMetrics) -> None:
    sums = _sums(sum(batches))
    sequence, found = FrameSequence(metrics), dict.fromkeys(metrics.names, np.empty(0))
    parts = np.split(sums, np.cumsum(batches)[:-1])
    for settled in (*(sequence.add([[part]]) for part in parts), sequence.end()):
        found = {name: np.append(column, settled.get(name, ())) for name, column in found.items()}
    expected = metrics.finish([[sums]])
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column)


def test_a_frame_waits_for_the_next_one() -> None:
    sequence = FrameSequence(MOTION)
    counts = [len(sequence.add([[_sums(3)]])["integer_motion2"]), len(sequence.add([[_sums(2)]])["integer_motion2"])]
    assert counts == [2, 2]
    assert len(sequence.end()["integer_motion2"]) == 1
    assert sequence.end() == {}


def test_other_metrics_wait_for_nothing() -> None:
    sequence = FrameSequence(PSNR)
    assert len(sequence.add([[np.ones((3, 1))]])["float_psnr"]) == 3
    assert sequence.end() == {}


@pytest.mark.parametrize("in_its_batch", [1, 2, 4])
@pytest.mark.parametrize("first", [4, 5, 7])
@pytest.mark.parametrize("metrics", [MOTION, WIDE], ids=["next", "wide"])
def test_after_a_lead_only_the_rest_is_given(metrics: FrameMetrics, first: int, in_its_batch: int) -> None:
    sums = _sums(10)
    (scorer,), lead = metrics.planes[0].scorers, metrics.frames_before
    read = sums[first - lead :].copy()
    read[: scorer.distance] = 0  # they were computed as if they were the first ones
    sequence = FrameSequence(metrics, lead=lead)
    settled = [sequence.add([[part]]) for part in (read[:in_its_batch], read[in_its_batch:]) if len(part)]
    ends = [*settled, sequence.end()]
    for name, column in metrics.finish([[sums]]).items():
        np.testing.assert_array_equal(np.concatenate([columns[name] for columns in ends]), column[first:])


def test_after_its_end_another_clip_begins() -> None:
    sequence = FrameSequence(MOTION)
    for sums in (_sums(3), _sums(4)):
        settled = [sequence.add([[sums]]), sequence.end()]
        found = np.concatenate([columns["integer_motion3"] for columns in settled])
        np.testing.assert_array_equal(found, MOTION.finish([[sums]])["integer_motion3"])
