"""cambi: every digit of libvmaf's C code, its stages on small planes, and the sizes and windows that it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from vkssim.errors import FrameError, OptionError
from vkssim.metrics import cambi
from vkssim.metrics.cambi import CambiOptions

from ..support.golden import CLIPS, clip_planes, clip_report

OF_MODELS = CambiOptions(high_res_speedup=1080, max_val=17.0, vis_lum_threshold=0.06)
NAME = "cambi_hrs_1080_cmxv_17_vlt_0.06"


@pytest.mark.parametrize("clip", CLIPS)
def test_every_digit_of_the_clips(clip: str) -> None:
    frames = clip_report(clip, "vmaf_v1")["frames"][:3]
    _, distorted = clip_planes(clip, len(frames))
    scores = [cambi.cambi(plane, 10 if "10bit" in clip else 8, OF_MODELS) for plane in distorted]
    assert scores == [frame[NAME] for frame in frames]


def test_steps_of_a_ramp_are_banding() -> None:
    ramp = np.tile(np.linspace(60, 90, 480), (270, 1))
    steps = cambi.cambi(ramp.astype(np.uint8), 8)
    assert cambi.cambi(np.full((270, 480), 60, np.uint8), 8) == 0
    assert steps > 3 * cambi.cambi((ramp * 4).astype(np.uint16), 10)
    assert cambi.cambi(ramp.astype(np.uint8), 8, CambiOptions(max_val=0.5)) == 0.5
    assert cambi.cambi(ramp.astype(np.uint8), 8, CambiOptions(vis_lum_threshold=290)) == 0


def test_ten_bits_without_dither() -> None:
    plane = np.array([[0, 1, 3], [2, 4, 5]], np.uint8)
    options = CambiOptions()
    large = np.tile(plane, (100, 100))
    np.testing.assert_array_equal(cambi.ten_bits(large, 8, options)[-2:, -3:], [[7, 13, 16], [12, 18, 20]])
    np.testing.assert_array_equal(cambi.ten_bits(large, 8, CambiOptions(enc_bitdepth=10)), large.astype(np.int32) * 4)
    np.testing.assert_array_equal(cambi.ten_bits(large * np.uint16(3), 12, options), (large.astype(np.int32) * 3 + 2) >> 2)


def test_the_size_of_the_encoding() -> None:
    assert cambi.encoded_size(640, 360, CambiOptions(enc_width=320, enc_height=240)) == (320, 240)
    assert cambi.encoded_size(640, 360, CambiOptions(enc_width=1280, enc_height=240)) == (640, 360)
    plane = np.tile(np.arange(240, dtype=np.uint16), (220, 1))
    half = cambi.ten_bits(plane, 10, CambiOptions(enc_width=80, enc_height=220))
    np.testing.assert_array_equal(half, plane[:, 1::3])


def test_modes() -> None:
    plane = np.array([[1, 1, 2, 9], [1, 7, 1, 9], [3, 1, 1, 9]], np.int32)
    np.testing.assert_array_equal(cambi.without_specks(plane), [[1, 1, 2, 9], [1, 1, 1, 9], [3, 1, 1, 9]])


def test_visible_levels() -> None:
    """Of limited range in 10 bits; a contrast of more levels is visible in brighter samples too."""
    darkest, limits = cambi.visible_levels(OF_MODELS)
    assert 64 < darkest < 100
    assert list(limits) == sorted(limits)
    assert cambi.visible_levels(CambiOptions(eotf="pq")) != cambi.visible_levels(CambiOptions())
    assert cambi.visible_levels(CambiOptions(tvi_threshold=1.0))[1][0] == 0 or limits[0] > 64


def test_windows() -> None:
    assert cambi.window_side(3840, 2160, CambiOptions()) == 65
    assert cambi.window_side(1920, 1080, CambiOptions()) == 33
    assert cambi.window_side(1920, 1080, OF_MODELS) == 17
    with pytest.raises(OptionError, match="window_size=127 is a window of 127 for 3840x2160"):
        cambi.window_side(3840, 2160, CambiOptions(window_size=127))


def test_too_small() -> None:
    with pytest.raises(FrameError, match="a width or a height of 216 at least, got 215x200"):
        cambi.cambi(np.zeros((200, 215), np.uint8), 8)
