"""Words that many messages share: counts with their nouns, and what a mistyped name was meant to be."""

from __future__ import annotations

import pytest

from vkssim.metrics import FEATURES
from vkssim.utils.wording import did_you_mean


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ssim", "float_ssim"),
        ("SSIM", "float_ssim"),
        ("ms_ssim", "float_ms_ssim"),
        ("ms-ssim", "float_ms_ssim"),
        ("msssim", "float_ms_ssim"),
        ("flaot_ssim", "float_ssim"),
        ("psnr", "float_psnr"),
        *((other, None) for other in ("ciede", "lpips", "im", "s", "")),
    ],
)
def test_a_known_name_is_suggested_if_one_is_similar(name: str, meant: str | None) -> None:
    assert did_you_mean(name, FEATURES) == (f" (did you mean {meant}?)" if meant else "")
