"""Clips that differ in size, borders, depth, colours or time are scored on request, with notes on the changes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import av
import numpy as np
import pytest

from vkssim import PictureOptions, Scorer, ScoreReport, Selection, score_files, score_many
from vkssim.engine import worker
from vkssim.errors import InputError, OptionError, ThresholdError
from vkssim.frames.info import VideoInfo
from vkssim.frames.options import RawDescription
from vkssim.frames.pairing.preprocessing import colour_warnings, open_pair
from vkssim.frames.pairing.tee import Tee

from ..support.clips import raw_bytes, raw_flags, write, y4m_bytes
from ..support.commands import TINY, vkssim
from ..support.pictures import Picture, clip
from .encoding import encode_frames, flat_chroma

LUMA = clip(8, 48, 64)
OTHER = np.roll(LUMA, 1, axis=2)
NOTHING_SAID = RawDescription()


def _score(reference: str, distorted: str, **options: Any) -> ScoreReport:
    return score_files(reference, distorted, features="float_ssim=scale=1", backend="cpu", **options)


def _expected(reference: Picture, distorted: Picture, bits: int = 8) -> list[float]:
    with Scorer(reference.shape[2], reference.shape[1], bits=bits, features=["float_ssim=scale=1"], backend="cpu") as scorer:
        return [scores.metrics["float_ssim"] for scores in scorer.score(zip(reference, distorted, strict=True))]


def _y4m(path: Path, luma: Picture, space: str = "420") -> str:
    return write(path, y4m_bytes(luma, space))


def _container(path: Path, luma: Picture, times: Sequence[float] | None = None, **settings: Any) -> str:
    return encode_frames(path, flat_chroma(luma), "libx264", options={"qp": "0", "bf": "0"}, times=times, **settings)


def _both(folder: Path) -> tuple[str, str]:
    return _y4m(folder / "ref.y4m", LUMA), _y4m(folder / "dis.y4m", OTHER)


@pytest.mark.parametrize("kind", ["y4m", "mkv"])
def test_black_bars_of_the_reference(tmp_path: Path, kind: str) -> None:
    luma = LUMA.copy()
    luma[:, :6], luma[:, -4:] = 16, 17
    make = _y4m if kind == "y4m" else _container
    reference, distorted = make(tmp_path / f"ref.{kind}", luma), _y4m(tmp_path / "dis.y4m", OTHER)
    report = _score(reference, distorted, pictures=PictureOptions(crop="auto"))
    assert (report.width, report.height) == (64, 38)
    assert "cropped to 64x38+0+6 (black bars off, found in 8 frames of the reference)" in report.notes[0]
    assert report.column("float_ssim").tolist() == _expected(luma[:, 6:44], OTHER[:, 6:44])


def test_raw_master_and_a_smaller_rung(tmp_path: Path) -> None:
    """The description of raw files does not apply to the other clip, unless neither is raw."""
    master = write(tmp_path / "ref.yuv", raw_bytes(LUMA))
    rung = _y4m(tmp_path / "dis.y4m", clip(8))
    raw = RawDescription(64, 48, "420", 8)
    report = _score(master, rung, raw=raw, pictures=PictureOptions(scale="reference"))
    assert report.column("float_ssim").tolist() == (
        _score(_y4m(tmp_path / "ref.y4m", LUMA), rung, pictures=PictureOptions(scale="reference")).column("float_ssim").tolist()
    )
    with pytest.raises(InputError, match=r"they must be alike. `scale=reference`"):
        _score(master, rung, raw=raw)
    with pytest.raises(InputError, match="contradicts"):
        _score(rung, rung, raw=raw)


@pytest.mark.parametrize(
    ("scale", "crop", "size"),
    [
        ("reference", None, (64, 48)),
        ("distorted", None, (32, 24)),
        ("50x40", None, (50, 40)),
        ("reference", "60x40+4+8", (60, 40)),  # of the scaled picture
    ],
)
def test_scale(tmp_path: Path, scale: str, crop: str | None, size: tuple[int, int]) -> None:
    small, pictures = _y4m(tmp_path / "dis.y4m", clip(8)), PictureOptions(scale=scale, resampler="lanczos", crop=crop)
    report = _score(_y4m(tmp_path / "ref.y4m", LUMA), small, pictures=pictures)
    assert (report.width, report.height) == size
    assert len(report.frames) == 8
    scaled = [note for note in report.notes if "lanczos" in note]
    assert len(scaled) == (2 if scale == "50x40" else 1)


@pytest.mark.parametrize("pictures", [PictureOptions(scale="reference"), PictureOptions(deepen=True)], ids=str)
def test_depths(tmp_path: Path, pictures: PictureOptions) -> None:
    """Refused without the option; with it, the scores are equal to those of 8 bits, to the last bit."""
    eight, ten = _y4m(tmp_path / "8.y4m", LUMA), _y4m(tmp_path / "10.y4m", OTHER.astype(np.uint16) * 4, "420p10")
    with pytest.raises(InputError, match=r"8 bits, .* 10 bits; they must be alike. `deepen`"):
        _score(eight, ten)
    report = _score(eight, ten, pictures=pictures)
    assert report.bits == 10
    assert report.notes == [f"{eight}: brought from 8 to 10 bits, exactly"]
    assert report.column("float_ssim").tolist() == _expected(LUMA, OTHER)


def test_rgb_against_ycbcr(tmp_path: Path) -> None:
    """R'G'B' is converted as the other clip states its colours, and that one brought to its depth."""
    rgb = np.random.default_rng(1).integers(0, 256, (48, 64, 3), np.uint8)
    frame: Any = av.VideoFrame.from_ndarray(rgb, "rgb24")
    picture = encode_frames(tmp_path / "frame_0001.png", [frame], "png")
    colours: dict[str, Any] = {
        "threads": 1,
        "src_color_range": 2,
        "dst_color_range": 1,
        "src_colorspace": 1,
        "dst_colorspace": 1,
    }
    other = encode_frames(
        tmp_path / "clip.mp4",
        [frame.reformat(format="yuv444p", **colours)],
        "libx264",
        options={"qp": "0"},
        colorspace=1,
        color_range=1,
    )
    report = _score(picture, other)
    assert report.bits == 16
    assert report.notes == [
        f"{picture}: converted from rgb24 to Y'CbCr of 16 bits by BT.709, limited range",
        f"{other}: brought from 8 to 16 bits, exactly",
    ]
    assert report.warnings == []
    assert 0.999 < report.frames[0].metrics["float_ssim"] < 1, "but for the rounding to 8 bits"
    assert report.rate is report.frames[0].time is None


