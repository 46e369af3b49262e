"""VMAF's models of version 1, cambi and speed_chroma as metrics: libvmaf's digits, chroma, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkssim
from vkssim import Scorer, Selection, score_files
from vkssim.errors import FrameError, InputError, OptionError
from vkssim.frames.options import PictureOptions
from vkssim.metrics.plane_metrics import FrameMetrics
from vkssim.types import FrameFormat

from ..frames.encoding import encode_colours
from ..support.golden import CLIPS, clip_paths, clip_planes, clip_report
from ..support.vmaf_golden import scores_of

pytestmark = pytest.mark.usefixtures("shared_device")

FEATURES = {
    "v1_1080p": "vmaf=model=vmaf_v1.0.16_3d0h:name=v1_1080p",
    "v1_phone": "vmaf=model=vmaf_v1.0.16_5d0h:name=v1_phone",
    "v1_4k": "vmaf=model=vmaf_v1.0.16_1d5h_2160:name=v1_4k",
    "cambi_hrs_1080_cmxv_17_vlt_0.06": "cambi=cambi_high_res_speedup=1080:cambi_max_val=17:cambi_vis_lum_threshold=0.06",
    "speed_chroma_uv_mxv_45_nnf_0.1_snn_0.19_wvm_5": "speed_chroma=speed_max_val=45:speed_nn_floor=0.1:speed_sigma_nn=0.19"
    ":speed_weight_var_mode=5",
}
V1 = "vmaf=model=vmaf_v1.0.16_3d0h"
FRAME = FrameFormat.of_bits(320, 240, 8)


@pytest.mark.parametrize(
    ("clip", "count", "backend"),
    [(CLIPS[0], 2, "cpu"), (CLIPS[1], 2, "cpu"), (CLIPS[0], 6, "vulkan"), (CLIPS[1], 4, "vulkan")],
)
def test_clips(clip: str, count: int, backend: str) -> None:
    report = score_files(*clip_paths(clip), features=[*FEATURES.values()], backend=backend, selection=Selection(count=count))
    assert [name for name in report.names if "_u_" not in name and "_v_" not in name] == list(FEATURES)
    scored = [dict(frame.metrics) for frame in report.frames[:-1]]  # the last one has another frame after it in the whole clip
    expected = scores_of(clip_report(clip, "vmaf_v1")["frames"][: len(scored)], *FEATURES)
    np.testing.assert_allclose(scores_of(scored, *FEATURES), expected, rtol=0, atol=1e-9 if backend == "cpu" else 1e-7)


@pytest.mark.parametrize("backend", ["cpu", "vulkan"])
def test_planes_of_arrays(backend: str) -> None:
    """A frame has its chroma, although the luma alone is scored."""
    clips = [clip_planes(CLIPS[0], 1, plane) for plane in range(3)]
    references, distorted = ([*zip(*(planes[side] for planes in clips), strict=True)] for side in range(2))
    with Scorer(576, 324, bits=8, features=[*FEATURES.values()][3:], backend=backend) as scorer:
        (scores,) = scorer.score(zip(references, distorted, strict=True))
        with pytest.raises(FrameError, match=r"is one plane; .* need \(Y, Cb, Cr\)"):
            list(scorer.score([(references[0][0], distorted[0][0])]))
    names = list(FEATURES)[3:]
    expected = [clip_report(CLIPS[0], "vmaf_v1")["frames"][0][name] for name in names]
    np.testing.assert_allclose([scores.metrics[name] for name in names], expected, rtol=0, atol=1e-8)


def test_refusals() -> None:
    def refuse(match: str, features: str, **options: Any) -> None:
        with pytest.raises(OptionError, match=match):
            score_files(*clip_paths(CLIPS[1]), features=features, **options)

    refuse("vmaf is a metric of the luma", V1, planes="yuv")


@pytest.mark.parametrize(
    ("width", "height", "model"),
    [(1920, 1080, "3d0h"), (2560, 1440, "3d0h"), (2562, 1440, "1d5h_2160"), (1080, 1920, "3d0h"), (1442, 1600, "1d5h_2160")],
)
def test_the_model_that_suits_the_size(width: int, height: int, model: str) -> None:
    for name, prefix in (("v1", ""), ("v1_hfr", "hfr_")):
        (metric,) = FrameMetrics(f"vmaf=model={name}", [FrameFormat.of_bits(width, height, 8)]).planes[0].metrics
        assert metric.settings["model"] == f"vmaf_v1.0.16_{prefix}{model}"
        assert metric.automatic == ("model",)


@pytest.mark.parametrize(("rate", "prefix"), [("25:1", ""), ("60000:1001", "hfr_")])
def test_the_model_that_suits_the_frame_rate(tmp_path: Path, rate: str, prefix: str) -> None:
    frame = b"FRAME\n" + np.random.default_rng(0).bytes(240 * 216 * 3 // 2)
    path = tmp_path / "clip.y4m"
    path.write_bytes(f"YUV4MPEG2 W240 H216 F{rate} C420jpeg\n".encode() + 3 * frame)
    reports = [score_files(path, path, features=f"vmaf=model={m}") for m in ("v1", f"vmaf_v1.0.16_{prefix}3d0h")]
    (first, second) = (report.scoring.features[0].options["model"] for report in reports if report.scoring is not None)
    assert first == second
    assert reports[0].frames == reports[1].frames


def test_eight_bits_at_ten() -> None:
    """The report advises it, the samples are multiplied, and dither is no longer removed."""
    pair, count = clip_paths(CLIPS[0]), Selection(count=2)
    eight, ten = (
        score_files(*pair, features=V1, selection=count, pictures=p) for p in (PictureOptions(), PictureOptions(min_bits=10))
    )
    assert (eight.bits, ten.bits) == (8, 10)
    assert [note for note in eight.notes if "`--bits 10`" in note and "vmaf_v1.0.16_3d0h" in note] == eight.notes
    assert not any("--bits" in note for note in ten.notes)
    luma, cb, cr = ([plane.astype(np.uint16) << 2 for plane in clip_planes(CLIPS[0], 2, n)[1]] for n in range(3))
    references = [[plane.astype(np.uint16) << 2 for plane in clip_planes(CLIPS[0], 2, n)[0]] for n in range(3)]
    with Scorer(576, 324, bits=10, features=V1) as scorer:
        frames = scorer.score(zip(zip(*references, strict=True), zip(luma, cb, cr, strict=True), strict=True))
        assert [frame.metrics for frame in frames] == [frame.metrics for frame in ten.frames]
    assert eight.frames[0].metrics != ten.frames[0].metrics


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [({}, 69.272780), ({"enc_bitdepth": 8}, 69.273698), ({"enc_width": 384, "enc_height": 216, "enc_bitdepth": 8}, 69.275144)],
)
def test_the_encoding_of_a_rung(encoding: dict[str, int], expected: float) -> None:
    """The numbers are libvmaf's, with `cambi.enc_width` and the like after the model (86da14d)."""
    options = "".join(f":{name}={value}" for name, value in encoding.items())
    report = score_files(*clip_paths(CLIPS[1]), features=f"{V1}{options}", selection=Selection(count=2))
    assert report.frames[0].metrics["vmaf"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("model", "size", "pictures", "expected"),
    [
        ("v1", (240, 150), {}, (240, 150, 8)),
        ("v1_hfr", (240, 150), {}, (240, 150, 8)),
        ("v1:enc_bitdepth=10", (240, 150), {}, (240, 150, 10)),
        ("v1:enc_width=320:enc_height=200", (240, 150), {}, (320, 200, 8)),
        ("v1:enc_width=0:enc_height=0:enc_bitdepth=0", (240, 150), {}, (240, 150, 8)),
        ("v1", (240, 150), {"crop": "360x240+0+0"}, (225, 150, 8)),
        ("v1", (240, 150), {"crop_distorted": "216x150+24+0"}, (216, 150, 8)),
        ("v1", (240, 150), {"min_bits": None}, (240, 150, 0)),
        ("v1", (480, 300), {}, (0, 0, 8)),
        ("v1", (192, 120), {}, (0, 0, 8)),
        ("vmaf_v1.0.16_3d0h", (240, 150), {}, (0, 0, 0)),
    ],
)
def test_the_encoding_of_files(
    tmp_path: Path, model: str, size: tuple[int, int], pictures: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    """The size before scaling, which `cambi` takes from 216 on, and the depth before deepening; given options stay."""
    paths = [tmp_path / "reference.mkv", tmp_path / "rung.mkv"]
    for path, its in zip(paths, ((384, 240), size), strict=True):
        encode_colours(path, its, 1, codec="ffv1")
    asked = PictureOptions(**{"scale": "reference", "min_bits": 10, **pictures})
    report = score_files(*paths, features=f"vmaf=model={model}", backend="cpu", pictures=asked)
    assert report.scoring is not None
    (facts,) = report.scoring.features
    assert tuple(facts.options[name] for name in ("enc_width", "enc_height", "enc_bitdepth")) == expected


def test_the_report_names_the_model() -> None:
    reports = [score_files(*clip_paths(CLIPS[0]), features=f, selection=Selection(count=2)) for f in ("vmaf=model=v1", V1)]
    features = [report.scoring.features[0] for report in reports if report.scoring is not None]
    assert [feature.options["model"] for feature in features] == ["vmaf_v1.0.16_3d0h"] * 2
    assert [feature.automatic for feature in features] == [("model",), ()]
    assert reports[0].frames[0].metrics == reports[1].frames[0].metrics


def test_luma_alone() -> None:
    luma = np.zeros((240, 320), np.uint8)
    with pytest.raises(OptionError, match=r"reads Cb and Cr; vkssim\.Scorer takes frames as"):
        vkssim.vmaf(luma, luma, model="vmaf_v1.0.16_3d0h", backend="cpu")


def test_clips_without_chroma(tmp_path: Path) -> None:
    path = tmp_path / "grey.y4m"
    path.write_bytes(b"YUV4MPEG2 W320 H240 F25:1 Cmono\nFRAME\n" + bytes(320 * 240))
    with pytest.raises(InputError, match="has no chroma to compare, only luma"):
        score_files(path, path, features=V1, backend="cpu")
    with pytest.raises(FrameError, match="speed_chroma reads Cb and Cr, and the pixel format 400 has none"):
        FrameMetrics("speed_chroma", [FRAME], chroma="400")
    with pytest.raises(FrameError, match="chroma of 80x80 at least"):
        FrameMetrics("speed_chroma", [FrameFormat.of_bits(320, 158, 8)])


def test_chroma_of_an_odd_luma() -> None:
    """libvmaf leaves the last sample of chroma out."""
    noise = [np.random.default_rng(n).integers(0, 256, (150, 200), np.uint8) for n in range(2)]
    scores = []
    for luma, planes in (
        (FrameFormat.of_bits(399, 299, 8), noise),
        (FrameFormat.of_bits(398, 298, 8), [n[:-1, :-1] for n in noise]),
    ):
        (scorer,) = FrameMetrics("speed_chroma", [luma]).planes[1].scorers
        scores.append(scorer.reference_means(*planes).tolist())
    assert scores[0] == scores[1]
