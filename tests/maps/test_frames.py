"""Pictures of frames chosen from a report: their choice, their files, and their content."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import vkssim
from vkssim.errors import InputError, OptionError, OutputError, TruncatedInputError
from vkssim.frames.info import VideoInfo
from vkssim.frames.options import PictureOptions, RawDescription, Selection
from vkssim.frames.pixels import to_rgb
from vkssim.maps.frames import FramePictures, choose_frames, colour, frame_pictures, png
from vkssim.report.results import FrameScores, ScoreReport
from vkssim.types import BackendInfo

from ..frames.reading import open_source
from ..support.clips import raw_bytes, write, y4m_bytes
from ..support.differences import check_array
from ..support.golden import clip_paths
from ..support.pictures import Picture, clip
from ..support.tolerances import SSIM_MAP_EXACT

LUMA = clip(6)
DISTORTED = np.roll(LUMA, 1, axis=2)
RAW = RawDescription(32, 24, "400", 8)


def _report(names: Sequence[str], rows: Sequence[Sequence[float]], step: int = 1) -> ScoreReport:
    frames = [FrameScores(step * number, dict(zip(names, row, strict=True))) for number, row in enumerate(rows)]
    return ScoreReport("ref", "dis", 32, 24, 8, tuple(names), BackendInfo("cpu", "", ""), frames)


def _grey_y4m(luma: Picture) -> bytes:
    return y4m_bytes(luma, "mono", "400")


def _grey_raw(luma: Picture) -> bytes:
    return raw_bytes(luma, "400")


@pytest.fixture
def y4m_pair(tmp_path: Path) -> tuple[str, str]:
    return write(tmp_path / "ref.y4m", _grey_y4m(LUMA)), write(tmp_path / "dis.y4m", _grey_y4m(DISTORTED))


def _expected_map(reference: Picture, distorted: Picture, bits: int = 8) -> np.ndarray:
    return vkssim.ssim(reference, distorted, data_range=2**bits - 1, return_map=True, backend="cpu")[1]


def _check(pictures: FramePictures, index: int, reference: Picture, distorted: Picture) -> None:
    assert pictures.index == index
    for picture, luma in ((pictures.reference, reference), (pictures.distorted, distorted)):
        np.testing.assert_array_equal(picture, to_rgb((luma,), VideoInfo("", "", 32, 24, 8, range="full")))
    np.testing.assert_array_equal(pictures.ssim_map, _expected_map(reference, distorted))


# -- which frames -----------------------------------------------------------------------------------------------------


def test_worst_by_the_first_of_the_metrics_that_was_scored() -> None:
    rows = [(0.5, 0.9, 0.1), (0.4, 0.8, 0.2), (0.6, 0.1, 0.3), (0.7, 0.7, 0.4)]
    assert choose_frames(_report(("other", "float_ssim", "float_ms_ssim"), rows), "worst:2") == [0, 1]
    assert choose_frames(_report(("other", "float_ssim", "third"), rows), "worst:2") == [2, 3]
    assert choose_frames(_report(("one", "two", "three"), rows), "worst:1") == [1]


def test_a_frame_without_a_score_is_worse_than_any() -> None:
    report = _report(("float_ssim",), [(0.2,), (math.nan,), (-0.5,), (math.inf,)])
    assert [choose_frames(report, f"worst:{count}") for count in (1, 2, 3, 9)] == [[1], [1, 2], [0, 1, 2], [0, 1, 2, 3]]


def test_of_equal_frames_the_earlier_counts() -> None:
    assert choose_frames(_report(("float_ssim",), [(0.9,), (0.5,), (0.5,), (0.5,)]), "worst:2") == [1, 2]


def test_every_and_lists_go_by_the_frames_scored() -> None:
    """Frames have the numbers of their pairs, between which a subsample leaves gaps."""
    report = _report(("float_ssim",), [(0.9,)] * 7, step=5)
    assert choose_frames(report, "every:3") == [0, 15, 30]
    assert choose_frames(report, " 30,5,30 ") == [5, 30]
    with pytest.raises(OptionError, match="frame 3, 31 was not scored; 7 frames from 0 to 30 were"):
        choose_frames(report, "31,5,3")


@pytest.mark.parametrize(
    "how", ["", "worst", "worst:", "worst:0", "worst:-1", "every:0", "every:x", "best:3", "1;2", "1,,2", "-1", "worst:1,2", "²"]
)
def test_what_chooses_no_frames(how: str) -> None:
    with pytest.raises(OptionError, match="chooses no frames; worst:5"):
        choose_frames(_report(("float_ssim",), [(0.5,)]), how)


def test_nothing_scored_gives_no_frames() -> None:
    empty = _report(("float_ssim",), [])
    assert choose_frames(empty, "worst:5") == choose_frames(empty, "every:1") == []
    with pytest.raises(OptionError, match="frame 0 was not scored; none were"):
        choose_frames(empty, "0")


# -- their pictures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["y4m", "raw"])
def test_frames_asked_for_in_rising_order(tmp_path: Path, kind: str) -> None:
    make = {"y4m": _grey_y4m, "raw": _grey_raw}[kind]
    paths = write(tmp_path / "ref", make(LUMA)), write(tmp_path / "dis", make(DISTORTED))
    raw = RAW if kind == "raw" else RawDescription()
    given = list(frame_pictures(*paths, [4, 1, 4], raw=raw, backend="cpu"))
    for pictures, index in zip(given, (1, 4), strict=True):
        _check(pictures, index, LUMA[index], DISTORTED[index])


def test_skips_say_which_frames_make_a_pair(y4m_pair: tuple[str, str]) -> None:
    selection = Selection(skip_reference=2, skip_distorted=1, count=3, subsample=2)
    report = vkssim.score_files(*y4m_pair, features="float_ssim=scale=1", selection=selection, backend="cpu")
    assert [frame.index for frame in report.frames] == [0, 2]
    given = list(frame_pictures(*y4m_pair, choose_frames(report, "every:1"), selection=selection, backend="cpu"))
    for pictures, scored in zip(given, report.frames, strict=True):
        _check(pictures, scored.index, LUMA[scored.index + 2], DISTORTED[scored.index + 1])
        assert pictures.ssim_map.mean(dtype=np.float64) == pytest.approx(scored.metrics["float_ssim"], abs=1e-6)


@pytest.mark.parametrize(("name", "bits"), [("bbb_576x324", 8), ("bbb_576x324_10bit", 10)])
def test_containers_of_both_depths(name: str, bits: int) -> None:
    """Pictures have eight bits and colour whatever the clip has; the map is of all bits of the luma."""
    reference, distorted = map(str, clip_paths(name))
    (pictures,) = frame_pictures(reference, distorted, [3])
    lumas = []
    for path, picture in zip((reference, distorted), (pictures.reference, pictures.distorted), strict=True):
        with open_source(path, RawDescription()) as source:
            planes = source.info.new_planes(3)
            assert source.read([3], [planes]) == 1
            np.testing.assert_array_equal(picture, to_rgb(planes, source.info))
        assert np.ptp(picture.astype(int), axis=2).max() > 50, "there is colour"
        lumas.append(planes[0])
    assert pictures.ssim_map.shape == (314, 566)
    check_array(SSIM_MAP_EXACT, name, pictures.ssim_map, _expected_map(lumas[0], lumas[1], bits=bits))


def test_pairs_by_time_offset_and_crop(tmp_path: Path) -> None:
    """The pictures show the frames that were scored."""
    paths = write(tmp_path / "ref.y4m", y4m_bytes(LUMA)), write(tmp_path / "dis.y4m", y4m_bytes(DISTORTED))
    for sync in ("index", "pts"):
        pictures_options = PictureOptions(crop="20x16+4+2")
        how: dict[str, Any] = {
            "selection": Selection(offset=-2),
            "sync": sync,
            "pictures": pictures_options,
            "backend": "cpu",
        }
        report = vkssim.score_files(*paths, features="float_ssim=scale=1", **how)
        worst = choose_frames(report, "worst:1")
        (pictures,) = frame_pictures(*paths, worst, **how)
        scores = {frame.index: frame.metrics["float_ssim"] for frame in report.frames}
        assert pictures.reference.shape == (16, 20, 3)
        assert pictures.ssim_map.mean(dtype=np.float64) == pytest.approx(scores[worst[0]], abs=1e-6)
    with pytest.raises(InputError, match="a map of frame 4 is impossible: no pair of frames has this number"):
        list(frame_pictures(*paths, [4], **how))


def test_one_pair_is_read_at_a_time(y4m_pair: tuple[str, str], tmp_path: Path) -> None:
    """Frames after the chosen pair are not read: damage there is an error only for a later pair."""
    data = Path(y4m_pair[1]).read_bytes()
    short = write(tmp_path / "short.y4m", data[: len(data) - 100])
    pictures = frame_pictures(y4m_pair[0], short, [0, 5], backend="cpu")
    assert next(pictures).index == 0
    with pytest.raises(TruncatedInputError, match="within frame 5"):
        next(pictures)


def test_what_is_refused(y4m_pair: tuple[str, str], tmp_path: Path) -> None:
    for paths in (("-", y4m_pair[1]), (y4m_pair[0], "-")):
        with pytest.raises(OptionError, match="standard input cannot"):
            frame_pictures(*paths, [0])
    with pytest.raises(OptionError, match="frames count from 0"):
        frame_pictures(*y4m_pair, [-1])
    with pytest.raises(InputError, match=r"ref\.y4m has no such frame"):
        list(frame_pictures(*y4m_pair, [6], backend="cpu"))
    other = write(tmp_path / "other.y4m", y4m_bytes(clip(2, 30, 40)))
    with pytest.raises(InputError, match="they must be alike"):
        list(frame_pictures(y4m_pair[0], other, [0], backend="cpu"))


# -- as PNG -----------------------------------------------------------------------------------------------------------


def test_colours_have_one_scale_and_rise_with_the_map() -> None:
    values = np.linspace(-0.5, 1.0, 301, dtype=np.float32)[None]
    colours = colour(values)
    assert (colours.shape, colours.dtype) == ((1, 301, 3), np.dtype(np.uint8))
    lightness = colours[0, 100:].astype(float) @ (0.2126, 0.7152, 0.0722)
    assert (np.diff(lightness) > -1).all()
    assert lightness[-1] - lightness[0] > 150
    assert (colours[0, :101] == colours[0, 100]).all(), "what is negative is shown as 0"
    np.testing.assert_array_equal(colour(values[:, 200:250]), colours[:, 200:250])
    assert not colour(np.full((1, 1), np.nan, np.float32)).any(), "what is no number is black"


def test_png_reads_back(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (7, 9, 3), np.uint8)
    path = tmp_path / "picture.png"
    data = png(path, picture)
    assert path.read_bytes() == data == png(None, picture)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data))), picture)


def test_png_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written: No such file"):
        png(tmp_path / "absent" / "picture.png", np.zeros((1, 1, 3), np.uint8))


@pytest.mark.parametrize("module", ["matplotlib", "PIL.Image"])
def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OptionError, match=rf"needs {module}.*vkssim\[report\]"):
        png(None, colour(np.zeros((1, 1), np.float32)))
