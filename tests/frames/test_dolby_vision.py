"""Dolby Vision whose colours are defined by metadata alone, which players apply and vkssim does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import pytest

from vkssim.errors import OutputError
from vkssim.search.search import search_setting, search_shots
from vkssim.search.source import Source

from ..search.clips import ASKED as QUICK
from ..search.clips import arguments
from ..support.clips import write
from ..support.coded.boxes import with_dolby_vision
from ..support.commands import TINY, fail, succeed
from .encoding import encode_frames, moving_frames
from .reading import open_source

ASKED: dict[str, Any] = {**QUICK, "targets": "float_ssim=0.1", "backend": "cpu"}


@pytest.fixture(scope="module")
def hevc(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An MP4 of HEVC without the record."""
    frames = [frame.reformat(format="yuv420p10le") for frame in moving_frames(3, 48, 64)]
    params = "log-level=none:frame-threads=1:pools=none"
    path = tmp_path_factory.mktemp("clips") / "clip.mp4"
    return Path(encode_frames(path, frames, "libx265", options={"preset": "ultrafast", "x265-params": params})).read_bytes()


def _in_matroska(path: str) -> str:
    name = str(Path(path).with_suffix(".mkv"))
    with av.open(path) as read, av.open(name, "w") as written:
        stream = written.add_stream_from_template(read.streams.video[0])
        for packet in read.demux(video=0):
            if packet.size:
                packet.stream = stream
                written.mux(packet)
    return name


@pytest.mark.parametrize("ending", ["mp4", "mkv"])
@pytest.mark.parametrize(
    ("profile", "compatibility", "own"),
    [(5, 0, True), (7, 6, False), (8, 1, False), (8, 4, False), (10, 0, True), (10, 1, False)],
)
def test_profiles_with_colours_of_their_own_are_warned_of(
    tmp_path: Path, hevc: bytes, profile: int, compatibility: int, own: bool, ending: str
) -> None:
    path = write(tmp_path / "clip.mp4", with_dolby_vision(hevc, profile, compatibility))
    with open_source(path if ending == "mp4" else _in_matroska(path)) as source:
        warnings = source.info.warnings
    assert [f"clip.{ending} is Dolby Vision of profile {profile}: its colours" in text for text in warnings] == [True] * own


def test_score_warns(tmp_path: Path, hevc: bytes) -> None:
    plain, path = write(tmp_path / "plain.mp4", hevc), write(tmp_path / "clip.mp4", with_dolby_vision(hevc, 5, 0))
    assert "is Dolby Vision" not in succeed("score", "-r", plain, "-d", plain, *TINY).stderr
    said = succeed("score", "-r", plain, "-d", path, *TINY).stderr
    assert f"warning: {path} is Dolby Vision of profile 5: its colours are defined by metadata" in said


def test_search_writes_no_file_with_wrong_colours(tmp_path: Path, hevc: bytes) -> None:
    path, out = write(tmp_path / "clip.mp4", with_dolby_vision(hevc, 5, 0)), tmp_path / "out.mkv"
    for search in (search_setting, search_shots):
        with pytest.raises(OutputError, match=r"is Dolby Vision of profile 5, .* write the file all the same with `force`"):
            search(path, output=out, **arguments(**ASKED))
    words = ("search", path, "-o", str(out), "--backend", "cpu")
    assert "all the same with --force" in fail(2, "is Dolby Vision of profile 5", *words).stderr
    assert not out.exists()
    assert any("is Dolby Vision of profile 5" in note for note in Source(path).facts.notes)


def test_search_writes_it_all_the_same_by_force(tmp_path: Path, hevc: bytes) -> None:
    path, out = write(tmp_path / "clip.mp4", with_dolby_vision(hevc, 5, 0)), tmp_path / "out.mkv"
    choice = search_setting(path, output=out, force=True, **arguments(**ASKED, least=30, most=30)).choice
    assert choice.meets
    with open_source(str(out)) as source:
        assert source.info.warnings == ()
