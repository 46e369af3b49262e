"""Files of ours in the hands of packages that read libvmaf's: the same numbers come out as of libvmaf's own file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from easyvmaf import results as easyvmaf
from ffmpeg_quality_metrics import FfmpegQualityMetrics

from ..support.commands import succeed
from ..support.golden import FIXTURES, clip_paths, clip_report

pytestmark = pytest.mark.usefixtures("shared_device")

CLIP = "bbb_576x324"
FRAMES = 4
NAMES = ("float_ms_ssim", "float_ssim")
CLOSE = 5e-5


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Scores of the first frames of a bundled clip, in each form."""
    folder = tmp_path_factory.mktemp("scores")
    reference, distorted = map(str, clip_paths(CLIP))
    found = {form: folder / f"scores.{form}" for form in ("json", "xml", "csv")}
    outputs = [word for path in found.values() for word in ("-o", str(path))]
    succeed("score", "-r", reference, "-d", distorted, "--frame_cnt", str(FRAMES), "-q", *outputs)
    return found


def golden(name: str, key: str = "libvmaf") -> list[float]:
    return [frame["metrics"][name] for frame in clip_report(CLIP, key)["frames"][:FRAMES]]


@pytest.mark.parametrize("form", ["json", "xml", "csv"])
def test_easyvmaf_reads_scores_and_frames(files: dict[str, Path], form: str) -> None:
    means = easyvmaf.read_scores(str(files[form]), form, NAMES)
    assert list(means) == list(NAMES)
    frames = easyvmaf.read_frames(str(files[form]), form)
    assert [number for number, _ in frames] == list(range(FRAMES))
    for name in NAMES:
        assert means[name] == pytest.approx(sum(golden(name)) / FRAMES, abs=CLOSE)
        assert [metrics[name] for _, metrics in frames] == pytest.approx(golden(name), abs=CLOSE)


@pytest.mark.parametrize("form", ["json", "xml", "csv"])
def test_easyvmaf_cuts_frames_out(files: dict[str, Path], tmp_path: Path, form: str) -> None:
    cut = tmp_path / f"cut.{form}"
    cut.write_bytes(files[form].read_bytes())
    easyvmaf.trim_log(str(cut), form, 1, 2, 10)
    frames = easyvmaf.read_frames(str(cut), form)
    assert [number for number, _ in frames] == [11, 12]
    assert [metrics["float_ssim"] for _, metrics in frames] == pytest.approx(golden("float_ssim")[1:3], abs=CLOSE)


def test_easyvmaf_pools_as_we_do(files: dict[str, Path], tmp_path: Path) -> None:
    """It pools anew what it cuts: all frames, here. Both round to six decimals."""
    whole = tmp_path / "whole.json"
    whole.write_bytes(files["json"].read_bytes())
    easyvmaf.trim_log(str(whole), "json", 0, FRAMES, 0)
    ours, theirs = (json.loads(path.read_text())["pooled_metrics"] for path in (files["json"], whole))
    for name in NAMES:
        assert {key: ours[name][key] for key in theirs[name]} == pytest.approx(theirs[name], abs=1.1e-6)


def statistics(path: Path) -> dict[str, Any]:
    """Return the scores that ffmpeg-quality-metrics reads from a JSON log, without running FFmpeg."""
    metrics = FfmpegQualityMetrics.__new__(FfmpegQualityMetrics)
    metrics.data = {"vmaf": []}
    metrics.temp_files = {"libvmaf": str(path)}
    metrics.global_stats = {}
    metrics._read_vmaf_temp_file()
    found: dict[str, Any] = metrics.get_global_stats()["vmaf"]
    return found


def test_ffmpeg_quality_metrics_reads_the_json(tmp_path: Path) -> None:
    """The statistics of ours are those of libvmaf's file, to the decimals that it rounds to."""
    reference, distorted = map(str, clip_paths(CLIP))
    path = tmp_path / "scores.json"
    succeed("score", "-r", reference, "-d", distorted, "-q", "-o", str(path))
    ours, theirs = statistics(path), statistics(FIXTURES / f"{CLIP}.libvmaf.json")
    for name in NAMES:
        assert ours[name] == pytest.approx(theirs[name], abs=1.01e-3)
        assert ours[name]["average"] == round(clip_report(CLIP)["pooled_metrics"][name]["mean"], 3)


PARTS = ("l", "c", "s")
VMAF_SSIM = {"ssim": "float_ssim", **{f"ssim_{part}": f"float_ssim_{part}" for part in PARTS}}
VMAF_MS_SSIM = {
    "ms_ssim": "float_ms_ssim",
    **{f"ms_ssim_{part}_scale{scale}": f"float_ms_ssim_{part}_scale{scale}" for part in PARTS for scale in range(5)},
}
VMAF_PSNR = {"psnr": "float_psnr"}


def features_of_vmaf(path: Path, attributes: dict[str, str]) -> dict[str, list[float]]:
    """Read the scores that VMAF's Python library reads, which is not on PyPI.

    They are those of `VmafexecFeatureExtractorMixin` in python/vmaf/core/feature_extractor.py of Netflix/vmaf at 09b4baa: the
    attributes of `frames/frame` in XML, by name. It takes a name that goes on after an underscore if there is no other.
    """
    found: dict[str, list[float]] = {name: [] for name in attributes}
    for frame in ElementTree.parse(path).getroot().findall("frames/frame"):
        for name, attribute in attributes.items():
            longer = [other for other in frame.attrib if other.startswith(f"{attribute}_")]
            found[name].append(float(frame.attrib[attribute if attribute in frame.attrib else longer[0]]))
    return found


@pytest.mark.parametrize(
    ("attributes", "feature", "key"),
    [
        (VMAF_SSIM, "float_ssim=enable_lcs=true", "libvmaf"),
        (VMAF_MS_SSIM, "float_ms_ssim=enable_lcs=true", "libvmaf"),
        (VMAF_PSNR, "float_psnr", "psnr"),
    ],
    ids=["ssim", "ms_ssim", "psnr"],
)
def test_vmafs_python_library_reads_the_xml(tmp_path: Path, attributes: dict[str, str], feature: str, key: str) -> None:
    """It asks for luminance, contrast and structure as well, and for one metric in each file."""
    reference, distorted = map(str, clip_paths(CLIP))
    path = tmp_path / "scores.xml"
    words = ["score", "-r", reference, "-d", distorted, "--frame_cnt", str(FRAMES), "-q", "--feature", feature]
    succeed(*words, "-o", str(path))
    scores = features_of_vmaf(path, attributes)
    for name, attribute in attributes.items():
        assert scores[name] == pytest.approx(golden(attribute, key), abs=CLOSE)
