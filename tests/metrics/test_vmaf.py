"""vmaf as a metric: libvmaf's scores by every model on both backends, models that share metrics, names and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import vkssim
from vkssim import Scorer, Selection, score_files
from vkssim.backends.vulkan import VulkanBackend
from vkssim.errors import FrameError, OptionError
from vkssim.metrics import make_metric
from vkssim.metrics.plane_metrics import FrameMetrics, plane_formats
from vkssim.metrics.vmaf import feature_of_model
from vkssim.metrics.vmaf_model import model_folder
from vkssim.types import FrameFormat

from ..support.golden import CLIPS, clip_paths, clip_report
from ..support.vmaf_golden import case_scores, scores_of, vmaf_clips

pytestmark = pytest.mark.usefixtures("shared_device")

FRAME = FrameFormat.of_bits(64, 48, 8)
MODELS = {
    "vmaf": "vmaf",
    "vmaf_neg": "vmaf=model=vmaf_v0.6.1neg:name=vmaf_neg",
    "vmaf_4k": "vmaf=model=vmaf_4k_v0.6.1:name=vmaf_4k",
}
PHONE = "vmaf=transform=phone:name=vmaf_phone"
TOLERANCE = 1e-9
"""What the order of additions in double may change of a score up to 100; all inputs of the model have libvmaf's digits."""


@pytest.mark.parametrize("case", ["moving_texture", "odd", "sharper", "ten_bit", "sixteen_bit", "one_frame"])
def test_cases(case: str) -> None:
    """All models in one run. The tests of vif, adm and motion have every digit of all cases, and with them the features."""
    references, distorted, bits = vmaf_clips(case)
    height, width = references.shape[1:]
    with Scorer(width, height, bits=bits, features=list(MODELS.values()), batch=2) as scorer:
        frames = [dict(scores.metrics) for scores in scorer.score(zip(references, distorted, strict=True))]
    np.testing.assert_allclose(scores_of(frames, *MODELS), case_scores(case, *MODELS), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("clip", "backend", "count"), [(CLIPS[0], "vulkan", None), (CLIPS[1], "vulkan", None), (CLIPS[1], "cpu", 3)]
)
def test_clips(clip: str, backend: str, count: int | None) -> None:
    names = (*MODELS, "vmaf_phone")
    features = [*MODELS.values(), PHONE]
    report = score_files(*clip_paths(clip), features=features, backend=backend, selection=Selection(count=count))
    assert report.names == names
    scored = report.frames[: None if count is None else -1]  # the last one has another frame after it in the whole clip
    expected = clip_report(clip, "vmaf")["frames"][: len(scored)]
    found = scores_of([dict(frame.metrics) for frame in scored], *names)
    np.testing.assert_allclose(found, scores_of(expected, *names), rtol=0, atol=TOLERANCE)


def test_arrays() -> None:
    references, distorted, _ = vmaf_clips("moving_texture")
    scores = vkssim.vmaf(references, distorted)
    np.testing.assert_allclose(scores, case_scores("moving_texture", "vmaf")[:, 0], rtol=0, atol=TOLERANCE)
    assert vkssim.vmaf(references[0], distorted[0]) == pytest.approx(np.ravel(scores)[0], abs=1e-9)
    ten_bit, worse, _ = vmaf_clips("ten_bit")
    found = vkssim.vmaf(ten_bit, worse, data_range=1023, model="vmaf_v0.6.1neg")
    np.testing.assert_allclose(found, case_scores("ten_bit", "vmaf_neg")[:, 0], rtol=0, atol=TOLERANCE)


def test_metrics_are_shared() -> None:
    """Two models with one limit of the gain have one adm; what a user asks for is the same as what a model needs."""
    metrics = FrameMetrics([*MODELS.values(), PHONE, "motion", "vif"], [FRAME])
    texts = [scorer.text for scorer in metrics.planes[0].scorers]
    limited = ["vif=vif_enhn_gain_limit=1", "adm=adm_enhn_gain_limit=1"]
    assert sorted(texts) == sorted(["vif", "adm", "motion", *limited])
    assert metrics.names == (*MODELS, "vmaf_phone", *metrics.planes[0].metrics[4].names, *metrics.planes[0].metrics[5].names)
    with VulkanBackend(metrics.planes, batch=1) as backend:
        backend.plan.validate()


def test_beside_similarities() -> None:
    references, distorted, _ = vmaf_clips("odd")
    height, width = references.shape[1:]
    with Scorer(width, height, bits=8, features=["float_ssim=scale=1", "vmaf"]) as scorer:
        both = [dict(scores.metrics) for scores in scorer.score(zip(references, distorted, strict=True))]
    assert [frame["float_ssim"] for frame in both] == np.ravel(vkssim.ssim(references, distorted)).tolist()
    np.testing.assert_allclose(scores_of(both, "vmaf"), case_scores("odd", "vmaf"), rtol=0, atol=TOLERANCE)


