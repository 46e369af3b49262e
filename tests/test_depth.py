"""Samples that are larger than their depth allows end the run: the file has another depth than its description."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim import FrameScores, PictureOptions, RawDescription, Scorer, Selection, score_files
from vkssim.errors import FrameError, InputError
from vkssim.shaders.interface import Shape

from .engine.in_ranges import same_in_ranges, small_ranges
from .frames.encoding import encode_frames, video_frame
from .support.clips import raw_bytes, raw_flags, write, y4m_bytes
from .support.commands import TINY, vkssim
from .support.devices.geometry import use_shape
from .support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

FRAMES, BAD = 40, 33
KINDS = ("raw", "url", "pipe", "y4m", "container", "processed")
RAW = RawDescription(32, 24, "400", 10)
FEATURE = "float_ssim=scale=1:window=uniform8"  # which compiles soonest
CPU: dict[str, Any] = {"features": "float_psnr", "backend": "cpu", "raw": RAW}


@pytest.fixture
def wrong() -> np.ndarray:
    """A clip said to be of 10 bits."""
    luma = clip(FRAMES, bits=10)
    luma[BAD, 23, 31] = 1024
    luma[BAD + 3, 0, 0] = 65535
    return luma


def _clip(folder: Path, kind: str, luma: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(folder / "clip")
    if kind == "y4m":
        return write(folder / "clip.y4m", y4m_bytes(luma, "monop10", "400"))
    if kind == "container":
        return encode_frames(folder / "clip.nut", [video_frame(32, 24, "gray10le", [picture]) for picture in luma], "rawvideo")
    write(folder / "clip", raw_bytes(luma, "400"))
    if kind == "pipe":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / "clip").read_bytes())))
        return "-"
    return f"file://{name}" if kind == "url" else name


@pytest.mark.parametrize("backend", ["vulkan", "cpu"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_beyond_the_depth_ends_the_run(
    tmp_path: Path, wrong: np.ndarray, kind: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frames before it are scored; the error names the frame and the value."""
    sound = write(tmp_path / "sound", raw_bytes(clip(FRAMES, bits=10), "400"))
    paths = [sound, _clip(tmp_path, kind, wrong, monkeypatch)]
    pictures = PictureOptions(crop="32x20+0+4") if kind == "processed" else PictureOptions()
    for reference, distorted in (paths,) if kind == "pipe" else (paths, paths[::-1]):
        with pytest.raises(
            InputError, match=f"frame {BAD} has a sample of 1024 in its plane y, and 1023 is the largest"
        ) as caught:
            score_files(reference, distorted, features=FEATURE, raw=RAW, backend=backend, pictures=pictures)
        assert caught.value.report is not None
        np.testing.assert_array_equal(caught.value.report.column("float_ssim"), np.ones(BAD))


def test_frames_that_are_not_scored_do_not_matter(tmp_path: Path, wrong: np.ndarray) -> None:
    path = write(tmp_path / "clip", raw_bytes(wrong, "400"))
    words = ("score", "-r", path, "-d", path, *raw_flags(wrong, "400", 10), *TINY, "-q")
    assert vkssim(*words, "--frame_cnt", str(BAD)).exit_code == 0
    result = vkssim(*words, "--subsample", "3")
    assert (result.exit_code, f"frame {BAD} has a sample of 1024" in result.stderr) == (2, True)
    assert vkssim(*words, "--frame_skip_ref", str(BAD + 4), "--frame_skip_dist", str(BAD + 4)).exit_code == 0


