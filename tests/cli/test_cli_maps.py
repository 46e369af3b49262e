"""`vkssim score --map`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vkssim as package
from vkssim.maps.frames import colour, png
from vkssim.maps.picture import map_corner

from ..support.clips import raw_bytes, write, y4m_bytes
from ..support.commands import TINY, fail, pair_words, refuse, succeed, vkssim, vkssim_process
from ..support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

LUMA = clip(7)
DISTORTED = np.stack([np.roll(frame, shift, axis=1) for shift, frame in enumerate(LUMA)])
"""The first frame is the reference's; no two of the others score alike."""


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    """The words that score a pair of raw clips."""
    return pair_words(tmp_path, LUMA, DISTORTED)


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _names(*indices: int) -> list[str]:
    return [f"frame_{index:06d}.{ending}" for index in indices for ending in ("npy", "png")]


def test_maps_of_the_worst_five_by_default(words: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "made" / "maps"
    result = succeed(*words, "--map", str(folder), "--csv")
    scores = [float(line.split(",")[1]) for line in result.stdout.splitlines()[1:]]
    worst = sorted(np.argsort(scores)[:5].tolist())
    assert _files(folder) == _names(*worst)
    for index in worst:
        ssim_map = np.load(folder / f"frame_{index:06d}.npy")
        score, expected = package.ssim(LUMA[index], DISTORTED[index], return_map=True, backend="cpu")
        np.testing.assert_array_equal(ssim_map, expected)
        assert score == pytest.approx(scores[index], abs=1e-6)
        with Image.open(folder / f"frame_{index:06d}.png") as picture:
            (top, left), (height, width) = map_corner(ssim_map.shape[1]), ssim_map.shape
            np.testing.assert_array_equal(np.asarray(picture)[top : top + height, left : left + width], colour(ssim_map))


@pytest.mark.parametrize(
    ("how", "flags", "expected"),
    [
        ("every:3", (), (0, 3, 6)),
        ("6,2", (), (2, 6)),
        ("every:2", ("--subsample", "2"), (0, 4)),
        ("worst:1", ("--frame_skip_ref", "1", "--frame_skip_dist", "1", "--frame_cnt", "1"), (0,)),
    ],
)
def test_frames_by_choice(
    words: tuple[str, ...], tmp_path: Path, how: str, flags: tuple[str, ...], expected: tuple[int]
) -> None:
    succeed(*words, *flags, "-q", "--map", str(tmp_path / "maps"), "--map-frames", how)
    assert _files(tmp_path / "maps") == _names(*expected)
    if "--frame_skip_ref" in flags:
        expected_map = package.ssim(LUMA[1], DISTORTED[1], return_map=True, backend="cpu")[1]
        np.testing.assert_array_equal(np.load(tmp_path / "maps" / "frame_000000.npy"), expected_map)


@pytest.mark.parametrize(
    ("feature", "window", "size"),
    [("float_ms_ssim", "gaussian11", (170, 181)), ("float_ssim=window=uniform8:scale=2", "uniform8", (173, 184))],
)
def test_maps_at_full_size_of_the_scored_window(tmp_path: Path, feature: str, window: str, size: tuple[int, int]) -> None:
    """By the device too, and with no float_ssim asked for."""
    luma = clip(2, 180, 191)
    paths = [write(tmp_path / name, y4m_bytes(frames)) for name, frames in (("ref", luma), ("dis", np.roll(luma, 1, axis=1)))]
    folder = tmp_path / "maps"
    succeed("score", "-r", paths[0], "-d", paths[1], "--feature", feature, "-q", "--map", str(folder))
    assert _files(folder) == _names(0, 1)
    ssim_map = np.load(folder / "frame_000001.npy")
    assert (ssim_map.shape, ssim_map.dtype) == (size, np.float32)
    expected = package.ssim(luma[1], np.roll(luma[1], 1, axis=0), window=window, return_map=True)[1]
    np.testing.assert_array_equal(ssim_map, expected)


def test_a_demand_that_is_not_met_keeps_the_maps(words: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "maps"
    result = vkssim(*words, "--frame_skip_ref", "2", "--strict", "--map", str(folder), "--map-frames", "0")
    assert result.exit_code == 1
    assert _files(folder) == _names(0)


def test_frame_that_was_not_scored(words: tuple[str, ...], tmp_path: Path) -> None:
    """Known after scoring only: the scores are there."""
    scores = tmp_path / "scores.json"
    chosen = ("-o", str(scores), "--map", str(tmp_path / "maps"), "--map-frames", "7")
    fail(2, "frame 7 was not scored; 7 frames from 0 to 6 were", *words, *chosen)
    assert scores.exists()


# -- found before anything is scored ----------------------------------------------------------------------------------


def _refused(words: tuple[str, ...], folder: Path, message: str, *more: str) -> None:
    scores = folder.parent / "scores.json"
    fail(2, message, *words, "-o", str(scores), "--map", str(folder), *more)
    assert not scores.exists()


def test_choice_that_is_none_and_folder_that_cannot_be(words: tuple[str, ...], tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    _refused(words, taken, f"--map {taken} cannot be made: File exists")
    _refused(words, tmp_path / "maps", "'best:5' chooses no frames", "--map-frames", "best:5")
    refuse("--map DIR has to say where", *words, "--map-frames", "worst:5")


def test_missing_extra(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    _refused(words, tmp_path / "maps", "pip install 'vkssim[report]'")
    assert not (tmp_path / "maps").exists()


def test_what_cannot_be_read_again(words: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "maps"
    piped = tuple("-" if word.endswith("dis.yuv") else word for word in words)
    result = vkssim_process(*piped, "--map", str(folder), stdin=raw_bytes(DISTORTED))
    assert result.returncode == 2
    assert b"standard input cannot. Give the file itself" in result.stderr
    assert not folder.exists()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    _refused(tuple(str(pipe) if word.endswith("dis.yuv") else word for word in words), folder, f"{pipe} cannot")


def test_pictures_that_are_read_are_not_overwritten(tmp_path: Path) -> None:
    """The usual name of FFmpeg's pictures is that of maps as well."""
    pictures, maps = tmp_path / "pictures", tmp_path / "maps"
    pictures.mkdir()
    for number, frame in enumerate(LUMA):
        png(pictures / f"frame_{number:06d}.png", np.repeat(frame[:, :, None], 3, axis=2))
    (tmp_path / "link").symlink_to(pictures)
    before = {path.name: path.read_bytes() for path in pictures.iterdir()}
    sequence = str(pictures / "frame_%06d.png")
    for folder, reference in (
        (pictures, sequence),
        (tmp_path / "link", sequence),
        (pictures, str(pictures / "frame_000001.png")),
    ):
        words = ("score", "-r", reference, "-d", sequence, *TINY, "-q", "--map", str(folder))
        fail(2, f"--map {folder} would overwrite {pictures}/frame_00000", *words)
    succeed("score", "-r", sequence, "-d", sequence, *TINY, "-q", "--map", str(maps))
    assert len(_files(maps)) == 10
    assert {path.name: path.read_bytes() for path in pictures.iterdir()} == before
