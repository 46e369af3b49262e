"""The weights of adm's bands: how well the eye sees contrast of a scale and a direction from a distance.

They have the types of libvmaf's `integer_adm.c` and `barten_csf_tools.h`: doubles, rounded to float32 if C stores a float.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..errors import OptionError

NORM_VIEW_DIST = 3.0
REF_DISPLAY_HEIGHT = 1080

WATSON, BARTEN, BLEND, BLEND_MAE = range(4)
"""The values of adm_csf_mode."""

_LUMINANCE = 100.0  # of the display, in cd/m2


class Viewing(NamedTuple):
    """The options of adm that say how the picture is seen; the names are libvmaf's, without `adm_`."""

    norm_view_dist: float = NORM_VIEW_DIST
    """Distance in heights of the display."""
    ref_display_height: int = REF_DISPLAY_HEIGHT
    """In samples."""
    csf_mode: int = WATSON
    csf_scale: float = 1.0
    """Times the weights of the horizontal and vertical bands; for BARTEN alone."""
    csf_diag_scale: float = 1.0
    """Times the weight of the diagonal band; for BARTEN alone."""


DEFAULT_VIEWING = Viewing()


class Weights(NamedTuple):
    """The weights of the horizontal, vertical and diagonal bands of a scale."""

    floats: tuple[float, float, float]
    """As float32."""
    integers: tuple[int, int, int]
    """At scale 0 2^21, 2^21 and 2^23 times `floats`, below 2^16; else 2^32 times, below 2^32. Rounded down."""


def band_weights(scale: int, viewing: Viewing) -> Weights:
    """Return the weights of a scale, 0 to 3.

    Raises OptionError if the display is seen from nearer than 3 heights of 1080 samples, because the integers of scale 0 would
    exceed 16 bits, and if a blend has no table for this distance and height.
    """
    default = NORM_VIEW_DIST * REF_DISPLAY_HEIGHT
    seen = viewing.norm_view_dist * viewing.ref_display_height
    if seen < default:
        raise OptionError(
            f"adm_norm_view_dist times adm_ref_display_height must be {default:g} at least, got {seen:g}; raise either"
        )
    edge, diagonal = _WEIGHTS[viewing.csf_mode](scale, viewing)
    floats = (edge, edge, diagonal)
    if scale:
        return Weights(floats, _fixed(floats, (32, 32, 32), 32))
    if viewing.csf_mode == WATSON and abs(seen - default) < 1e-8:
        return Weights(floats, (36453, 36453, 49417))  # libvmaf's own; the formula gives 36451 and 49414
    return Weights(floats, _fixed(floats, (21, 21, 23), 16))


def _fixed(floats: tuple[float, float, float], points: tuple[int, int, int], bits: int) -> tuple[int, int, int]:
    first, second, third = (int(value * 2.0**point) % (1 << bits) for value, point in zip(floats, points, strict=True))
    return first, second, third


def _single(value: float) -> float:
    return float(np.float32(value))


# A. B. Watson et al., "Visibility of wavelet quantization noise", IEEE TIP 1997: table IV for luma, table V by scale. The bands
# are (horizontal and vertical, diagonal).
_WATSON_A, _WATSON_K, _WATSON_F0 = (_single(value) for value in (0.495, 0.466, 0.401))
_WATSON_G = (1.0, _single(0.534))
_WATSON_AMPLITUDES = ((0.67234, 0.72709), (0.41317, 0.49428), (0.22727, 0.28688), (0.11792, 0.15214))


def _resolution(viewing: Viewing) -> float:
    return _single(viewing.norm_view_dist * viewing.ref_display_height * math.pi / 180.0)  # samples a degree


def _watson(scale: int, viewing: Viewing) -> tuple[float, float]:
    def weight(band: int) -> float:
        decades = np.float32(math.log10(2.0 ** (scale + 1) * _WATSON_F0 * _WATSON_G[band] / _resolution(viewing)))
        exponent = float(np.float32(_WATSON_K) * decades * decades)  # both products are float32
        step = np.float32(2.0 * _WATSON_A * 10.0**exponent / _single(_WATSON_AMPLITUDES[scale][band]))
        return float(np.float32(1.0) / step)

    return weight(0), weight(1)


# R. Mantiuk et al., "HDR-VDP-2", ACM TOG 2011: the parameters at 20 and 150 cd/m2, between which the display's luminance lies.
_BARTEN_LUMINANCES = (20.0, 150.0)
_BARTEN_PARAMETERS = ((0.334278, 3.79542, 1.07327, 6.4635), (0.394533, 2.7755, 1.16577, 7.45665))
_BARTEN_RODS_CONES = (30.162, 4.0627, 1.6596, 0.2712)
_BARTEN_MTF = (
    (0.424838596301290, 0.028),
    (0.572435103936480, 0.37),
    (0.000167576239164937, 37.0),
    (0.00255872352306433, 360.0),
)


