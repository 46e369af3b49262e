"""VMAF of the twins of vif, adm and motion: the scores that libvmaf gives, by three models."""

from __future__ import annotations

import functools
from collections import defaultdict

import numpy as np
import pytest

from vkssim.metrics import adm, motion, vif
from vkssim.metrics.vmaf_model import predict, read_model

from ..support.vmaf_golden import case_scores, vmaf_clips

MODELS = {"vmaf_v0.6.1": "vmaf", "vmaf_v0.6.1neg": "vmaf_neg", "vmaf_4k_v0.6.1": "vmaf_4k"}


@functools.cache
def _features(case: str, limit: float) -> dict[str, list[float]]:
    """Features of a clip by the twins; the models of one limit of the gain have them in common."""
    references, distorted, bits = vmaf_clips(case)
    height, width = references.shape[1:]
    features: dict[str, list[float]] = defaultdict(list)
    for pair in zip(references, distorted, strict=True):
        for scale, score in enumerate(vif.vif_scores(vif.vif_sums(*pair, bits, gain_limit=limit))):
            features[f"integer_vif_scale{scale}"].append(float(score))
        terms = adm.adm_terms(*pair, bits, gain_limit=limit)
        features["integer_adm2"].append(float(adm.adm_scores(terms, width * height).adm2))
    features["integer_motion2"] = motion.motion_scores(motion.clip_sums(references, bits), width, height).motion2.tolist()
    return dict(features)


@pytest.mark.parametrize("case", ["moving_texture", "odd", "sharper", "ten_bit", "sixteen_bit", "one_frame"])
def test_scores_of_clips(case: str) -> None:
    """From the pictures to the score, without any number of libvmaf's on the way."""
    for version, name in MODELS.items():
        model = read_model(version)
        limit = next(
            (
                feature.options["vif_enhn_gain_limit"]
                for feature in model.features
                if feature.extractor == "vif" and feature.options
            ),
            100,
        )
        features = _features(case, limit)
        columns = np.array([features[feature.output] for feature in model.features]).T
        np.testing.assert_allclose(predict(model, columns), case_scores(case, name)[:, 0], rtol=0, atol=1e-9, err_msg=version)
