"""Twin of motion, libvmaf's integer extractor (`integer_motion.c`), by stage: every integer equals that of its C code.

    reference, an earlier reference ──► blur_columns ──► blur_rows ──► sum of magnitudes ──► sums of a clip ──► motion2, motion3

The difference of two references is blurred. To blur each reference once and subtract would give other roundings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import FrameError
from ..shaders.constants import MOTION_FILTER, MOTION_SMALLEST_SIDE
from ..types import Doubles
from .vif import Int32Plane, IntegerPlane, weighted_sums


@dataclass(frozen=True)
class MotionOptions:
    """The options of motion, by libvmaf's names without `motion_`, and their defaults."""

    force_zero: bool = False
    blend_factor: float = 1.0
    blend_offset: float = 40.0
    fps_weight: float = 1.0
    max_val: float = 10000.0
    five_frame_window: bool = False
    moving_average: bool = False

    @property
    def distance(self) -> int:
        """Return the frames from an earlier reference to the one that is compared with it."""
        return 2 if self.five_frame_window else 1

    @property
    def frames_before(self) -> int:
        """Return the number of frames before a frame on which its scores depend."""
        return 2 * self.distance - 1 + self.moving_average

    @property
    def frames_after(self) -> int:
        """Return the number of frames after a frame on which its scores depend; all of them for the first frame."""
        return self.distance


def _shifted(sums: npt.NDArray[np.int64], shift: int) -> Int32Plane:
    return ((sums + (1 << (shift - 1))) >> shift).astype(np.int32)


def blur_columns(earlier: IntegerPlane, reference: IntegerPlane, bits: int) -> Int32Plane:
    """Return the difference of two (H, W) planes of 8 to 16 bits, blurred along the columns: int32, magnitudes below 2^16.

    It is 256 times the difference in units of 8 bits. Sums have 25 bits with the sign for 8 bits, and 33 for 16.
    """
    difference = earlier.astype(np.int64) - reference
    return _shifted(weighted_sums(difference, MOTION_FILTER, axis=0), bits)


def blur_rows(columns: Int32Plane) -> Int32Plane:
    """Return blurred columns blurred along the rows: (H, W) int32, magnitudes below 2^16. Sums have 33 bits with the sign."""
    return _shifted(weighted_sums(columns.astype(np.int64), MOTION_FILTER, axis=1), 16)


def motion_sum(earlier: IntegerPlane, reference: IntegerPlane, bits: int) -> int:
    """Return the sum of the magnitudes of the blurred difference. That of a row is below 2^32.

    Raises FrameError below 3x3.
    """
    height, width = reference.shape
    check_size(width, height)
    return int(np.abs(blur_rows(blur_columns(earlier, reference, bits))).sum(dtype=np.int64))


def check_size(width: int, height: int) -> None:
    """Raise FrameError for a plane that is too small."""
    if min(width, height) < MOTION_SMALLEST_SIDE:
        raise FrameError(f"motion needs {MOTION_SMALLEST_SIDE}x{MOTION_SMALLEST_SIDE} at least, got {width}x{height}")


class Motion(NamedTuple):
    """The scores of a clip, each (N,) float64: of the sum alone, of the smaller of two sums, and after blending."""

    motion: Doubles
    motion2: Doubles
    motion3: Doubles


def clip_sums(references: npt.NDArray[np.uint8] | npt.NDArray[np.uint16], bits: int, distance: int = 1) -> list[int]:
    """Return the sum of each frame of (N, H, W) references; it is 0 for the first ones, which have no earlier frame."""
    pairs = zip(references, references[distance:], strict=False)
    return [0] * min(distance, len(references)) + [motion_sum(earlier, later, bits) for earlier, later in pairs]


def motion_scores(sums: list[int], width: int, height: int, options: MotionOptions | None = None) -> Motion:
    """Return the scores of a clip from the sum of each of its frames.

    motion is the mean magnitude, in units of 8 bits. motion2 is the smaller of a frame's motion and the next one's, or, in a
    window of five frames, of the motions before and after the frame. The last frame has its own motion. The first frame, or the
    first two in a window of five frames, has no earlier one: its motion and motion2 are 0. motion3 is motion2 blended and
    limited; the first frames have that of the motion after them.
    """
    options = options or MotionOptions()
    count, first = len(sums), options.distance
    motion = np.zeros(count)
    if not options.force_zero:
        means = np.array(sums[first:], np.float64) / 256.0 / (width * height)
        motion[first:] = np.minimum(means * options.fps_weight, options.max_val)

    motion2 = motion.copy()
    between = slice(2 * first - 1, count - 1)  # frames with a motion on both sides
    motion2[first : count - 1] = motion[first + 1 :]
    motion2[between] = np.minimum(motion[first : count - first], motion2[between])

    blended = _blend(motion2, options)
    motion3 = blended.copy()
    start = _blend(motion[first : first + 1], options) if count > first else np.zeros(1)
    motion3[:first] = start[0]
    if options.moving_average:
        motion3[first:] = (blended[first:] + np.append(start, blended[first:-1])[: max(count - first, 0)]) / 2.0
    return Motion(motion, motion2, motion3)


def _blend(scores: Doubles, options: MotionOptions) -> Doubles:
    """Return scores weighted by the factor above the offset, and limited."""
    lower = (1 - options.blend_factor) * np.minimum(options.blend_offset, scores)
    return np.minimum(scores * options.blend_factor + lower, options.max_val)
