"""The file that a search writes: what it may not replace, and what it takes over from the source."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import imageio_ffmpeg
import numpy as np
import pytest

import vkssim
from vkssim.errors import OutputError
from vkssim.storage.checked_journal import ENCODE, CheckedJournal
from vkssim.storage.unfinished import UnfinishedFile, _record_path, remove_unfinished

from ..frames.encoding import encode_frames
from ..support.commands import python_process, run_program
from .clips import ASKED, FRAMES, QUICK, arguments, source

pytestmark = pytest.mark.usefixtures("shared_device")
WHICH: dict[str, Any] = {**ASKED, "targets": "float_ssim=0.5"}
ALPHA = "its alpha is left out"
HIDDEN = 13  # frames that an edit list hides


@pytest.mark.parametrize("name", ["master.mkv", "link.mkv", "hard.mkv", "folder/../master.mkv"])
@pytest.mark.parametrize("door", [vkssim.search_setting, vkssim.search_shots])
def test_the_source_is_not_overwritten(clip: str, tmp_path: Path, name: str, door: Any) -> None:
    """From Python, as from the command line, by whatever name."""
    (tmp_path / "folder").mkdir()
    master = tmp_path / "master.mkv"
    master.write_bytes(Path(clip).read_bytes())
    (tmp_path / "link.mkv").symlink_to(master)
    (tmp_path / "hard.mkv").hardlink_to(master)
    with pytest.raises(OutputError, match=r"`output` .* would overwrite the source"):
        door(master, **arguments(output=tmp_path / name, **WHICH))
    assert master.read_bytes() == Path(clip).read_bytes()


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("door", [vkssim.search_setting, vkssim.search_shots])
def test_a_link_stays_and_its_file_is_written(clip: str, tmp_path: Path, exists: bool, door: Any) -> None:
    """Under any name."""
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "video.tmp", tmp_path / "out.mkv"
    if exists:
        real.write_bytes(b"before")
    link.symlink_to(Path("folder") / "video.tmp")
    search = door(clip, **arguments(output=link, **WHICH))
    assert list(search)
    assert link.is_symlink()
    assert not real.is_symlink()
    with av.open(str(real)) as written:
        assert "matroska" in written.format.name
    assert [path.name for path in real.parent.iterdir()] == [real.name]


_KILLED = """
import os, signal, sys
import vkssim
from vkssim.search.output import VideoOutput

