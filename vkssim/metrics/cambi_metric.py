"""cambi: how visible the banding of the distorted clip is, in integers like libvmaf's extractor of this name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict

import numpy as np

from ..types import DoublePlane, FrameFormat, Samples
from ..utils.values import Value, values_of
from .base import CpuScorer
from .cambi import EOTFS, SPEEDUPS, CambiOptions, cambi, encoded_size, window_side
from .options import OptionValue
from .vmaf_model import output_name

_DEFAULTS = CambiOptions()


class CambiMetricOptions(TypedDict, total=False):
    """The options of cambi."""

    cambi_high_res_speedup: Annotated[
        int,
        Value(
            default=_DEFAULTS.high_res_speedup,
            help="begin with half of the size from this height on, of 16:9; 0 never does",
            choices=list(SPEEDUPS),
        ),
    ]
    cambi_max_val: Annotated[float, Value(default=_DEFAULTS.max_val, help="the largest score", bounds=(0.0, 1000.0))]
    cambi_vis_lum_threshold: Annotated[
        float,
        Value(
            default=_DEFAULTS.vis_lum_threshold,
            help="the luminance in cd/m2 below which no banding is seen",
            bounds=(0.0, 299.0),
        ),
    ]
    cambi_topk: Annotated[
        float,
        Value(default=_DEFAULTS.topk, help="the share of places with the strongest contrasts that count", bounds=(0.0001, 1.0)),
    ]
    cambi_eotf: Annotated[
        str, Value(default=_DEFAULTS.eotf, help="the transfer function that gives luminances", choices=list(EOTFS))
    ]
    tvi_threshold: Annotated[
        float, Value(default=_DEFAULTS.tvi_threshold, help="the relative luminance of a visible step", bounds=(0.0001, 1.0))
    ]
    max_log_contrast: Annotated[
        int,
        Value(default=_DEFAULTS.max_log_contrast, help="count steps of up to 2 to this power, in 10 bits", choices=range(6)),
    ]
    window_size: Annotated[
        int, Value(default=_DEFAULTS.window_size, help="the window's side at 3840x2160", choices=range(15, 128))
    ]
    enc_width: Annotated[
        int, Value(default=_DEFAULTS.enc_width, help="the encoding's width, if it was scaled up later", choices=range(7681))
    ]
    enc_height: Annotated[int, Value(default=_DEFAULTS.enc_height, help="the encoding's height", choices=range(7681))]
    enc_bitdepth: Annotated[
        int, Value(default=_DEFAULTS.enc_bitdepth, help="the encoding's bit depth; 0 for that of the frames", choices=range(17))
    ]


class CambiScorer(CpuScorer):
    """cambi for frames of one format, as in libvmaf's cambi.c.

    The reference does not matter, and a larger score is a worse frame. Raises FrameError for samples that are no integers of 8
    to 16 bits and if neither side has 216 samples, and OptionError for a window that is too large.
    """

    name = "cambi"
    options = values_of(CambiMetricOptions)

    def __init__(self, frame: FrameFormat, options: Mapping[str, OptionValue]) -> None:
        super().__init__(frame, options)
        self._settings = CambiOptions(**{name.removeprefix("cambi_"): value for name, value in self._options.items()})
        window_side(*encoded_size(frame.width, frame.height, self._settings), self._settings)
        self.names = (output_name(self.name, self._options),)

    def reference_means(self, reference: Samples, distorted: Samples, before: object = None) -> DoublePlane:
        """Return the (1,) score of a frame."""
        return np.array([cambi(distorted, self._bits, self._settings)])