@pytest.mark.parametrize(
    ("name", "first", "second", "words"),
    [
        ("range", None, "full", "no range, dis full"),
        ("range", None, "limited", None),  # a clip that states nothing is most likely limited
        ("matrix", "BT.709", "YCgCo", "BT.709 matrix, dis YCgCo"),
        ("matrix", "BT.709", "BT.2020 constant luminance", "BT.709 matrix, dis BT.2020 constant luminance"),
        ("matrix", "BT.709", None, None),
        ("transfer", "PQ", "BT.709", "PQ transfer, dis BT.709"),
        ("transfer", "HLG", "PQ", "HLG transfer, dis PQ"),
        ("transfer", None, "HLG", "no transfer, dis HLG"),
        ("transfer", "BT.709", None, None),
        ("transfer", "BT.709", "sRGB", None),
        ("field_order", "progressive", "progressive", None),
        ("field_order", "top field first", "bottom field first", "top field first field order, dis bottom field first"),
        ("field_order", "progressive", "top field first", "progressive field order, dis top field first"),
        ("field_order", "interlaced", "progressive", "interlaced field order, dis progressive"),
        ("field_order", "interlaced", "top field first", None),
        ("field_order", None, "top field first", None),
    ],
)
def test_meanings_that_differ(name: str, first: str | None, second: str | None, words: str | None) -> None:
    stated: list[dict[str, Any]] = [{name: first}, {name: second}]
    clips = [VideoInfo(path, "Y4M", 64, 48, 8, **own) for path, own in zip(("ref", "dis"), stated, strict=True)]
    for pair, expected in ((clips, words), ([clips[0]] * 2, None)):
        found = colour_warnings(*pair)
        assert [warning.partition(": ")[0] for warning in found] == ([] if expected is None else [f"ref states {expected}"])


