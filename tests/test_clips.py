"""The public functions for clips: they read frames and pair them as `score_files` does."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import vkssim
from vkssim import Selection, SourcePictures
from vkssim.errors import InputError, OptionError
from vkssim.utils.av_frames import luma_checksum, plane_of

from .support.clips import raw_bytes
from .support.pictures import clip as moving

FIXTURES = Path(__file__).parents[1] / "fixtures"
REFERENCE, DISTORTED = FIXTURES / "bbb_576x324_ref.mp4", FIXTURES / "bbb_576x324_dis.mp4"


def _lumas(clip: object, *which: int, checksum: int | None = None) -> list[np.ndarray]:
    with vkssim.read_frames(clip, *which, checksum=checksum) as frames:  # type: ignore[arg-type]
        return [plane_of(frame, 0).copy() for frame in frames]


def test_facts_and_frames_of_a_clip() -> None:
    clip = vkssim.describe_clip(REFERENCE)
    facts = clip.facts
    assert (facts.width, facts.height, facts.format, facts.bits, float(facts.rate)) == (576, 324, "yuv420p", 8, 25.0)
    with vkssim.read_frames(clip) as frames:
        read = [(plane_of(frame, 0).shape, float(frame.pts * frame.time_base)) for frame in frames]
    assert {shape for shape, _ in read} == {(324, 576)}
    np.testing.assert_allclose(np.diff([time for _, time in read]), 1 / 25, atol=1e-9)
    assert (frames.warnings, frames.joins, frames.renumbered) == ((), (), False)


def test_a_range_is_found_by_a_seek_or_from_the_start() -> None:
    """A checksum of another frame leads to the right frames all the same: they are read from the start."""
    clip = vkssim.describe_clip(FIXTURES / "bbb_192x160_vp9.webm", pictures=SourcePictures(scale="96x80"))
    every = _lumas(clip)
    assert every[0].shape == (80, 96)
    with vkssim.read_frames(clip) as frames:
        checksums = [luma_checksum(frame) for frame in frames]
    for first in (1, len(every) // 2, len(every) - 2):
        for checksum in (None, checksums[first], checksums[0]):
            np.testing.assert_array_equal(_lumas(clip, first, 2, checksum=checksum), every[first : first + 2])


def test_more_frames_than_there_are_is_an_error() -> None:
    clip = vkssim.describe_clip(REFERENCE)
    count = len(_lumas(clip))
    with pytest.raises(InputError, match=f"it has {count} frames now"):
        _lumas(clip, count - 1, 2)


def test_a_clip_that_was_replaced_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    shutil.copy(REFERENCE, path)
    clip = vkssim.describe_clip(path)
    shutil.copy(DISTORTED, path)
    with pytest.raises(InputError, match="was changed while it was read"):
        _lumas(clip)


def test_raw_files_and_pipes_are_no_clips(tmp_path: Path) -> None:
    path = tmp_path / "clip.yuv"
    path.write_bytes(raw_bytes(moving(2, 64, 96)))
    with pytest.raises(InputError, match="it is no Y4M file and no container"):
        vkssim.describe_clip(path)
    with pytest.raises(InputError, match="is no ordinary file"):
        vkssim.describe_clip("-")


@pytest.mark.parametrize("sync", ["index", "pts"])
def test_pairs_are_those_that_are_scored(sync: str) -> None:
    selection = Selection(offset=-3, subsample=5, count=30)
    pairs = vkssim.pair_frames(REFERENCE, DISTORTED, selection=selection, sync=sync)
    report = vkssim.score_files(
        REFERENCE, DISTORTED, features="float_psnr", selection=selection, sync=sync, backend="cpu", decode="cpu"
    )
    assert pairs.count == len(report.frames)
    numbers = [frame.index + selection.first_reference for frame in report.frames]
    assert [pairs.frames(pair)[0] for pair in range(pairs.count)] == numbers
    assert pairs.frames(1) == (8, 5)
    assert (pairs.reference.codec, pairs.distorted.codec, pairs.reference.frames) == ("h264", "h264", 48)


def test_clips_that_cannot_be_compared_have_no_pairs() -> None:
    with pytest.raises(OptionError, match="`sync` is 'time'"):
        vkssim.pair_frames(REFERENCE, DISTORTED, sync="time")
    with pytest.raises(InputError, match="cannot be read"):
        vkssim.pair_frames(REFERENCE, "nothing.mp4")
