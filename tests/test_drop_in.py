"""`vkssim score` in place of libvmaf's tool `vmaf`: its documented command lines, and what becomes of each.

They are those of libvmaf's tools/README.md, libvmaf/README.md, aom_ctc.md, nflx_ctc.md and its usage text, with the command's
name put in.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from vkssim import __version__
from vkssim.metrics import FEATURES

from .support.clips import raw_bytes, write, y4m_bytes
from .support.commands import vkssim, vkssim_process
from .support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

LUMA = clip(3, 180, 320)
DISTORTED = np.roll(LUMA, 1, axis=2)
RAW = "--reference ducks.yuv --distorted ducks_dist.yuv --width 320 --height 180 --pixel_format 420 --bitdepth 8"
Y4M = "--reference ducks.y4m --distorted ducks_dist.y4m"
BOTH = ["float_ms_ssim", "float_ssim"]
KNOWN = ", ".join(sorted(FEATURES))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the clips that the command lines name."""
    for name, luma in (("ducks", LUMA), ("ducks_dist", DISTORTED)):
        write(tmp_path / f"{name}.yuv", raw_bytes(luma))
        write(tmp_path / f"{name}.y4m", y4m_bytes(luma))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_in(path: Path, form: str) -> list[str]:
    """The scores of the first frame of a file of that form."""
    text = path.read_text()
    if form == "json":
        return list(json.loads(text)["frames"][0]["metrics"])
    if form == "xml":
        return list(ElementTree.fromstring(text).find("frames/frame").attrib)[1:]  # type: ignore[union-attr]
    if form == "csv":
        return [name for name in text.splitlines()[0].split(",")[1:] if name]  # the last has none, as in libvmaf's
    return [part.split(":")[0] for part in text.splitlines()[0].split("|")[1:]]


@pytest.mark.parametrize(
    ("line", "output", "form", "names"),
    [
        (f"{RAW} --output output.xml", "output.xml", "xml", BOTH),
        (f"{RAW} --output output", "output", "xml", BOTH),
        (f"{RAW} --output output.log --json", "output.log", "json", BOTH),
        (f"{Y4M} --output output.csv --csv --threads 4", "output.csv", "csv", [*BOTH, "time"]),  # raw files have no times
        (f"{Y4M} --output output.sub --sub --quiet", "output.sub", "sub", BOTH),
        (f"{Y4M} -n --feature float_ssim --feature float_ms_ssim -o s.xml", "s.xml", "xml", BOTH[::-1]),
        (
            f"{Y4M} --no_prediction --feature float_ssim=enable_db=true:clip_db=true -o s.json --json",
            "s.json",
            "json",
            BOTH[1:],
        ),
        (
            f"{Y4M} --feature float_ssim=enable_lcs=true --cpumask 0xffffffff --gpumask 1 -o s.xml",
            "s.xml",
            "xml",
            ["float_ssim", "float_ssim_l", "float_ssim_c", "float_ssim_s"],
        ),
        (f"{Y4M} --model version=vmaf_v0.6.1 -o s.xml", "s.xml", "xml", ["vmaf"]),
        (
            f"{Y4M} -m version=vmaf_v0.6.1 -m version=vmaf_v0.6.1neg:name=vmaf_neg --feature float_ssim --json -o s",
            "s",
            "json",
            ["float_ssim", "vmaf", "vmaf_neg"],
        ),
        ("-r ducks.yuv -d ducks_dist.yuv -w 320 -h 180 -p 420 -b 8 -n -q -o s --csv --subsample 2", "s", "csv", BOTH),
        (f"{Y4M} --frame_cnt 1 --frame_skip_ref 1 --frame_skip_dist 1 -o s.xml", "s.xml", "xml", BOTH),
    ],
)
def test_scored(folder: Path, line: str, output: str, form: str, names: list[str]) -> None:
    result = vkssim("score", *shlex.split(line))
    assert result.exit_code == 0, result.stderr
    assert names_in(folder / output, form) == names


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{RAW} --model version=vmaf_v0.6.1 --feature psnr --output output.xml", "unknown feature 'psnr'"),
        (f"{Y4M} -m path=../model/vmaf_v0.6.1.json", "cannot read the model ../model/vmaf_v0.6.1.json"),
        (f"{Y4M} -m version=vmaf_v0.6.1:disable_clip=true", "disable_clip is not supported"),
        (f"{Y4M} --aom_ctc v1.0 --output output.xml", "--feature float_ms_ssim=enable_db=true:clip_db=true"),
        (f"{Y4M} --nflx_ctc v1.0 --json --output output.json", "--feature float_ssim=enable_db=true:clip_db=true"),
        (
            f"{Y4M} --feature psnr --output output.xml",
            f"unknown feature 'psnr' (did you mean float_psnr?). Available features: {KNOWN}",
        ),
        (f"{Y4M} --feature float_ms_ssim --feature ciede", f"unknown feature 'ciede'. Available features: {KNOWN}"),
        (f"{Y4M} --feature float_ssim=enable_chroma=true", "float_ssim has no option 'enable_chroma'"),
        (
            f"{Y4M} --feature float_ssim=enable_db",
            "'enable_db' in --feature 'float_ssim=enable_db' is not of the form option=value",
        ),
    ],
)
def test_refused_before_anything_is_scored(folder: Path, line: str, message: str) -> None:
    before = sorted(folder.iterdir())
    result = vkssim("score", *shlex.split(line))
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert sorted(folder.iterdir()) == before


def test_dev_stdout_is_standard_output() -> None:
    """A file that standard output goes to is not replaced under it."""
    result = vkssim_process("score", *shlex.split(f"{RAW} --backend cpu --output /dev/stdout"))
    assert result.returncode == 0
    assert ElementTree.fromstring(result.stdout.decode()).tag == "VMAF"
    assert b"float_ssim" in result.stderr, "the summary makes way"


def test_flags_without_effect_change_no_number() -> None:
    plain = vkssim("score", *shlex.split(f"{Y4M} --csv -q"))
    flagged = vkssim("score", *shlex.split(f"{Y4M} --csv -q -n --threads 8 --cpumask -1 --gpumask 1"))
    assert plain.exit_code == flagged.exit_code == 0
    assert plain.stdout == flagged.stdout


@pytest.mark.parametrize("flag", ["-v", "--version"])
def test_version(flag: str) -> None:
    assert vkssim("score", flag).output == f"vkssim, version {__version__}\n"
