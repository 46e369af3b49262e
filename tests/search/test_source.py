"""The clip that a search reads: its frames by number, and how long they are shown."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest
from av.stream import Disposition

import vkssim
from vkssim.errors import InputError
from vkssim.frames.options import RawDescription
from vkssim.search.command_line import command_line
from vkssim.search.encode import prepared
from vkssim.search.recipe import EncoderSpec, make_recipe
from vkssim.search.search_run import SearchRun
from vkssim.search.source import Scan, Source
from vkssim.utils.av_frames import plane_of

from ..frames.encoding import encode_frames, video_frame
from ..frames.reading import open_source
from ..support.coded.boxes import with_clap, with_matrix, with_pixel_crop
from ..support.coded.damage import with_stray_bytes
from .clips import ASKED, CUT, FRAMES, arguments, pictures, remuxed, source

pytestmark = pytest.mark.usefixtures("shared_device")


INDEXED: dict[str, Any] = {"codec": "ffv1"}
BARE: dict[str, Any] = {"codec": "libx264", "options": {"g": "12", "bf": "3", "qp": "20"}}
OPEN: dict[str, Any] = {"codec": "libx264", "options": {**BARE["options"], "x264-params": "open-gop=1"}}


@pytest.mark.parametrize(
    ("name", "how"), [("clip.mkv", INDEXED), ("clip.ts", BARE), ("clip.ts", OPEN)], ids=["index", "no index", "open groups"]
)
def test_frames_of_a_range_are_those_of_the_clip(tmp_path: Path, name: str, how: dict[str, Any]) -> None:
    """Without an index, a seek goes by decoding times, past the key frame; and no frame refers to earlier ones."""
    found = Source(source(tmp_path / name, count=96, **how))
    scan = found.scan()
    assert scan.count == 96
    every = [plane_of(frame, 0).copy() for frame in found.frames(0, 96, scan)]
    for first in range(1, 90, 5):
        some = [plane_of(frame, 0).copy() for frame in found.frames(first, 6, scan)]
        np.testing.assert_array_equal(some, every[first : first + 6])


def test_a_sequence_of_pictures(tmp_path: Path) -> None:
    chroma = np.full((24, 32), 128, np.uint8)
    for number, picture in enumerate(pictures(4)):
        frame = video_frame(64, 48, "yuvj420p", [picture.astype(np.uint8), chroma, chroma])
        encode_frames(tmp_path / f"{number:03d}.jpg", [frame], "mjpeg")
    found = Source(str(tmp_path / "%03d.jpg"))
    assert found.scan().count == 4
    with pytest.raises(InputError, match="no such files"):
        Source(str(tmp_path / "*.png"))


def test_the_stream_is_the_one_that_is_scored(tmp_path: Path) -> None:
    """The first with the default mark, which is not the first in the file here."""
    clip, path = source(tmp_path / "video.mkv"), str(tmp_path / "clip.mkv")
    small = encode_frames(tmp_path / "small.mkv", [video_frame(32, 32, "gray", [np.full((32, 32), 9, np.uint8)])], "ffv1")
    with av.open(small) as first, av.open(clip) as second, av.open(path, "w") as both:
        streams: list[Any] = [both.add_stream_from_template(read.streams.video[0]) for read in (first, second)]
        streams[0].disposition, streams[1].disposition = Disposition.comment, Disposition.default
        for read, stream in zip((first, second), streams, strict=True):
            for packet in read.demux(video=0):
                if packet.dts is not None:
                    packet.stream = stream
                    both.mux(packet)
    facts = Source(path).facts
    assert (facts.width, facts.height, facts.video) == (64, 48, 1)
    assert facts.notes == ("stream 1 was chosen from 0 (ffv1 32x32), 1 (ffv1 64x48, default)",)
    assert len(Source(path).scan().times) == FRAMES
    recipe = make_recipe(EncoderSpec(), facts)
    assert " -map 0:v:1 " in command_line(path, recipe, 0)


def test_grey_without_a_range_is_full(tmp_path: Path) -> None:
    """An encoder without a grey format gets its samples as they are, marked as full range."""
    ramp = np.tile(np.arange(64, dtype=np.uint8) * 4, (48, 1))
    path = encode_frames(tmp_path / "grey.mkv", [video_frame(64, 48, "gray", [ramp])], "ffv1")
    found = Source(path)
    recipe = make_recipe(EncoderSpec("libsvtav1"), found.facts)
    assert (found.facts.format, recipe.format, found.facts.colours[3]) == ("gray", "yuv420p", 2)
    ((before, _),) = prepared(found.frames(0, 1, found.scan()), recipe)
    np.testing.assert_array_equal(plane_of(before, 0), ramp)


def test_bit_rates_are_those_of_the_time_in_which_frames_are_shown(tmp_path: Path) -> None:
    """Ten frames a second after 25: what a recording of a screen is like."""
    frames = [video_frame(64, 48, "gray", [picture.astype(np.uint8)]) for picture in pictures()]
    times = [n / 25 for n in range(CUT)] + [CUT / 25 + n / 10 for n in range(FRAMES - CUT)]
    path = encode_frames(tmp_path / "screen.mkv", frames, "ffv1", times=times)
    trial = vkssim.search_setting(path, **arguments(targets="float_ssim=0.9", least=30, most=30, **ASKED)).choice.trial
    seconds = times[-1] * FRAMES / (FRAMES - 1)
    assert trial.kbps == pytest.approx(trial.bytes * 8 / seconds / 1000, abs=1e-3)


X264 = {"preset": "ultrafast", "qp": "4", "bf": "3", "x264-params": "b-adapt=0:keyint=12"}


@pytest.mark.parametrize("ending", ["mkv", "mp4"])
def test_first_frames_without_times(tmp_path: Path, ending: str) -> None:
    """FFmpeg reads no times before 0 of Matroska; the frame rate says when such frames are presented."""
    chroma = np.full((24, 32), 128, np.uint8)
    frames = [video_frame(64, 48, "yuv420p", [picture.astype(np.uint8), chroma, chroma]) for picture in pictures(16)]
    times = [(n - 8) / 25 + 0.02 for n in range(16)]
    h264: dict[str, Any] = {"options": {"preset": "ultrafast", "qp": "4"}, "muxer": {"avoid_negative_ts": "disabled"}}
    early = encode_frames(tmp_path / "early.mkv", frames, "libx264", times=times, **h264)
    with av.open(early) as container:
        assert [frame.pts is None for frame in container.decode(video=0)] == [True] * 8 + [False] * 8
    found = Source(early)
    scan = found.scan()
    np.testing.assert_allclose([float(time * found.facts.time_base) for time in scan.times], times, atol=2e-3)
    assert scan.renumbered
    out = tmp_path / f"out.{ending}"
    choice = vkssim.search_setting(early, **arguments(targets="float_ssim=0.5", output=out, **ASKED)).choice
    assert " -vf 'setpts=N/(25*TB)' " in choice.command
    written = Source(str(out))
    seconds = [float(time * written.facts.time_base) for time in written.scan().times]
    np.testing.assert_allclose(np.diff(seconds), [1 / 25] * 15, atol=2e-3)
    report = vkssim.score_files(early, out, features="float_ssim=scale=1")
    assert len(report.frames) == 16
    assert report.pooled()["float_ssim"]["mean"] == pytest.approx(choice.trial.values["float_ssim:mean"], abs=1e-6)


def test_frames_of_one_time_are_an_error_with_what_helps(tmp_path: Path) -> None:
    frames = [video_frame(64, 48, "gray", [picture.astype(np.uint8)]) for picture in pictures(4)]
    path = encode_frames(tmp_path / "clip.mkv", frames, "ffv1", times=[0.0, 0.04, 0.08, 0.12])
    same = remuxed(path, tmp_path / "same.mkv", times=[0, 40, 40, 80])
    with pytest.raises(InputError, match=r"frame 2 is presented at 0.040 s, .* -vf 'setpts=N/\(25\*TB\)' -c:v ffv1 FILE.mkv"):
        Source(same).scan()


@pytest.mark.parametrize("ending", ["avi", "mxf", "asf", "mpg"])
def test_b_frames_of_containers_that_do_not_say_when_each_is_shown(tmp_path: Path, ending: str) -> None:
    """The encoder gets rising times, so that the answer is that of a container which says when."""
    known, unknown = (source(tmp_path / f"clip.{one}", codec="libx264", options=X264) for one in ("mkv", ending))
    scan, facts = Source(unknown).scan(), Source(unknown).facts
    seconds = np.diff([float(time * facts.time_base) for time in scan.times])
    np.testing.assert_allclose(seconds, 1 / 25, atol=1e-9)
    assert scan.renumbered == (ending != "mpg")
    trial, other = (
        vkssim.search_setting(clip, **arguments(targets="float_ssim=0.93", **ASKED)).choice.trial for clip in (known, unknown)
    )
    assert trial.setting == other.setting
    assert trial.values == pytest.approx(other.values, abs=1e-3)
    assert trial.bytes == pytest.approx(other.bytes, rel=0.02)


def test_the_shape_of_samples_is_that_of_the_container(tmp_path: Path) -> None:
    """As players have it, if the stream states a different shape."""
    path = tmp_path / "clip.mp4"
    encode_frames(path, [av.VideoFrame(64, 48, "yuv420p")], "libx264", sample_aspect_ratio=Fraction(4, 3))
    data = path.read_bytes()
    stated = b"pasp" + struct.pack(">II", 4, 3)
    assert data.count(stated) == 1
    path.write_bytes(data.replace(stated, b"pasp" + struct.pack(">II", 2, 1)))
    with open_source(str(path), RawDescription()) as read:
        assert read.info.sample_aspect == Source(str(path)).facts.aspect == 2


def test_packed_samples_are_those_that_are_scored(tmp_path: Path) -> None:
    """As in frames of UYVY, whose first plane has chroma among the luma."""
    rng = np.random.default_rng(4)
    pictures = rng.integers(16, 235, (3, 48, 128), np.uint8)
    path = encode_frames(tmp_path / "clip.nut", [video_frame(64, 48, "uyvy422", [one]) for one in pictures], "rawvideo")
    found = Source(path)
    np.testing.assert_array_equal([plane_of(frame, 0) for frame in found.frames(0, 3, found.scan())], pictures[:, :, 1::2])


Shown = Callable[[bytes], bytes]
MIRRORED, UPSIDE_DOWN, TRANSPOSED = (-1, 0, 0, 1), (1, 0, 0, -1), (0, 1, 1, 0)


@pytest.mark.parametrize(
    ("ending", "shown", "size"),
    [
        ("mp4", lambda data: with_matrix(data, *MIRRORED), (64, 48)),
        ("mp4", lambda data: with_matrix(data, *UPSIDE_DOWN), (64, 48)),
        ("mp4", lambda data: with_matrix(data, *TRANSPOSED), (48, 64)),
        ("mp4", lambda data: with_clap(data, 40, 1, 32, 1, 2, 1, 0, 1), (40, 32)),
        ("mp4", lambda data: with_matrix(with_clap(data, 40, 1, 32, 1, 2, 1, 0, 1), *TRANSPOSED), (32, 40)),
        ("mkv", lambda data: with_pixel_crop(data, left=4, right=8, top=2, bottom=6), (52, 40)),
    ],
    ids=["mirrored", "upside down", "transposed", "clap", "clap, transposed", "PixelCrop"],
)
def test_what_is_encoded_is_what_is_shown(tmp_path: Path, ending: str, shown: Shown, size: tuple[int, int]) -> None:
    """Cropped and turned, in the trials and in the file, which then is scored against the clip as it is shown."""
    path, out = Path(source(tmp_path / f"clip.{ending}", codec="mpeg4", options={"q": "2"}, count=6)), tmp_path / "out.mkv"
    path.write_bytes(shown(path.read_bytes()))
    choice = vkssim.search_setting(
        path,
        **arguments(targets="float_ssim=0.5", least=24, most=24, output=out, **ASKED),
    ).choice
    report = vkssim.score_files(path, out, features="float_ssim=scale=1")
    assert (report.width, report.height) == size
    assert report.pooled()["float_ssim"]["mean"] == pytest.approx(choice.trial.values["float_ssim:mean"], abs=1e-6)
    assert choice.trial.values["float_ssim:mean"] > 0.9
    assert any("as its" in note for note in choice.notes)
    with open_source(str(out), RawDescription()) as written:
        assert written.info.notes == ()  # nothing is left to turn or to crop


def test_a_crop_between_samples_of_chroma_is_refused(tmp_path: Path) -> None:
    path = Path(source(tmp_path / "clip.mkv", count=2))
    path.write_bytes(with_pixel_crop(path.read_bytes(), left=3, right=5))
    with pytest.raises(InputError, match="begins between samples of chroma"):
        Source(str(path))


SEARCHES: dict[str, Callable[..., Any]] = {
    "search": partial(vkssim.search_setting, **arguments(targets="float_ssim=0.93", **ASKED)),
    "shots": partial(vkssim.search_shots, **arguments(targets="float_ssim=0.93", **ASKED)),
    "ladder": partial(vkssim.search_ladder, **arguments(heights=(96,), least_bitrate=60.0, most_bitrate=4000.0, **ASKED)),
}


def _large(path: Path, seed: int = 3) -> Path:
    """A clip that is large enough for a ladder, with its index at the start."""
    rng = np.random.default_rng(seed)
    texture = rng.integers(0, 200, (24, 30)).repeat(8, 0).repeat(8, 1) + rng.integers(0, 40, (192, 240))
    chroma = np.full((48, 64), 128, np.uint8)
    frames = [
        video_frame(128, 96, "yuv420p", [texture[n : n + 96, n : n + 128].astype(np.uint8), chroma, chroma]) for n in range(25)
    ]
    options = {"preset": "ultrafast", "qp": "10", "g": "5"}
    return Path(encode_frames(path, frames, "libx264", options=options, muxer={"movflags": "+faststart"}))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _large(tmp_path_factory.mktemp("large") / "clip.mp4")


def test_a_clip_that_was_cut_off_is_an_error(large: Path, tmp_path: Path) -> None:
    """As it is for `score_files`, before the first trial."""
    path = tmp_path / "cut.mp4"
    data = large.read_bytes()
    path.write_bytes(data[: len(data) * 6 // 10])
    with pytest.raises(InputError, match="cannot be decoded"):
        vkssim.score_files(path, path, features="float_ssim")
    for search in SEARCHES.values():
        with search(path) as running, pytest.raises(InputError, match=r"cut\.mp4: frame \d+ cannot be decoded"):
            next(iter(running))


@pytest.mark.parametrize(
    ("name", "said"), [("cut.mkv", "the file is cut off after this frame"), ("damaged.mp4", "damaged.mp4 is damaged from")]
)
def test_damage_of_the_clip_is_noted(large: Path, tmp_path: Path, name: str, said: str) -> None:
    """FFmpeg ends a Matroska file that is cut off without an error."""
    path = tmp_path / name
    data = _large(path).read_bytes()
    assert Source(str(path)).scan().warnings == []
    path.write_bytes(data[: len(data) * 6 // 10] if name == "cut.mkv" else with_stray_bytes(large, [7], seed=1))
    warnings = vkssim.score_files(path, path, features="float_ssim").warnings
    assert any(said in warning for warning in warnings)
    search, shots, ladder = (search(path) for search in SEARCHES.values())
    assert shots.report
    for notes in (search.choice.notes, shots.notes, ladder.choice.notes):
        assert [note for note in notes if name in note] == warnings


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_goes_on_from_stored_trials(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    encoded: list[int] = []
    original = SearchRun._encode_samples

    def counted(self: Any, recipe: Any, sampling: Any, place: int, output: Any) -> Any:
        encoded.append(place)
        return original(self, recipe, sampling, place, output)

    monkeypatch.setattr(SearchRun, "_encode_samples", counted)
    results = list(SEARCHES[kind](large))
    expected, encoded = encoded, []
    with SEARCHES[kind](large, resume=tmp_path / "state") as running:
        first = next(iter(running))
    assert [path.name for path in tmp_path.iterdir()] == ["state.journal"]
    again = list(SEARCHES[kind](large, resume=tmp_path / "state"))
    assert again[0] == first
    assert [getattr(one, "trial", one).setting for one in again] == [getattr(one, "trial", one).setting for one in results]
    assert encoded == expected
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "trials"), [("search", 0), ("search", 1), ("shots", 0), ("ladder", 0), ("ladder", 1)])
def test_a_clip_that_is_replaced_meanwhile_is_an_error(large: Path, tmp_path: Path, kind: str, trials: int) -> None:
    """After it was opened, or after so many trials."""
    path = tmp_path / "clip.mp4"
    shutil.copy(large, path)
    with SEARCHES[kind](path) as running:
        assert len(list(islice(running, trials))) == trials
        os.replace(_large(tmp_path / "other.mp4", seed=10), path)
        with pytest.raises(InputError, match=r"clip\.mp4 was changed while it was read"):
            list(running)


FACTS: Any = SimpleNamespace(rate=Fraction(25), time_base=Fraction(1, 100))


@pytest.mark.parametrize(
    ("times", "first", "count", "seconds"),
    [
        ([0, 4, 8, 12], 0, 4, 0.16),
        ([0, 4, 8, 48], 1, 2, 0.44),  # the next frame says when they end
        ([0, 4, 8, 48], 2, 2, 0.8),
        ([7], 0, 1, 0.04),
    ],
)
def test_how_long_frames_are_shown(times: list[int], first: int, count: int, seconds: float) -> None:
    assert Scan(times).seconds(first, count, FACTS) == pytest.approx(seconds)


def test_ticks_are_no_frame_rate(tmp_path: Path) -> None:
    """A file of times in milliseconds may state 1,000 as its frame rate, which SVT-AV1 refuses."""
    frames = [video_frame(64, 64, "gray", [np.full((64, 64), 9 * n, np.uint8)]) for n in range(12)]
    path = encode_frames(tmp_path / "ticks.mkv", frames, "ffv1", times=[n / 25 + n % 3 * 0.007 for n in range(12)], rate=1000)
    assert Source(path).facts.rate == 25