@pytest.mark.parametrize(
    ("selection", "scored"),
    [
        (Selection(start=5, subsample=4), 7),
        (Selection(start=5), 28),
        (Selection(skip_reference=1, skip_distorted=3, start=10), 21),
        (Selection(offset=9, subsample=8), 3),
    ],
)
@pytest.mark.parametrize("kind", ["raw", "y4m", "processed"])
def test_the_frame_is_that_of_the_clip(
    tmp_path: Path, wrong: np.ndarray, kind: str, selection: Selection, scored: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever frames are compared, however many threads read them, and in ranges."""
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    small_ranges(monkeypatch, 4)
    sound = write(tmp_path / "sound", raw_bytes(clip(FRAMES + 9, bits=10), "400"))
    distorted = _clip(tmp_path, kind, wrong, monkeypatch)
    pictures = PictureOptions(crop="32x20+0+4") if kind == "processed" else PictureOptions()
    words = f"clip(.y4m)?: frame {BAD} has a sample of 1024"
    with pytest.raises(InputError, match=words) as caught:
        score_files(sound, distorted, **CPU, selection=selection, pictures=pictures)
    assert caught.value.report is not None
    assert len(caught.value.report.frames) == scored
    assert same_in_ranges(sound, distorted, RAW, selection=selection, pictures=pictures) == 1


def test_chroma_matters_if_it_is_scored(tmp_path: Path) -> None:
    luma = clip(3, bits=10)
    data = np.frombuffer(raw_bytes(luma), "<u2").reshape(3, -1) & 1023
    data[2, 32 * 24 + 5] = 2000
    path = write(tmp_path / "clip", data.astype("<u2").tobytes())
    raw = replace(RAW, pixel_format="420")
    score_files(path, path, features=FEATURE, raw=raw)
    with pytest.raises(InputError, match="frame 2 has a sample of 2000 in its plane cb"):
        score_files(path, path, features=FEATURE, raw=raw, planes="yuv")


@pytest.mark.parametrize("bits", [8, 16])
def test_depths_that_fill_their_type_have_no_larger_samples(tmp_path: Path, bits: int) -> None:
    luma = np.full((2, 24, 32), 2**bits - 1, np.uint8 if bits == 8 else np.uint16)
    path = write(tmp_path / "clip", raw_bytes(luma, "400"))
    report = score_files(path, path, features=FEATURE, raw=replace(RAW, bits=bits))
    assert report.column("float_ssim").tolist() == [1, 1]


# -- arrays -----------------------------------------------------------------------------------------------------------


def _scorer(backend: str, **options: Any) -> Scorer:
    return Scorer(32, 24, **{"bits": 10, "features": ["float_ssim"], "backend": backend, "batch": 4, **options})


@pytest.mark.parametrize("by", ["feed", "reserve"])
@pytest.mark.parametrize("backend", ["vulkan", "cpu"])
def test_frames_of_a_scorer(backend: str, by: str) -> None:
    """The scores before it are given, and no others are taken."""
    sound = clip(8, bits=10)
    bad = sound.copy()
    bad[5, 3, 4] = 1024
    scores: list[FrameScores] = []
    with _scorer(backend) as scorer:

        def take(reference: np.ndarray, distorted: np.ndarray) -> list[FrameScores]:
            if by == "feed":
                return scorer.feed(reference, distorted)
            for target, source in zip(scorer.reserve(), (reference, distorted), strict=True):
                target[:] = source
            return scorer.commit()

        def score() -> None:
            for pair in zip(sound, bad, strict=True):
                scores.extend(take(*pair))
            scores.extend(scorer.flush())

        with pytest.raises(FrameError, match="the distorted frame 5 has a sample of 1024, and 1023 is the largest"):
            score()
        scores += scorer.flush()
        with pytest.raises(FrameError, match="frames from 5 on are not scored"):
            scorer.feed(sound[0], sound[0])
    assert [score.metrics["float_ssim"] for score in scores] == [1] * 5


@pytest.mark.parametrize(("dtype", "peak"), [(np.uint16, 1023), (np.uint16, 1000), (np.uint8, 100)])
def test_on_a_gpu_the_kernels_look(monkeypatch: pytest.MonkeyPatch, dtype: type[np.integer[Any]], peak: int) -> None:
    """In every plane, and not in the padding of rows."""
    use_shape(monkeypatch, Shape.STAGED)
    frames = np.random.default_rng(0).integers(0, peak + 1, (3, 70, 41)).astype(dtype)
    wrong = frames.copy()
    wrong[2, 69, 40] = peak + 1
    kind: dict[str, Any] = {"dtype": dtype, "data_range": peak, "planes": "yuv", "chroma": "444"}
    with Scorer(41, 70, features="float_ssim=scale=1", batch=3, **kind) as scorer:
        backend: Any = scorer._backend
        for slot in backend._backend._executor.slots:
            for memory in slot.inputs.values():
                memory[:] = 255
        assert len([*scorer.score([(tuple(frames), tuple(frames))] * 4)]) == 4
        with pytest.raises(FrameError, match=f"the distorted frame 6 has a sample of {peak + 1}, and {peak} is the largest"):
            list(scorer.score([(tuple(frames), tuple(frames))] * 2 + [(tuple(frames), tuple(wrong))]))


@pytest.mark.parametrize("kind", ["raw", "url"])
@pytest.mark.parametrize("bits", [12, 16])
def test_samples_of_a_smaller_depth_are_warned_of(
    tmp_path: Path, kind: str, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten bits that are read as more score too high; a clip that begins in the dark is not suspected."""
    luma = clip(FRAMES, bits=10)
    raw = replace(RAW, bits=bits)
    path = _clip(tmp_path, kind, luma, monkeypatch)
    report = score_files(path, path, **{**CPU, "raw": raw})
    (warning,) = report.warnings
    assert "no sample of the luma exceeds 1023 in 16 frames all over the clip" in warning
    assert "if the samples have 10 bits, --bitdepth 10 reads them" in warning
    assert score_files(path, path, **CPU).warnings == []
    luma[FRAMES - 1, 3, 3] = 2 ** (bits - 2)
    path = _clip(tmp_path, kind, luma, monkeypatch)
    assert score_files(path, path, **{**CPU, "raw": raw}).warnings == []
    bytes_in_words = _clip(tmp_path, kind, clip(FRAMES).astype(np.uint16), monkeypatch)
    assert score_files(bytes_in_words, bytes_in_words, **CPU).warnings[0].endswith("8 bits, convert them to bytes")