def test_rgb_against_a_matrix_that_it_cannot_become(tmp_path: Path) -> None:
    rgb = av.VideoFrame.from_ndarray(np.random.default_rng(1).integers(0, 256, (48, 64, 3), np.uint8), "rgb24")
    picture = encode_frames(tmp_path / "clip.png", [rgb], "png")
    other = _container(tmp_path / "dis.mp4", LUMA[:1], colorspace=8)
    report = _score(picture, other)
    assert any(f"{picture} states BT.601 matrix, {other} YCgCo" in warning for warning in report.warnings)
    assert report.scoring is not None
    assert (report.scoring.reference.matrix, report.scoring.distorted.matrix) == ("BT.601", "YCgCo")


def test_fields_of_a_container(tmp_path: Path) -> None:
    """The order of fields is stated by decoded frames."""
    clips = [
        encode_frames(tmp_path / f"{number}.mkv", flat_chroma(LUMA), "libx264", options={"qp": "0", "x264-params": options})
        for number, options in enumerate(("", "interlaced=1"))
    ]
    (warning,) = _score(*clips).warnings
    assert f"{clips[0]} states progressive field order, {clips[1]} bottom field first" in warning
    assert _score(clips[1], clips[1]).warnings == []


def test_a_matrix_that_changes_on_the_way(tmp_path: Path) -> None:
    """Two joined elementary streams, of which each states its own colours."""
    data = b"".join(Path(_container(tmp_path / f"{matrix}.264", LUMA, colorspace=matrix)).read_bytes() for matrix in (1, 9))
    path = write(tmp_path / "both.264", data)
    report = _score(path, path)
    assert len(report.frames) == 2 * len(LUMA)
    expected = f"{path}, frame {len(LUMA)}: states the matrix BT.2020 from here, and BT.709 before"
    assert any(expected in warning for warning in report.warnings)


@pytest.mark.parametrize("frames", [2, 8])
def test_strict_fails_where_frame_rates_differ(tmp_path: Path, frames: int) -> None:
    """Even if the clips are too short to get out of step."""
    paths = [str(tmp_path / f"{rate}.y4m") for rate in (25, 30)]
    for path, rate in zip(paths, (25, 30), strict=True):
        data = Path(_y4m(Path(path), LUMA[:frames])).read_bytes()
        write(Path(path), re.sub(rb" F\d+:1", f" F{rate}:1".encode(), data, count=1))
    assert len(_score(*paths).warnings) == 1
    with pytest.raises(ThresholdError, match="`strict`"):
        _score(*paths, strict=True)
    _score(paths[0], paths[0], strict=True)


def test_chroma_of_both(tmp_path: Path) -> None:
    """A crop between samples of chroma is refused if chroma is compared; a grey clip has none."""
    reference, distorted = _both(tmp_path)
    for source in open_pair((reference, distorted), NOTHING_SAID, PictureOptions(crop="32x24+4+6"), chroma=True):
        assert source.info.chroma == "420"
        source.close()
    with pytest.raises(InputError, match="begins between samples of chroma"):
        open_pair((reference, distorted), NOTHING_SAID, PictureOptions(crop="32x24+4+7"), chroma=True)
    grey = write(tmp_path / "grey.y4m", y4m_bytes(LUMA, "mono", "400"))
    with pytest.raises(InputError, match=r"grey.y4m has no chroma"):
        open_pair((reference, grey), NOTHING_SAID, PictureOptions(), chroma=True)


def test_sync_by_time(tmp_path: Path) -> None:
    """The distorted clip lacks frames: by number it falls out of step, by time it does not."""
    kept = [0, 1, 3, 4, 7]
    reference = _container(tmp_path / "ref.mkv", LUMA)
    distorted = _container(tmp_path / "dis.mkv", OTHER[kept], [number / 25 for number in kept])
    by_index = _score(reference, distorted)
    assert by_index.column("float_ssim").tolist() == _expected(LUMA[:5], OTHER[kept])
    assert any(warning.startswith("from frame 2 on") and "--sync pts" in warning for warning in by_index.warnings)
    report = _score(reference, distorted, sync="pts")
    assert [frame.index for frame in report.frames] == kept
    assert [round(frame.time or 0, 6) for frame in report.frames] == [number / 25 for number in kept]
    assert report.column("float_ssim").tolist() == _expected(LUMA[kept], OTHER[kept])
    (warning,) = report.warnings
    assert warning.startswith(
        f"3 frames of {reference} and 0 of {distorted} have no partner in the other clip within half a frame"
    )
    with pytest.raises(ThresholdError, match="`strict`") as caught:
        _score(reference, distorted, sync="pts", strict=True)
    assert len(caught.value.report.frames) == 5


