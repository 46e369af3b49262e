"""motion: every digit of libvmaf's C code, its options, and the first, last and only frames."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.errors import FrameError
from vkssim.metrics.motion import MotionOptions, blur_columns, blur_rows, clip_sums, motion_scores, motion_sum

from ..support.vmaf_golden import CASES, case_scores, vmaf_clips

NAMES = ("VMAF_integer_feature_motion_sad_score", "integer_motion2", "integer_motion3")
UNIT = 256 * 4 * 4
"""The sum of a frame of 4x4 whose motion is 1."""


@pytest.mark.parametrize("case", CASES)
def test_every_digit_of_the_cases(case: str) -> None:
    references, _, bits = vmaf_clips(case)
    scores = motion_scores(clip_sums(references, bits), *references.shape[:0:-1])
    np.testing.assert_array_equal(np.transpose(scores), case_scores(case, *NAMES))


@pytest.mark.parametrize("bits", [8, 10, 16])
@pytest.mark.parametrize("sign", [1, -1])
def test_largest_difference(bits: int, sign: int) -> None:
    """Black against white is 256 times the range in units of 8 bits, and rounds alike in both directions."""
    peak = 2**bits - 1
    black, white = (np.full((3, 5), level, np.uint16) for level in (0, peak))
    earlier, reference = (white, black) if sign > 0 else (black, white)
    columns = blur_columns(earlier, reference, bits)
    np.testing.assert_array_equal(columns, sign * (peak << 16 >> bits))
    np.testing.assert_array_equal(blur_rows(columns), columns)


def test_blur_of_the_difference_is_not_the_difference_of_blurs() -> None:
    references, _, bits = vmaf_clips("moving_texture")
    nothing = np.zeros_like(references[0])
    apart = [blur_rows(blur_columns(plane, nothing, bits)) for plane in references[:2]]
    assert np.abs(apart[0] - apart[1]).sum() != motion_sum(references[0], references[1], bits)


def _motions(*motions: float, **options: float) -> tuple[list[float], list[float], list[float]]:
    scores = motion_scores([round(motion * UNIT) for motion in motions], 4, 4, MotionOptions(**options))  # type: ignore[arg-type]
    return scores.motion.tolist(), scores.motion2.tolist(), scores.motion3.tolist()


def test_neighbours() -> None:
    assert _motions(0) == ([0], [0], [0])
    assert _motions(0, 5) == ([0, 5], [0, 5], [5, 5])
    assert _motions(0, 5, 3, 8, 9) == ([0, 5, 3, 8, 9], [0, 3, 3, 8, 9], [5, 3, 3, 8, 9])


def test_five_frames() -> None:
    """Frames 0 and 1 have nothing two frames earlier. Frame 2 has the next motion alone, the last one its own."""
    assert _motions(0, 0, five_frame_window=True)[2] == [0, 0]
    assert _motions(0, 0, 4, five_frame_window=True) == ([0, 0, 4], [0, 0, 4], [4, 4, 4])
    assert _motions(0, 0, 4, 6, 2, 7, five_frame_window=True)[1] == [0, 0, 6, 2, 6, 7]
    references = np.zeros((4, 3, 3), np.uint8)
    references[2] = 1
    assert clip_sums(references, 8, 2) == [0, 0, 256 * 9, 0]
    assert clip_sums(references[:1], 8, 2) == [0]


def test_options() -> None:
    assert _motions(0, 5, 3, force_zero=True) == ([0, 0, 0],) * 3
    assert _motions(0, 5, 3, fps_weight=2.0)[0] == [0, 10, 6]
    assert _motions(0, 5, 3, max_val=4.0) == ([0, 4, 3], [0, 3, 3], [4, 3, 3])
    assert _motions(0, 50, 60, blend_factor=0.5)[2] == [45, 45, 50]
    assert _motions(0, 6, 2, moving_average=True)[2] == [6, 4, 2]


@pytest.mark.parametrize("shape", [(2, 3), (3, 2)])
def test_frames_that_are_too_small(shape: tuple[int, int]) -> None:
    plane = np.zeros(shape, np.uint8)
    with pytest.raises(FrameError, match="3x3 at least"):
        motion_sum(plane, plane, 8)