def test_names_and_settings() -> None:
    metric = make_metric("vmaf=model=vmaf_v0.6.1neg:name=neg", FRAME)
    assert (metric.names, metric.similarities, metric.limit_db) == (("neg",), (), None)
    encoding = {"enc_width": 0, "enc_height": 0, "enc_bitdepth": 0}
    assert metric.settings == {"model": "vmaf_v0.6.1neg", "transform": "none", "name": "neg", **encoding}
    assert make_metric("vmaf", FRAME).text == "vmaf"


def test_a_model_by_its_path(tmp_path: Path) -> None:
    folder = model_folder()
    assert folder is not None
    path = tmp_path / "own.json"
    path.write_bytes((folder / "vmaf_v0.6.1neg.json").read_bytes())
    assert make_metric(f"vmaf=model={path}", FRAME).scorers[0].text == make_metric(MODELS["vmaf_neg"], FRAME).scorers[0].text


def test_names_that_other_scores_have_inside() -> None:
    """A model reads what was computed, not what another model made of it."""
    references, distorted, _ = vmaf_clips("moving_texture")
    height, width = references.shape[1:]
    neg = "vmaf=model=vmaf_v0.6.1neg"
    features = ["float_psnr", "vmaf=name=integer_motion2", f"{neg}:name=b", f"{neg}:name=float_psnr_y"]
    with Scorer(width, height, bits=8, features=features) as scorer:
        scores = [dict(frame.metrics) for frame in scorer.score(zip(references, distorted, strict=True))]
    expected = case_scores("moving_texture", "vmaf", "vmaf_neg", "vmaf_neg")
    found = scores_of(scores, "integer_motion2", "b", "float_psnr_y")
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


def test_two_models_need_two_names() -> None:
    with pytest.raises(OptionError, match="feature vmaf is asked for twice; its option `name` gives each score a name"):
        FrameMetrics(["vmaf", "vmaf=model=vmaf_v0.6.1neg"], [FRAME])


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ("vmaf=model=vmaf_v9", "there is no model vmaf_v9; ffmpeg-quality-metrics has .*vmaf_v0.6.1"),
        ("vmaf=transform=tv", "transform is 'tv'; it must be none or phone"),
        ("vmaf=name=2", "name is '2'; it must be letters"),
        ("vmaf=size=1", "vmaf has no option 'size'"),
        ("vmaf=model=vmaf_v1.0.16_3d0h:enc_width=1280", "is enc_width and enc_height, got enc_width"),
        ("vmaf=enc_width=1280:enc_height=720", "vmaf_v0.6.1 does not judge banding, and has no enc_width, enc_height"),
    ],
)
def test_what_is_refused(feature: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_metric(feature, FRAME)


def test_two_sets_of_options_of_one_metric_are_refused(tmp_path: Path) -> None:
    folder = model_folder()
    assert folder is not None
    content = json.loads((folder / "vmaf_v0.6.1neg.json").read_text())
    options = content["model_dict"]["feature_opts_dicts"]
    next(given for given in options if "vif_enhn_gain_limit" in given)["vif_enhn_gain_limit"] = 2.0
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps(content))
    with pytest.raises(OptionError, match="model mixed cannot be used: it gives vif two sets of options"):
        make_metric(f"vmaf=model={path}", FRAME)


def test_frames_that_it_cannot_score() -> None:
    with pytest.raises(FrameError, match="adm needs 33x33 at least"):
        make_metric("vmaf", FrameFormat.of_bits(64, 32, 8))
    with pytest.raises(FrameError, match="integers of 8 to 16 bits"):
        make_metric("vmaf", FrameFormat.of_array(64, 64, np.float32, 1.0))
    with pytest.raises(OptionError, match="vmaf is a metric of the luma"):
        FrameMetrics("vmaf", plane_formats(FrameFormat.of_bits(128, 96, 8), "yuv"))


@pytest.mark.parametrize(
    ("model", "feature"),
    [
        ("version=vmaf_v0.6.1", "vmaf=model=vmaf_v0.6.1"),
        ("version=vmaf_v0.6.1neg:name=neg", "vmaf=model=vmaf_v0.6.1neg:name=neg"),
        ("path=model/own.json:enable_transform=true", "vmaf=model=model/own.json:transform=phone"),
        ("version=vmaf_v0.6.1:enable_transform=false", "vmaf=model=vmaf_v0.6.1:transform=none"),
        (
            "path=vmaf_v1.json:cambi.enc_width=1280:cambi.enc_height=720:cambi.enc_bitdepth=8",
            "vmaf=model=vmaf_v1.json:enc_width=1280:enc_height=720:enc_bitdepth=8",
        ),
    ],
)
def test_models_as_libvmaf_names_them(model: str, feature: str) -> None:
    assert feature_of_model(model) == feature


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("name=neg", "names no model; give version=NAME, such as version=vmaf_v0.6.1, or path=FILE"),
        ("version=vmaf_v0.6.1:disable_clip=true", r"disable_clip is not supported; version, .*, cambi\.enc_width, "),
        ("vmaf_v0.6.1", "not of the form option=value"),
        ("version=vmaf_v0.6.1:enable_transform=1", "enable_transform is 1; it must be true or false"),
        ("version=vmaf_v0.6.1:path=own.json", "names two models; give version or path"),
    ],
)
def test_models_that_are_not_understood(model: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        feature_of_model(model)