def test_sync_by_time_with_a_selection(tmp_path: Path) -> None:
    reference = _container(tmp_path / "ref.mkv", LUMA)
    distorted = _y4m(tmp_path / "dis.y4m", OTHER)  # 30 frames/s: 0 .033 .067 .1 .133 .167 .2 .233 against 0 .04 .08 .12 …
    report = _score(reference, distorted, sync="pts", selection=Selection(start=1, end="0.24s", subsample=2))
    assert [frame.index for frame in report.frames] == [1, 3, 5]
    assert report.column("float_ssim").tolist() == _expected(LUMA[[1, 3, 5]], OTHER[[1, 4, 6]])


@pytest.mark.parametrize("selection", [Selection(end=2), Selection(start=3, end=5), Selection(count=2), Selection(start=7)])
def test_by_time_only_selected_frames_need_a_partner(tmp_path: Path, selection: Selection) -> None:
    kept = [0, 1, 3, 4, 7]
    reference = _container(tmp_path / "ref.mkv", LUMA)
    distorted = _container(tmp_path / "dis.mkv", OTHER[kept], [number / 25 for number in kept])
    assert not _score(reference, distorted, sync="pts", selection=selection, strict=True).warnings


def test_by_time_a_late_start_is_not_out_of_step(tmp_path: Path) -> None:
    """The first pair compared may be up to half a frame apart already: 0.08 and 0.067, and the next 0.12 and 0.133."""
    reference = _container(tmp_path / "ref.mkv", LUMA)
    report = _score(reference, _y4m(tmp_path / "dis.y4m", OTHER), sync="pts", selection=Selection(start=2, end=5))
    assert not [warning for warning in report.warnings if "out of step" in warning]


def test_sync_by_time_where_there_are_no_times(tmp_path: Path) -> None:
    raw = write(tmp_path / "clip.yuv", raw_bytes(LUMA))
    with pytest.raises(InputError, match="has no presentation times, so `sync=pts` is not possible"):
        _score(_y4m(tmp_path / "ref.y4m", LUMA), raw, sync="pts", raw=RawDescription(64, 48, "420", 8))
    with pytest.raises(OptionError, match="`sync` is 'dts'; it must be index or pts"):
        _score(raw, raw, sync="dts", raw=RawDescription(64, 48, "420", 8))
    with pytest.raises(InputError, match="has no presentation times; give `start` as the number of a frame"):
        _score(raw, raw, raw=RawDescription(64, 48, "420", 8), selection=Selection(start="1s"))


def test_times_and_rate(tmp_path: Path) -> None:
    report = _score(*_both(tmp_path), selection=Selection(skip_reference=2, skip_distorted=2))
    assert report.rate == 30
    assert [frame.time for frame in report.frames] == [number / 30 for number in range(2, 8)]
    raw = write(tmp_path / "clip.yuv", raw_bytes(LUMA))
    report = _score(raw, raw, raw=RawDescription(64, 48, "420", 8))
    assert {frame.time for frame in report.frames} == {report.rate} == {None}


