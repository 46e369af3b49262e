"""The worst moments of clips: frames within a second are one."""

from __future__ import annotations

import math

from vkssim.page.moments import listed_moments, moments_of, shared_moments
from vkssim.report.results import FrameScores, ScoreReport
from vkssim.types import BackendInfo

RATE = 10.0


def report(dips: dict[int, float], frames: int = 100, rate: float | None = RATE) -> ScoreReport:
    """Scores of 0.9 that fall to these, and rise again within three frames on each side."""
    scores = [0.9] * frames
    for place, lowest in dips.items():
        for away in range(-3, 4):
            if 0 <= place + away < frames:
                value = lowest + (0.9 - lowest) * abs(away) / 4
                scores[place + away] = value if math.isnan(lowest) else min(scores[place + away], value)
    rows = [FrameScores(index, {"other": 0.0, "float_ssim": score}) for index, score in enumerate(scores)]
    return ScoreReport("ref", "dis", 8, 8, 8, ("other", "float_ssim"), BackendInfo("cpu", "", ""), rows, rate=rate)


def indices(one: ScoreReport, count: int) -> list[int]:
    return [frame.index for frame in moments_of(one, "float_ssim", count)]


def test_six_moments_are_six_things() -> None:
    dips = {10: 0.5, 30: 0.2, 50: 0.4, 70: 0.3, 90: 0.1}
    assert indices(report(dips), 5) == [90, 30, 70, 50, 10]
    assert indices(report(dips), 2) == [90, 30]


def test_frames_within_a_second_are_one_moment() -> None:
    assert indices(report({40: 0.2, 46: 0.3, 80: 0.5}), 2) == [40, 80]


def test_a_slope_beside_a_moment_is_none() -> None:
    """Its frames are worse than most, but a worse one is near each of them."""
    one = report({})
    for frame in one.frames:
        frame.metrics["float_ssim"] = 0.9 - 0.001 * frame.index  # type: ignore[index]
    assert indices(one, 6) == [99]


def test_frames_without_a_score_are_one_moment_and_the_worst() -> None:
    assert indices(report({20: 0.5, 60: math.nan}), 2) == [57, 20]


def test_a_clip_without_times_has_25_frames_a_second() -> None:
    assert indices(report({40: 0.2, 60: 0.3, 90: 0.4}, rate=None), 2) == [40, 90]


def test_the_moments_are_those_of_every_clip_and_the_worst_comes_first() -> None:
    bad, good = report({20: 0.1, 40: 0.2, 60: 0.3}), report({80: 0.8, 44: 0.85})
    assert shared_moments([bad], 3) == [20, 40, 60]
    assert shared_moments([bad, good], 2) == [20, 80]  # the worst of each
    assert shared_moments([bad, good], 4) == [20, 40, 60, 80]  # 44 is the moment of 40
    assert shared_moments([], 3) == []


def test_a_moment_names_the_clip_that_is_worst_in_it() -> None:
    (group,) = listed_moments([report({20: 0.5}), report({20: 0.4, 70: 0.6})], 6)
    assert [(one.index, one.time, one.clip, one.score) for one in group.moments[:2]] == [
        (20, "00:00:02.000", 1, "0.4000"),
        (70, "00:00:07.000", 1, "0.6000"),
    ]
    assert group.clips == (0, 1)
