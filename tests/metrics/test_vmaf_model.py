"""The models of VMAF: libvmaf's scores from libvmaf's features, names of outputs, and files that are no model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim.errors import OptionError
from vkssim.metrics import vmaf_model
from vkssim.metrics.vmaf_model import model_folder, output_name, parse_model, predict, read_model

from ..support.golden import CLIPS, clip_report
from ..support.vmaf_golden import CASES, scores_of

OUTPUTS = {"vmaf": "vmaf_v0.6.1", "vmaf_neg": "vmaf_v0.6.1neg", "vmaf_4k": "vmaf_4k_v0.6.1", "vmaf_phone": "vmaf_v0.6.1"}


@pytest.mark.parametrize("output", OUTPUTS)
def test_libvmafs_scores(output: str) -> None:
    model = read_model(OUTPUTS[output])
    clips = [case["libvmaf"]["frames"] for case in CASES.values()] + [clip_report(clip, "vmaf")["frames"] for clip in CLIPS]
    frames = [frame for clip in clips for frame in clip if output in frame]
    features = scores_of(frames, *(feature.name for feature in model.features))
    scores = predict(model, features, transform=output == "vmaf_phone")
    np.testing.assert_allclose(scores, scores_of(frames, output)[:, 0], rtol=0, atol=1e-10)


OUTPUTS_OF_VERSION_1 = {
    "v1_1080p": "vmaf_v1.0.16_3d0h",
    "v1_phone": "vmaf_v1.0.16_5d0h",
    "v1_4k": "vmaf_v1.0.16_1d5h_2160",
    "v1_hfr": "vmaf_v1.0.16_hfr_3d0h",
}


@pytest.mark.parametrize("output", OUTPUTS_OF_VERSION_1)
def test_libvmafs_scores_of_version_1(output: str) -> None:
    """The phone's model finds no score of chroma in clips of this size, and puts one of the luma in its place."""
    model = read_model(OUTPUTS_OF_VERSION_1[output])
    frames = [frame for clip in CLIPS for frame in clip_report(clip, "vmaf_v1")["frames"]]
    features = scores_of(frames, *(feature.name for feature in model.features))
    np.testing.assert_allclose(predict(model, features), scores_of(frames, output)[:, 0], rtol=0, atol=1e-10)


def test_options_of_features() -> None:
    features = read_model("vmaf_v0.6.1neg").features
    assert [feature.extractor for feature in features] == ["adm", "motion", "vif", "vif", "vif", "vif"]
    assert features[0].options == {"adm_enhn_gain_limit": 1.0}
    assert [feature.name for feature in features[:3]] == ["integer_adm2_egl_1", "integer_motion2", "integer_vif_scale0_egl_1"]


def test_names_of_outputs() -> None:
    """Suffixes are sorted by the names of the options, defaults have none, and a Boolean option has no value."""
    assert output_name("integer_vif_scale0", {"vif_enhn_gain_limit": 100.0}) == "integer_vif_scale0"
    assert (
        output_name("integer_motion2", {"motion_force_zero": True, "motion_blend_factor": 0.5})
        == "integer_motion2_mbf_0.5_force_0"
    )
    assert output_name("integer_adm3", {"adm_ref_display_height": 2160, "adm_csf_mode": 2}) == "integer_adm3_csf_2_rdh_2160"


def _fields(**changed: Any) -> dict[str, Any]:
    fields = {
        "model_type": "LIBSVMNUSVR",
        "norm_type": "none",
        "feature_names": ["VMAF_integer_feature_motion2_score"],
        "model": "svm_type nu_svr\nkernel_type rbf\ngamma 1\ntotal_sv 1\nrho -5\nSV\n2 1:3\n",
    }
    return {**fields, **changed}


def _parse(**changed: Any) -> vmaf_model.VmafModel:
    return parse_model(json.dumps({"model_dict": _fields(**changed)}).encode(), "mine")


def test_one_vector() -> None:
    features = np.array([[3.0], [1e9], [4.0]])
    np.testing.assert_allclose(predict(_parse(), features), [7, 5, 5 + 2 / np.e])
    np.testing.assert_allclose(predict(_parse(score_clip=[0, 5.5]), features), [5.5, 5, 5.5])
    scaled = _parse(norm_type="linear_rescale", slopes=[2, 0.5], intercepts=[1, 1])
    np.testing.assert_allclose(predict(scaled, np.array([[4.0]])), [3])


def test_transform_and_knots() -> None:
    features = np.array([[3.0], [1e9]])  # 7 and 5
    rule = {"p1": 2.0, "knots": [[0, 0], [12, 6], [13, 6], [14, 16]], "out_lte_in": "true"}
    np.testing.assert_allclose(predict(_parse(score_transform=rule), features), [7, 5])
    np.testing.assert_allclose(predict(_parse(score_transform=rule), features, transform=True), [7, 5])
    rule = {"knots": [[0, 0], [6, 3], [6.5, 3]], "enabled": True}
    np.testing.assert_allclose(predict(_parse(score_transform=rule), features), [3, 2.5])
    rule = {"knots": [[6, 3], [6.5, 4]], "enabled": True}
    np.testing.assert_allclose(predict(_parse(score_transform=rule), features), [5, 1])
    np.testing.assert_allclose(predict(_parse(), features, transform=True), [7, 5])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_type": "BOOTSTRAP_LIBSVMNUSVR"}, "only LIBSVMNUSVR"),
        ({"norm_type": "clip_0to1"}, "norm_type is clip_0to1"),
        ({"feature_names": ["VMAF_feature_ansnr_score"]}, "VMAF_feature_ansnr_score"),
        ({"chroma_correction_parameter": 120}, "one feature each of speed_chroma and adm3"),
        ({"feature_opts_dicts": [{"motion_colour": 1}]}, "no option motion_colour"),
        ({"feature_opts_dicts": [{"vif_enhn_gain_limit": 1}]}, "motion has no option vif_enhn_gain_limit"),
        ({"feature_opts_dicts": [{}, {}]}, "not a VMAF model"),
        ({"model": "svm_type c_svc\nkernel_type rbf\nSV\n"}, "c_svc"),
        ({"model": "svm_type nu_svr\nkernel_type rbf\ngamma 1\ntotal_sv 2\nrho 0\nSV\n2 1:3\n"}, "1 support vectors of 2"),
        ({"model": "svm_type nu_svr\nkernel_type rbf\ngamma 1\ntotal_sv 1\nrho 0\nSV\n2 2:3\n"}, "entry 2"),
        ({"score_clip": [0, "x"]}, "not a VMAF model"),
        ({"score_transform": {"knots": [[1, 0], [0, 1]]}}, "do not rise"),
    ],
)
def test_foreign_models(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message) as error:
        _parse(**changed)
    assert "path to a JSON model" in str(error.value)
    assert "pip install ffmpeg-quality-metrics" in str(error.value)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"model_dict": 3}', b"\xff", b"[" * 100_000])
def test_files_that_are_no_model(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(text)
    with pytest.raises(OptionError, match="mine is not a VMAF model"):
        read_model(str(path))


def test_models_by_path_and_by_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model_folder()
    assert folder is not None
    assert read_model(str(folder / "vmaf_v0.6.1.json")).features == read_model().features
    with pytest.raises(OptionError, match=r"no model vmaf_v9; .* has vmaf_4k_v0.6.1, .*path to a JSON model"):
        read_model("vmaf_v9")
    with pytest.raises(OptionError, match="cannot read the model"):
        read_model(str(tmp_path / "none.json"))
    monkeypatch.setattr(vmaf_model, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match=r"not installed.*path to a JSON model.*pip install"):
        read_model()