@pytest.mark.parametrize(
    ("selection", "frames", "others", "first"),
    [
        (Selection(offset=2), slice(0, 6), slice(2, 8), 0),
        (Selection(offset=-3), slice(3, 8), slice(0, 5), 0),
        (Selection(start=3), slice(3, 8), slice(3, 8), 3),
        (Selection(start=2, end=5), slice(2, 5), slice(2, 5), 2),
        (Selection(start="0.1s", end="00:00:00.2"), slice(3, 6), slice(3, 6), 3),
        (Selection(start="0.101s", end="0:01"), slice(4, 8), slice(4, 8), 4),
        (Selection(start=1, count=3), slice(1, 4), slice(1, 4), 1),
        (Selection(start=4, offset=-3), slice(4, 8), slice(1, 5), 1),
        (Selection(end=500), slice(0, 8), slice(0, 8), 0),
    ],
)
def test_places(tmp_path: Path, selection: Selection, frames: slice, others: slice, first: int) -> None:
    """Raw files, read at random, and Y4M, read in order; times are those of 30 frames/s."""
    report = _score(*_both(tmp_path), selection=selection)
    expected = _expected(LUMA[frames], OTHER[others])
    assert report.column("float_ssim").tolist() == expected
    assert [frame.index for frame in report.frames] == list(range(first, first + len(expected)))
    if isinstance(selection.start, str):
        return
    paths = write(tmp_path / "ref", raw_bytes(LUMA)), write(tmp_path / "dis", raw_bytes(OTHER))
    report = _score(*paths, selection=selection, raw=RawDescription(64, 48, "420", 8))
    assert report.column("float_ssim").tolist() == expected


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        *(
            (Selection, {"end": place}, "the number of a frame, or a time such as 12.5s or 00:01:02.5")
            for place in ("later", "-1", "1:2:3:4", "s", "1.5")
        ),
        (PictureOptions, {"crop": "all"}, "auto or WxH+X+Y is possible"),
        (PictureOptions, {"crop_reference": "64:40"}, "auto or WxH+X+Y is possible"),
        (PictureOptions, {"crop_distorted": "64:40"}, "auto or WxH+X+Y is possible"),
        (PictureOptions, {"scale": "0.5x2"}, "`scale` is '0.5x2'; it must be reference, distorted or WxH"),
        (PictureOptions, {"resampler": "x"}, "it must be bicubic"),
    ],
)
def test_impossible_options(kind: type[Selection | PictureOptions], options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        kind(**options)


def test_command_line(tmp_path: Path) -> None:
    """Every flag reaches its place; notes go to standard error."""
    reference, distorted = write(tmp_path / "ref", raw_bytes(LUMA)), write(tmp_path / "dis", raw_bytes(clip(8)[:, :, :32]))
    flags = ("--crop", "30x30+2+4", "--start", "1", "--end", "6", "--every", "2", "--offset", "0", "--sync", "index")
    result = vkssim("score", "-r", reference, "-d", reference, *raw_flags(LUMA), *TINY, *flags, "--csv")
    assert result.exit_code == 0, result.stderr
    assert [line.split(",")[0] for line in result.stdout.splitlines()] == ["Frame", "1", "3", "5"]
    assert f"vkssim: note: {reference}: cropped to 30x30+2+4\n" in result.stderr
    small = _y4m(tmp_path / "small.y4m", clip(8))
    big = _y4m(tmp_path / "big.y4m", LUMA)
    result = vkssim("score", "-r", big, "-d", small, *TINY, "--scale", "distorted", "--resampler", "area")
    assert "scaled from 64x48 to 32x24, area" in result.stderr
    assert result.exit_code == 0
    assert vkssim("score", "-r", big, "-d", small, *TINY).exit_code == 2
    assert "crop is 'x'" in vkssim("score", "-r", big, "-d", distorted, *TINY, "--crop", "x").stderr


# -- each clip cropped by itself: a letterboxed master against a cropped encode -----------------------------------------

CONTENT = clip(6, 40, 64)
CODED = CONTENT // 16 * 16


def _boxed(luma: Picture, above: int, below: int, left: int = 0, right: int = 0) -> Picture:
    """A picture with black bars."""
    return np.pad(luma, ((0, 0), (above, below), (left, right)), constant_values=16)


BOXED = _boxed(CONTENT, 8, 8)
NARROW = _boxed(CONTENT, 0, 0, 8, 8)
LARGE = CODED.repeat(2, axis=1).repeat(2, axis=2)


@pytest.mark.parametrize("crop", ["auto", "64x40+0+8"])
def test_a_letterboxed_master_against_a_cropped_encode(tmp_path: Path, crop: str) -> None:
    paths = _y4m(tmp_path / "ref.y4m", BOXED), _y4m(tmp_path / "dis.y4m", CODED)
    report = _score(*paths, pictures=PictureOptions(crop_reference=crop))
    assert report.column("float_ssim").tolist() == _expected(CONTENT, CODED)
    assert report.scoring is not None
    assert (report.scoring.reference.cropped_to, report.scoring.distorted.cropped_to) == ("64x40+0+8", None)
    assert report.scoring.cropped_to is None, "which --crop says of both"
    found = " (black bars off, found in 6 frames)" if crop == "auto" else ""
    assert report.notes == [f"{paths[0]}: cropped to 64x40+0+8{found}"]


@pytest.mark.parametrize(
    ("reference", "distorted", "options", "shown", "cropped_to"),
    [
        (BOXED, _boxed(CODED, 4, 2, 6, 10), {"crop_reference": "auto", "crop_distorted": "auto"}, (CONTENT, CODED), None),
        (BOXED, LARGE, {"crop_reference": "auto", "scale": "distorted"}, (CONTENT, LARGE), None),
        (
            BOXED,
            CODED,
            {"crop_reference": "auto", "crop": "40x30+2+4"},
            (CONTENT[:, 4:34, 2:42], CODED[:, 4:34, 2:42]),
            "40x30+2+4",
        ),
        (_boxed(NARROW, 8, 8), NARROW, {"crop_reference": "80x40+0+8", "crop": "auto"}, (CONTENT, CONTENT), "64x40+8+0"),
    ],
    ids=["bars of both", "before scaling", "both once more", "bars of the cropped reference"],
)
def test_crops(
    tmp_path: Path,
    reference: Picture,
    distorted: Picture,
    options: dict[str, Any],
    shown: tuple[Picture, Picture],
    cropped_to: str | None,
) -> None:
    """The scores are those of the pictures that are left. `crop` looks at the reference after its own crop."""
    report = _score(
        _y4m(tmp_path / "ref.y4m", reference), _y4m(tmp_path / "dis.y4m", distorted), pictures=PictureOptions(**options)
    )
    paths = [_y4m(tmp_path / f"shown-{number}.y4m", luma) for number, luma in enumerate(shown)]
    expected = _score(*paths, pictures=PictureOptions(scale=options.get("scale")))
    assert report.column("float_ssim").tolist() == expected.column("float_ssim").tolist()
    assert not any("stretched" in warning for warning in report.warnings)
    assert report.scoring is not None
    assert report.scoring.cropped_to == cropped_to


def test_a_pipe_is_not_looked_at_twice(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`crop_distorted=auto` reads the distorted clip twice"):
        _score(_y4m(tmp_path / "ref.y4m", CONTENT), "-", pictures=PictureOptions(crop_distorted="auto"))


def test_the_message_leads_to_the_cure(tmp_path: Path) -> None:
    """The option that the message names works; an earlier one stretched the picture."""
    paths = _y4m(tmp_path / "ref.y4m", BOXED), _y4m(tmp_path / "dis.y4m", CODED)
    words = ("score", "-r", paths[0], "-d", paths[1], *TINY)
    refused = vkssim(*words)
    assert refused.exit_code == 2
    assert "--crop-reference" in refused.stderr
    assert "--scale" not in refused.stderr
    assert vkssim(*words, "--crop-reference", "auto").exit_code == 0
    stretched = vkssim(*words, "--scale", "reference")
    assert stretched.exit_code == 0
    assert "was stretched from 64x40 to 64x56" in stretched.stderr


@pytest.mark.parametrize("rotation", [90, -90])
def test_a_rotation_that_the_encoder_lost(tmp_path: Path, rotation: int) -> None:
    """The message names the option that turns the other clip as well."""
    reference = _container(tmp_path / "ref.mp4", LUMA, rotation=rotation)
    words = ("score", "-r", reference, "-d", _y4m(tmp_path / "dis.y4m", OTHER), *TINY, "--json")
    refused = vkssim(*words)
    assert refused.exit_code == 2
    found = re.search(r"--turn-distorted (90|270) turns", refused.stderr)
    assert found is not None, refused.stderr
    scored = json.loads(vkssim(*words, "-q", "--turn-distorted", found[1]).stdout)
    shown, other = (np.rot90(luma, rotation // 90, axes=(1, 2)) for luma in (LUMA, OTHER))
    scores = [frame["metrics"]["float_ssim"] for frame in scored["frames"]]
    assert scores == pytest.approx(_expected(shown, other), abs=1e-6), "as json rounds"
    assert scored["scoring"]["pictures"]["turn_distorted"] == int(found[1])
    direction = "counter-clockwise" if found[1] == "270" else "clockwise"
    assert f"turned by 90 degrees {direction}" in scored["notes"][-1]


def test_a_clip_is_turned_before_it_is_cropped(tmp_path: Path) -> None:
    turned = np.rot90(BOXED, -1, axes=(1, 2))
    paths = _y4m(tmp_path / "ref.y4m", np.rot90(CONTENT, 2, axes=(1, 2))), _y4m(tmp_path / "dis.y4m", turned)
    options = PictureOptions(crop_distorted="auto", turn_reference=180, turn_distorted=270)
    assert _score(*paths, pictures=options).column("float_ssim").tolist() == _expected(CONTENT, CONTENT)
    options = PictureOptions(crop="auto", turn_reference=270, turn_distorted=180)
    upside_down = _y4m(tmp_path / "other.y4m", np.rot90(BOXED, 2, axes=(1, 2)))
    assert _score(paths[1], upside_down, pictures=options).column("float_ssim").tolist() == _expected(CONTENT, CONTENT)


def test_turns_that_are_not_possible() -> None:
    for degrees in (45, -90, 360):
        with pytest.raises(OptionError, match=f"`turn_distorted` is {degrees}; it must be 0, 90, 180 or 270"):
            PictureOptions(turn_distorted=degrees)


# -- a size that changes on the way ------------------------------------------------------------------------------------

PARTS = (clip(3, 48, 64, seed=5), clip(3, 24, 32, seed=6), clip(3, 64, 48, seed=7))
"""Frames of three sizes, of which the last has another shape."""


@pytest.fixture(scope="module")
def alone(folder: Path) -> list[str]:
    """Each of them as an elementary stream."""
    return [_container(folder / f"{number}.264", part) for number, part in enumerate(PARTS)]


def _joined(folder: Path, parts: Sequence[str]) -> str:
    """An elementary stream of frames whose size changes."""
    return write(folder / "joined.264", b"".join(Path(part).read_bytes() for part in parts))


@pytest.mark.parametrize("options", [{}, {"turn_reference": 90, "turn_distorted": 90, "deepen": True}], ids=str)
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
def test_each_frame_is_scaled_from_its_own_size(
    tmp_path: Path, alone: list[str], order: tuple[int, ...], options: dict[str, Any]
) -> None:
    """As its part alone would be, also if the first frames need no scaling."""
    parts = [alone[number] for number in order]
    joined = _joined(tmp_path, parts)
    references = [_y4m(tmp_path / f"{number}.y4m", LUMA[number : number + 3]) for number in range(3)]
    pictures = PictureOptions(scale="reference", **options)
    expected = [
        score
        for paths in zip(references, parts, strict=True)
        for score in _score(*paths, pictures=pictures).column("float_ssim")
    ]
    whole = _y4m(tmp_path / "whole.y4m", np.concatenate([LUMA[number : number + 3] for number in range(3)]))
    report = _score(whole, joined, pictures=pictures)
    assert report.column("float_ssim").tolist() == expected
    first, second = (PARTS[number].shape[:0:-1] for number in order[:2])
    changed = "frame 3: is {}x{}, and the first one is {}x{}: from here on, each frame was scaled from its own size"
    assert any(changed.format(*second, *first) in warning for warning in report.warnings)


def test_a_reference_of_many_sizes_for_several_clips(tmp_path: Path, alone: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is decoded once for all of them, and the scores are those of each pair alone."""
    joined = _joined(tmp_path, alone)
    tees = Mock(side_effect=Tee)
    monkeypatch.setattr(worker, "Tee", tees)
    paths = [_y4m(tmp_path / f"{number}.y4m", np.roll(LUMA, number, axis=2)) for number in range(3)]
    for scale in ("reference", "distorted", "50x40"):
        pictures = PictureOptions(scale=scale)
        options: dict[str, Any] = {"features": "float_ssim=scale=1", "pictures": pictures, "backend": "cpu"}
        results = list(score_many([(joined, path) for path in paths], **options))
        assert tees.call_count == 1
        tees.reset_mock()
        for result in sorted(results, key=lambda result: result.number):
            assert result.report is not None, result.error
            single = _score(joined, paths[result.number], pictures=pictures)
            assert result.report.column("float_ssim").tolist() == single.column("float_ssim").tolist()
            assert len(single.frames) == len(LUMA)


@pytest.mark.parametrize("options", [{}, {"scale": "reference", "crop_distorted": "32x24"}], ids=str)
def test_a_change_of_size_without_scaling(tmp_path: Path, alone: list[str], options: dict[str, Any]) -> None:
    """A crop is in samples of the first frame. The frames before the change are scored."""
    joined = _joined(tmp_path, alone)
    with pytest.raises(InputError, match=r"frame 3 is 32x24 .* cannot be scored; `scale` would scale each frame") as caught:
        _score(_y4m(tmp_path / "ref.y4m", LUMA), joined, pictures=PictureOptions(**options))
    assert len(caught.value.report.frames) == 3