def _barten(scale: int, viewing: Viewing) -> tuple[float, float]:
    single = np.float32
    frequency = single(_resolution(viewing) / 2.0 ** (scale + 1))
    left, right = (single(math.log10(luminance)) for luminance in _BARTEN_LUMINANCES)
    place = single(math.log10(_LUMINANCE))
    lows, highs = (tuple(single(value) for value in row) for row in _BARTEN_PARAMETERS)
    p0, p1, p2, p3 = (low + (high - low) / (right - left) * (place - left) for low, high in zip(lows, highs, strict=True))

    slope = single(1.0 + float(p0 * frequency) ** float(p1))
    fall = single(1.0 / (1 - math.exp(-(float(frequency / single(7)) ** 2))) ** float(p2))
    neural = single(float(p3) / math.sqrt(float(slope * fall)))

    optics = single(0)
    for amplitude, decay in _BARTEN_MTF:
        optics = single(float(optics) + _single(amplitude) * math.exp(float(-single(decay) * frequency)))

    sensitivity, drop, transition, low_slope = (single(value) for value in _BARTEN_RODS_CONES)
    adapted = single(float(sensitivity) * (float(drop / single(_LUMINANCE)) ** float(transition) + 1) ** -float(low_slope))
    product = float(neural * optics * adapted)
    return _single(product * viewing.csf_scale), _single(product * viewing.csf_diag_scale)


# libvmaf's blends of both, by distance times height, each scale's (horizontal and vertical, diagonal). Twice the product is
# one scale up.
_BLENDS: dict[int, dict[tuple[int, float], tuple[tuple[float, ...], tuple[float, ...]]]] = {
    BLEND: {
        (1080, 3.0): ((0.01183, 0.025026, 0.04295, 0.058621), (0.004302, 0.011778, 0.023918, 0.035901)),
        (1080, 5.0): ((0.004212, 0.014809, 0.029642, 0.047464), (0.000984, 0.005852, 0.0146, 0.027574)),
        (2160, 1.5): ((0.01183, 0.025026, 0.04295, 0.058621), (0.004302, 0.011778, 0.023918, 0.035901)),
        (2160, 3.0): ((0.00226, 0.01183, 0.025026, 0.04295), (0.000479, 0.004302, 0.011778, 0.023918)),
        (2160, 5.0): ((0.000092, 0.004212, 0.014809, 0.029642), (0.000050, 0.000984, 0.005852, 0.0146)),
        (720, 5.0): ((0.010144, 0.022561, 0.040309, 0.05672), (0.003463, 0.010282, 0.021839, 0.034641)),
    },
    BLEND_MAE: {
        (1080, 3.0): ((0.011249, 0.022606, 0.035930, 0.045673), (0.004097, 0.010921, 0.021430, 0.031313)),
        (1080, 5.0): ((0.004052, 0.013939, 0.026298, 0.038833), (0.000927, 0.005544, 0.013415, 0.024515)),
        (2160, 1.5): ((0.011249, 0.022606, 0.035930, 0.045673), (0.004097, 0.010921, 0.021430, 0.031313)),
        (2160, 3.0): ((0.002166, 0.011249, 0.022606, 0.035930), (0.000447, 0.004097, 0.010921, 0.021430)),
        (2160, 5.0): ((0.000077, 0.004052, 0.013939, 0.026298), (0.000045, 0.000927, 0.005544, 0.013415)),
        (720, 5.0): ((0.009689, 0.020577, 0.034162, 0.044523), (0.003302, 0.009579, 0.019661, 0.030318)),
    },
}


def _blend(scale: int, viewing: Viewing) -> tuple[float, float]:
    tables = _BLENDS[viewing.csf_mode]
    table = tables.get((viewing.ref_display_height, viewing.norm_view_dist))
    if table is None:
        pairs = ", ".join(f"{height}:{distance:g}" for height, distance in tables)
        raise OptionError(
            f"adm_csf_mode={viewing.csf_mode} has weights for adm_ref_display_height:adm_norm_view_dist of {pairs}, got"
            f" {viewing.ref_display_height}:{viewing.norm_view_dist:g}; choose one of them, or adm_csf_mode=0"
        )
    return _single(table[0][scale]), _single(table[1][scale])


_WEIGHTS = {WATSON: _watson, BARTEN: _barten, BLEND: _blend, BLEND_MAE: _blend}