VideoOutput.keep = lambda _: os.kill(os.getpid(), signal.SIGKILL)
encoder = vkssim.EncoderSpec("libx264", "preset=ultrafast")
search = vkssim.search_setting(
    sys.argv[1], encoder=encoder, targets="float_ssim=0.5", features="float_ssim=scale=1", output=sys.argv[2], backend="cpu"
)
search.choice
"""


def test_the_file_of_a_killed_search_is_removed_by_the_next_one(clip: str, tmp_path: Path) -> None:
    """Not by its name alone: only the file that the record names."""
    out, foreign = tmp_path / f"{'long' * 62}.mkv", tmp_path / ".vkssim-0123456789abcdef.mkv"
    foreign.write_bytes(b"of another program")
    killed = python_process("-c", _KILLED, clip, str(out))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (unfinished,) = set(tmp_path.glob(".vkssim-*.mkv")) - {foreign}
    assert not out.exists()
    search = vkssim.search_setting(clip, **arguments(output=out, **WHICH))
    assert next(iter(search))
    assert not unfinished.exists()  # before anything is written
    assert search.choice.meets
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([foreign.name, out.name])


def test_two_processes_never_write_one_file(tmp_path: Path) -> None:
    with UnfinishedFile(tmp_path / "out.mkv", ".mkv") as first:
        for write in (lambda: UnfinishedFile(tmp_path / "out.mkv", ".mkv"), lambda: remove_unfinished(tmp_path / "out.mkv")):
            with pytest.raises(OutputError, match="another process is writing the same output"):
                write()
        assert Path(first.name).exists()
        with UnfinishedFile(tmp_path / "other.mkv", ".mkv"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_record_names_files_of_its_own_kind_alone(tmp_path: Path) -> None:
    """A file that somebody put there must not have other files removed."""
    out, precious = tmp_path / "out.mkv", tmp_path / "precious.mkv"
    precious.write_bytes(b"of the user")
    with CheckedJournal(_record_path(out), ENCODE, lambda _: None) as record:
        record.begin({"unfinished": precious.name})
    remove_unfinished(out)
    assert precious.exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.webm", "WebM holds VP9 and AV1, not what libx264 makes"),
        ("loop.mkv", "is a symbolic link that leads to itself"),
        ("gone.mkv", r"the folder .*no folder does not exist"),
        ("pipe.mkv", "is a device or a pipe"),
        ("picture.mkv", "would overwrite the source"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, name: str, text: str) -> None:
    """A picture of the source is one of its files, by whatever name; and nothing waits for a pipe."""
    for number in range(3):
        encode_frames(tmp_path / f"{number}.png", [av.VideoFrame(64, 48, "gray")], "png")
    (tmp_path / "loop.mkv").symlink_to(tmp_path / "loop.mkv")
    (tmp_path / "gone.mkv").symlink_to(tmp_path / "no folder" / "out.mkv")
    os.mkfifo(tmp_path / "pipe.mkv")
    (tmp_path / "picture.mkv").hardlink_to(tmp_path / "1.png")
    with pytest.raises(OutputError, match=text):
        vkssim.search_setting(tmp_path / "%d.png", **arguments(output=tmp_path / name, **WHICH))
    assert stat.S_ISFIFO((tmp_path / "pipe.mkv").stat().st_mode)


def test_the_mode_of_a_file_is_kept(clip: str, tmp_path: Path) -> None:
    out, new = tmp_path / "out.mkv", tmp_path / "new.mkv"
    out.write_text("old")
    out.chmod(0o640)
    while_written: set[int] = set()

    def look(_done: int, _total: int | None) -> None:
        while_written.update(_mode(path) for path in tmp_path.glob(".vkssim-*"))

    for path in (out, new):
        assert vkssim.search_setting(clip, **arguments(output=path, least=30, most=30, progress=look, **WHICH)).choice.meets
    (tmp_path / "plain").touch()
    assert (_mode(out), _mode(new)) == (0o640, _mode(tmp_path / "plain"))
    assert while_written == {0o600}, "the file that it replaces may be private"
    assert out.stat().st_size > 100


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _trimmed(path: Path, clip: str) -> str:
    """Copy a clip so that an edit list hides its first frames, and the sound that goes with them."""
    with av.open(clip) as read, av.open(str(path), "w") as written:
        streams = {stream.index: written.add_stream_from_template(stream) for stream in read.streams}
        for packet in read.demux():
            if packet.dts is not None and packet.pts is not None:
                assert packet.time_base is not None
                hidden = round(Fraction(HIDDEN, 25) / packet.time_base)
                packet.stream = streams[packet.stream.index]
                packet.pts, packet.dts = packet.pts - hidden, packet.dts - hidden
                written.mux(packet)
    return str(path)


def _shown(path: str | Path) -> tuple[list[float], dict[float, bytes]]:
    """When frames are shown, and the packets of sound by when they are heard."""

    def seconds(one: Any) -> float:
        return round(float(one.pts * one.time_base), 3)

    with av.open(str(path)) as container:
        frames = [seconds(frame) for frame in container.decode(video=0)]
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(audio=0) if packet.size and not packet.is_discard]
        return frames, {seconds(packet): bytes(packet) for packet in packets}


@pytest.mark.parametrize("codec", ["aac", "libopus"])
def test_what_an_edit_list_hides_is_neither_seen_nor_heard(tmp_path: Path, codec: str) -> None:
    """Opus has a lead of its own that is not heard, which any file can say; AAC has not."""
    whole = source(tmp_path / "whole.mp4", codec="libx264", options={"preset": "ultrafast", "qp": "4"}, sound=codec)
    clip = _trimmed(tmp_path / "clip.mp4", whole)
    frames, sound = _shown(clip)
    assert len(frames) == FRAMES - HIDDEN
    for name in ("out.mkv", "out.mp4"):
        choice = vkssim.search_setting(clip, **arguments(output=tmp_path / name, least=30, most=30, **WHICH)).choice
        assert choice.meets
        copied_frames, copied_sound = _shown(tmp_path / name)
        assert copied_frames == pytest.approx(frames, abs=0.001)
        expected = {time: data for time, data in sound.items() if time >= 0 or name == "out.mp4" or codec == "libopus"}
        assert list(copied_sound) == pytest.approx(list(expected), abs=0.0011)  # Matroska counts milliseconds
        assert list(copied_sound.values()) == list(expected.values())


@pytest.mark.parametrize(
    ("layout", "encoder", "notes"),
    [
        ("yuva444p", "libsvtav1", (ALPHA, "samples of chroma are left out: the encode is 4:2:0, the source 4:4:4")),
        *(("yuva420p", encoder, (ALPHA,)) for encoder in ("libx264", "libx265", "libvpx-vp9")),
        ("yuv444p", "libx264", ()),
        ("gray", "libsvtav1", ()),
    ],
)
def test_what_the_pixel_format_of_an_encode_loses_is_noted(
    tmp_path: Path, layout: str, encoder: str, notes: tuple[str, ...]
) -> None:
    frame = av.VideoFrame(64, 64, layout)
    path = encode_frames(tmp_path / "clip.mkv", [frame, frame], "ffv1")
    which = {
        **WHICH,
        "encoder": encoder,
        "options": QUICK.get(encoder, ()),
        "targets": "float_ssim=0.1",
        "least": 30,
        "most": 30,
    }
    assert vkssim.search_setting(path, **arguments(**which)).choice.notes == notes
    assert tuple(vkssim.search_shots(path, **arguments(**which)).notes) == notes
    ladder = {**which, "heights": [64], "fixed": None, "score": "float_ssim", "trials": 1}
    found = vkssim.search_ladder(path, **arguments(**{name: ladder[name] for name in ladder if name not in ("least", "most")}))
    assert found.choice.notes[: len(notes)] == notes


def test_the_temporary_folder_may_have_a_colon(clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """x265 takes the name of its statistics from a list of options with colons between them."""
    (tmp_path / "a:b").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a:b"))
    for encoder in ("libx264", "libx265"):
        which = {**WHICH, "encoder": encoder, "options": QUICK[encoder]}
        limits: dict[str, Any] = {"parameter": "bitrate", "least": 500, "most": 500}
        assert vkssim.search_setting(clip, **arguments(two_pass=True, **limits, **which)).choice.meets


@pytest.mark.parametrize("encoder", ["libx264", "libx265"])
def test_the_printed_command_gives_the_same_stream(tmp_path: Path, encoder: str) -> None:
    """Its threads are those of FFmpeg, too: x264 cuts frames into slices if several threads work on one frame."""
    rng = np.random.default_rng(8)
    lumas = (rng.integers(0, 235, (12, 16)).repeat(16, 0).repeat(16, 1) for _ in range(6))
    frames = [av.VideoFrame.from_ndarray(luma.astype(np.uint8), "gray").reformat(format="yuv420p") for luma in lumas]
    path, written = encode_frames(tmp_path / "clip.mkv", frames, "ffv1"), tmp_path / "written.mkv"
    which: dict[str, Any] = {**WHICH, "encoder": encoder, "options": QUICK[encoder]}
    choice = vkssim.search_setting(path, **arguments(output=str(written), **which)).choice
    _, *words, name = shlex.split(choice.command)
    process = run_program(imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", *words, name, cwd=tmp_path, text=True)
    assert process.returncode == 0, process.stderr
    assert _sizes(tmp_path / name) == _sizes(written)


def _sizes(path: Path) -> list[int]:
    """Return the bytes of each packet."""
    with av.open(str(path)) as container:
        return [packet.size for packet in container.demux(video=0) if packet.size]
