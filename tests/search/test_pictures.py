"""Clips that are deinterlaced, cropped and scaled before they are encoded: what is encoded, compared, written and recorded."""

from __future__ import annotations

import json
import os
import shlex
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import imageio_ffmpeg
import numpy as np
import pytest

import vkssim
from vkssim import SourcePictures
from vkssim.errors import InputError, OptionError
from vkssim.search.source import Source
from vkssim.utils.av_frames import plane_of

from ..frames.encoding import encode_frames, flat_chroma, video_frame
from ..support.coded.clip import marked, woven
from ..support.commands import refuse, run_program, succeed
from ..support.pictures import clip as moving
from .clips import ASKED, WORDS, arguments

pytestmark = pytest.mark.usefixtures("shared_device")
FRAMES = 24
ALL = SourcePictures(deinterlace=True, crop="160x128+16+16", scale="120x96")
WHICH: dict[str, Any] = {**ASKED, "targets": "float_ssim=0.9"}


@pytest.fixture(scope="module", params=["tff", "bff"])
def interlaced(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> str:
    """A clip whose fields are of different moments, with a key frame every 10 frames."""
    bottom = request.param == "bff"
    frames = [video_frame(192, 160, "yuv420p", woven(number, 192, 160, bottom_first=bottom)) for number in range(FRAMES)]
    options = {"qp": "4", "preset": "ultrafast", "x264-params": f"{request.param}=1:keyint=10"}
    path = tmp_path_factory.mktemp("interlaced") / "clip.mkv"
    return encode_frames(path, marked(frames, request.param), "libx264", options=options)


def _ffmpeg(*words: str | Path, folder: Path) -> None:
    process = run_program(
        imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", *(os.fspath(word) for word in words), cwd=folder, text=True
    )
    assert (process.returncode, process.stderr) == (0, "")


def _luma(path: str | Path) -> np.ndarray:
    with av.open(str(path)) as container:
        return np.stack([plane_of(frame, 0) for frame in container.decode(video=0)])


def test_what_is_encoded_is_what_filters_of_ffmpeg_give(interlaced: str, tmp_path: Path) -> None:
    """The changed clip is encoded, compared, and written; and FFmpeg's command writes the same pictures."""
    out, changed = tmp_path / "out.mkv", tmp_path / "changed.mkv"
    choice = vkssim.search_setting(interlaced, **arguments(pictures=ALL, output=out, least=24, most=24, **WHICH)).choice
    _, *words, name = shlex.split(choice.command)
    filters = words[words.index("-vf") + 1]
    _ffmpeg("-i", interlaced, "-vf", filters, "-c:v", "ffv1", changed, folder=tmp_path)
    source = Source(interlaced, ALL)
    lumas = [plane_of(frame, 0).copy() for frame in source.frames(0, FRAMES, source.scan())]
    np.testing.assert_array_equal(lumas, _luma(changed))
    report = vkssim.score_files(changed, out, features="float_ssim=scale=1")
    assert report.pooled()["float_ssim"]["mean"] == pytest.approx(choice.trial.values["float_ssim:mean"], abs=1e-6)
    _ffmpeg(*words, name, folder=tmp_path)
    np.testing.assert_array_equal(_luma(tmp_path / name), _luma(out))
    assert choice.notes[:3] == (
        "deinterlaced by FFmpeg's bwdif, one picture for each frame",
        "cropped to 160x128+16+16",
        "scaled from 160x128 to 120x96, bicubic",
    )
    with av.open(str(out)) as written:
        assert written.streams.video[0].average_rate == 25


def test_deinterlaced_frames_of_a_range_are_those_of_the_clip(interlaced: str) -> None:
    """A picture needs the frame before it, which may be before the key frame."""
    source = Source(interlaced, SourcePictures(deinterlace=True))
    scan = source.scan()
    every = [plane_of(frame, 0).copy() for frame in source.frames(0, FRAMES, scan)]
    for first in (1, 9, 10, 11, 20, FRAMES - 1):
        some = [plane_of(frame, 0).copy() for frame in source.frames(first, min(3, FRAMES - first), scan)]
        np.testing.assert_array_equal(some, every[first : first + 3])


@pytest.mark.parametrize("order", ["t", "b", ""])
def test_fields_of_y4m(tmp_path: Path, order: str) -> None:
    """Without a stated order, the top field is first, and a note says so."""
    path = tmp_path / "clip.y4m"
    pictures = [woven(number, 64, 48, bottom_first=order == "b") for number in range(5)]
    header = f"YUV4MPEG2 W64 H48 F25:1 {f'I{order} ' if order else ''}C420\n".encode()
    path.write_bytes(header + b"".join(b"FRAME\n" + b"".join(plane.tobytes() for plane in planes) for planes in pictures))
    source = Source(str(path), SourcePictures(deinterlace=True))
    scan = source.scan()
    assert scan.count == 5
    parity, kept = ("bff", 1) if order == "b" else ("tff", 0)
    assert source.facts.filters == (f"bwdif=mode=send_frame:parity={parity}:deint=all",)
    assert ("does not state" in source.facts.notes[0]) == (order == "")
    for frame, (luma, *_) in zip(source.frames(0, 5, scan), pictures, strict=True):
        np.testing.assert_array_equal(plane_of(frame, 0)[kept::2], luma[kept::2])


def test_black_bars_are_removed(tmp_path: Path) -> None:
    luma = np.full((6, 96, 128), 16, np.uint8)
    luma[:, 12:84] = moving(6, 72, 128) // 2 + 60
    path = encode_frames(tmp_path / "bars.mkv", flat_chroma(luma), "ffv1")
    facts = Source(path, SourcePictures(crop="auto")).facts
    assert (facts.width, facts.height, facts.filters) == (128, 72, ("crop=128:72:0:12:exact=1",))
    assert facts.notes == ("cropped to 128x72+0+12 (black bars off, found in 6 frames)",)
    assert Source(path, SourcePictures(crop="auto", scale="64x36")).facts.filters[1].startswith("scale=64:36:")


@pytest.mark.parametrize(
    ("scale", "aspect"),
    [("48x36", Fraction(16, 15)), ("68x48", Fraction(1)), ("32x48", Fraction(32, 15)), ("64x48", Fraction(16, 15))],
)
def test_the_displayed_shape_stays(tmp_path: Path, scale: str, aspect: Fraction) -> None:
    """By samples of the same shape, or square ones, if these are right but for the rounding of sides."""
    frames = flat_chroma(moving(2, 48, 64))
    path = encode_frames(tmp_path / "clip.mkv", frames, "libx264", sample_aspect_ratio=Fraction(16, 15))
    assert Source(path, SourcePictures(scale=scale)).facts.aspect == aspect


@pytest.mark.parametrize(
    ("pictures", "error", "text"),
    [
        ({"crop": "64x32+1+0"}, InputError, "begins between samples of chroma"),
        ({"crop": "64x64+0+0"}, InputError, r"crop to 64x64\+0\+0 does not lie within .*, which is 64x48$"),
        ({"scale": "reference"}, OptionError, "`scale` is 'reference'; it must be WxH, such as 1280x720"),
        ({"scale": "0x48"}, OptionError, "`scale` is '0x48'; it must be WxH"),
        ({"resampler": "best"}, OptionError, "`resampler` is 'best'; it must be bicubic"),
        ({"crop": "half"}, OptionError, "crop is 'half'; auto or WxH"),
    ],
)
def test_changes_that_are_not_possible(clip: str, pictures: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Source(clip, SourcePictures(**pictures))


def test_clips_that_bwdif_does_not_read(tmp_path: Path) -> None:
    """FFmpeg would convert the first one, and the fields of the second one are columns."""
    deep = encode_frames(tmp_path / "deep.mkv", [video_frame(64, 48, "gray10le", [np.full((48, 64), 99, np.uint16)])], "ffv1")
    turned = encode_frames(tmp_path / "turned.mp4", flat_chroma(moving(2, 48, 64)), "libx264", rotation=90)
    low = encode_frames(tmp_path / "low.mkv", flat_chroma(moving(2, 2, 64)), "ffv1")
    for path, text in (
        (deep, "takes no gray10le"),
        (turned, "is turned by its display matrix"),
        (low, "cannot read .* 64x2: "),
    ):
        with pytest.raises(InputError, match=text):
            Source(path, SourcePictures(deinterlace=True))


def test_the_command_line_and_its_record(clip: str, tmp_path: Path) -> None:
    """Both commands have the options; trials of other pictures are those of another search."""
    words = ("search", clip, *WORDS, "--target", "float_ssim=0.9", "--crop", "48x32+8+8", "--trials", "1", "--json")
    found = json.loads(succeed(*words).stdout)
    assert found["pictures"] == {"deinterlace": False, "crop": "48x32+8+8", "scale": None, "resampler": "bicubic"}
    assert "cropped to 48x32+8+8" in found["choice"]["notes"]
    assert "-vf crop=48:32:8:8:exact=1 " in found["choice"]["command"]
    refuse("--scale is 'half'; it must be WxH", "ladder", clip, "--heights", "48", "--scale", "half")
    begun = vkssim.search_setting(clip, **arguments(resume=tmp_path / "state", **WHICH))
    next(iter(begun))
    begun.close()
    with pytest.raises(OptionError, match="has the trials of another search"):
        list(
            vkssim.search_setting(clip, **arguments(resume=tmp_path / "state", pictures=SourcePictures(scale="48x36"), **WHICH))
        )


def test_a_setting_for_each_shot_of_changed_pictures(clip: str) -> None:
    """The report notes the changes, and Av1an gets FFmpeg's filters."""
    pictures = SourcePictures(crop="48x32+8+8", scale="96x64", resampler="point")
    search = vkssim.search_shots(clip, **arguments(pictures=pictures, **{**WHICH, "trials": 2}))
    assert (search.report.width, search.report.height) == (96, 64)
    assert search.report.notes == ["cropped to 48x32+8+8", "scaled from 48x32 to 96x64, point"]
    words = shlex.split(search.commands("zones.txt")[0])
    assert words[words.index("--ffmpeg") + 1] == (
        "-vf crop=48:32:8:8:exact=1,scale=96:64:flags=neighbor+accurate_rnd,setsar=1/1"
    )


def test_a_ladder_of_a_cropped_clip(tmp_path: Path) -> None:
    """Its sizes have the shape of what is left."""
    path = encode_frames(tmp_path / "clip.mkv", flat_chroma(moving(4, 144, 192)), "ffv1")
    asked = {**ASKED, "heights": [96, 64], "score": "float_ssim", "fixed": None, "trials": 2}
    search = vkssim.search_ladder(path, **arguments(pictures=SourcePictures(crop="144x96+0+0"), **asked))
    assert {(trial.width, trial.height) for trial in search.trials} <= {(144, 96), (96, 64)}
    assert "crop=144:96:0:0:exact=1" in search.script()
