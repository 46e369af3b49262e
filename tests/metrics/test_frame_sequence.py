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
PSNR = FrameMetrics("float_psnr", [FRAME])


def _sums(count: int) -> Doubles:
    sums = np.random.default_rng(count).integers(0, 1 << 20, (count, 1)).astype(np.float64)
    sums[:1] = 0
    return sums


@settings(max_examples=60)
@given(some.lists(some.integers(1, 4), min_size=1, max_size=6))
def test_any_batches_give_the_scores_of_the_whole_clip(batches: list[int]) -> None:
    sums = _sums(sum(batches))
    sequence, found = FrameSequence(MOTION), dict.fromkeys(MOTION.names, np.empty(0))
    parts = np.split(sums, np.cumsum(batches)[:-1])
    for settled in (*(sequence.add([[part]]) for part in parts), sequence.end()):
        found = {name: np.append(column, settled.get(name, ())) for name, column in found.items()}
    expected = MOTION.finish([[sums]])
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


@pytest.mark.parametrize("in_its_batch", [0, 1, 3])
@pytest.mark.parametrize("first", [1, 2, 5])
def test_after_a_lead_only_the_rest_is_given(first: int, in_its_batch: int) -> None:
    sums = _sums(8)
    read = np.concatenate([np.zeros((1, 1)), sums[first:]])  # the frame before was computed as if it were the first
    sequence = FrameSequence(MOTION, lead=True)
    settled = [sequence.add([[part]]) for part in (read[: 1 + in_its_batch], read[1 + in_its_batch :]) if len(part)]
    found = np.concatenate([columns["integer_motion2"] for columns in (*settled, sequence.end())])
    np.testing.assert_array_equal(found, MOTION.finish([[sums]])["integer_motion2"][first:])


def test_after_its_end_another_clip_begins() -> None:
    sequence = FrameSequence(MOTION)
    for sums in (_sums(3), _sums(4)):
        settled = [sequence.add([[sums]]), sequence.end()]
        found = np.concatenate([columns["integer_motion3"] for columns in settled])
        np.testing.assert_array_equal(found, MOTION.finish([[sums]])["integer_motion3"])
