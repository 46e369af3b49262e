"""Pairs by number and by time."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.frames.pairing.schedule import ByTime, Pairing


def _pairs(reference: list[float], distorted: list[float], skips: tuple[int, int] = (0, 0)) -> list[tuple[int, int]]:
    pairing = ByTime(np.array(reference), np.array(distorted), *skips)
    every = range(len(pairing))
    return list(zip(pairing.reference(every), pairing.distorted(every), strict=True))


def test_by_index() -> None:
    pairing = Pairing(3, 5)
    assert list(pairing.reference(range(0, 6, 2))) == [3, 5, 7]
    assert list(pairing.distorted(range(0, 6, 2))) == [5, 7, 9]
    assert list(pairing.indices(range(0, 6, 2))) == [0, 2, 4]


def _at(rate: float, *numbers: int) -> list[float]:
    return [number / rate for number in numbers]


@pytest.mark.parametrize(
    ("reference", "distorted", "pairs"),
    [
        (_at(25, 0, 1, 2, 3), _at(25, 0, 1, 2, 3), [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ([1.4, 1.44, 1.48], [0.0, 0.04, 0.08], [(0, 0), (1, 1), (2, 2)]),  # times count from the first frame of each
        (
            _at(30000 / 1001, *range(99)),
            [round(time, 3) for time in _at(30000 / 1001, *range(99))],
            [(n, n) for n in range(99)],
        ),
        (_at(25, *range(8)), _at(25, 0, 1, 4, 5, 7), [(0, 0), (1, 1), (4, 2), (5, 3), (7, 4)]),
        (_at(25, *range(4)), _at(50, *range(8)), [(0, 0), (1, 2), (2, 4), (3, 6)]),
        (_at(50, *range(8)), _at(25, *range(4)), [(0, 0), (2, 1), (4, 2), (6, 3)]),
        ([0.0, 0.02, 0.22, 0.42], [0.0, 0.015, 0.30, 0.40], [(0, 0), (1, 1), (2, 2), (3, 3)]),  # half a frame's duration counts
        ([0.0, 0.02, 0.22], [0.0, 0.005, 0.3], [(0, 0), (2, 2)]),
        ([0.0, 0.1, 0.2], [0.0, 0.09, 0.12], [(0, 0), (1, 1)]),  # no frame gets two partners
        (_at(25, 0, 1, 2), [0.0, 0.06], [(0, 0)]),  # exactly half a frame is too far
        ([], [], []),
        ([0.0], [], []),
        ([], [0.0], []),
        ([0.0], [0.0], [(0, 0)]),
    ],
)
def test_by_time(reference: list[float], distorted: list[float], pairs: list[tuple[int, int]]) -> None:
    assert _pairs(reference, distorted) == pairs


def test_skipped_frames() -> None:
    """Times count from the first frame that is not skipped."""
    times = [number / 25 for number in range(6)]
    assert _pairs(times, times, (2, 3)) == [(2, 3), (3, 4), (4, 5)]
    pairing = ByTime(np.array(times), np.array(times), 2, 3)
    assert pairing.indices(range(3)) == [0, 1, 2]
    assert pairing.left_over() == (1, 0)


def test_frames_left_over_within_a_part() -> None:
    """The distorted clip lacks frames 2 and 5 to 7."""
    pairing = ByTime(np.arange(8) / 25, np.array([0, 1, 3, 4]) / 25, 0, 0)
    assert pairing.left_over() == (4, 0)
    assert pairing.left_over(0, 2) == (0, 0)
    assert pairing.left_over(0, 3) == (1, 0)
    assert pairing.left_over(2, 4) == (3, 0), "to the end"
    assert ByTime(np.arange(3) / 25, np.array([]), 0, 0).left_over() == (3, 0)


def test_place_of_a_frame() -> None:
    pairing = ByTime(np.arange(8) / 25, np.array([0, 1, 4, 5, 7]) / 25, 0, 0)
    assert [pairing.pair_of(frame) for frame in range(9)] == [0, 1, 2, 2, 2, 3, 4, 4, 5]
