"""Test that files are written only to the given path, whatever their names are and whatever exists already."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from vkssim.storage.atomic import replace_file

from ..support.clips import raw_bytes, raw_flags
from ..support.commands import TINY, vkssim
from ..support.pictures import clip

LUMA = clip(2, 16, 16)
HOW = (*raw_flags(LUMA), *TINY, "-q")


def contents(folder: Path) -> dict[str, bytes | str]:
    """The content of every file below a folder, and the targets of links."""
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """A folder with a clip and, beside it, the folders `work`, which others may fill, and `outside`."""
    for name in ("clips", "work", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "clips" / "ref.yuv").write_bytes(raw_bytes(LUMA))
    (tmp_path / "outside" / "precious").write_bytes(b"precious")
    return tmp_path / "clips"


def _batch(clips: Path, *distorted: str) -> tuple[int, Path]:
    """The exit code of a batch of these, and the folder that it may write in."""
    work = clips.parent / "work"
    manifest = clips / "manifest.jsonl"
    manifest.write_text("".join(json.dumps({"reference": "ref.yuv", "distorted": name}) + "\n" for name in distorted))
    where = ("-o", str(work / "out.csv"), "--frames", str(work / "frames"))
    return vkssim("batch", str(manifest), *HOW, *where).exit_code, work


def test_batch_writes_under_its_folders_alone(clips: Path) -> None:
    """Manifests may name clips anywhere, but no files that are written."""
    top = clips.parent
    names = ["../outside/a.yuv", str(top / "outside" / "b.yuv")]
    names += ["../clips/../outside/sub/c.yuv", "d/../..", "\x1b[2J e.yuv", ".."]
    (top / "outside" / "sub").mkdir()
    for name in (*names[:3], names[4]):
        (clips / name).write_bytes(raw_bytes(LUMA))
    before = contents(top)
    code, work = _batch(clips, *names, "../outside/absent", "/etc/passwd")
    assert code == 1
    written = {name for name in contents(top) if name not in before}
    assert written > {"work/out.csv", "clips/manifest.jsonl"}
    assert len([name for name in written if name.startswith("work/frames/")]) == 4, (
        "a file that is no whole number of frames has none"
    )
    assert {name for name in written if not name.startswith("work/")} == {"clips/manifest.jsonl"}
    assert {name: data for name, data in contents(top).items() if name in before} == before
    assert [path for path in (work / "frames").rglob("*") if path.parent != work / "frames"] == []


def test_clips_of_the_same_name_have_frames_of_their_own(clips: Path) -> None:
    names = ["a/x.yuv", "b/x.yuv", "b/x!.yuv", "b/x?.yuv"]
    for name in names:
        (clips / name).parent.mkdir(exist_ok=True)
        (clips / name).write_bytes(raw_bytes(LUMA))
    code, work = _batch(clips, *names)
    assert code == 0
    reports = [json.loads(path.read_bytes())["distorted"] for path in (work / "frames").iterdir()]
    assert sorted(reports) == sorted(str(clips / name) for name in names)


@pytest.mark.parametrize("name", ["a\0b", "", "-"])
def test_names_that_are_none_are_refused(clips: Path, name: str) -> None:
    code, work = _batch(clips, name)
    assert code == 2
    assert contents(work) == {}


@pytest.mark.parametrize("target", ["precious", "absent", "pipe"])
def test_links_in_the_folder_of_frames_are_not_followed(clips: Path, target: str) -> None:
    outside = clips.parent / "outside"
    os.mkfifo(outside / "pipe")
    code, work = _batch(clips, "ref.yuv")
    (file,) = (work / "frames").iterdir()
    written = file.read_bytes()
    file.unlink()
    file.symlink_to(outside / target)
    assert _batch(clips, "ref.yuv")[0] == code == 0
    assert json.loads(file.read_bytes())["frames"] == json.loads(written)["frames"]
    assert not file.is_symlink()
    assert contents(outside) == {"precious": b"precious"}


def test_score_replaces_links(clips: Path) -> None:
    """-o, --html and --map: the file that a link leads to stays as it is."""
    work, outside = clips.parent / "work", clips.parent / "outside"
    names = ["scores.json", "page.html", "frame_000000.png", "frame_000000.npy"]
    for name in names:
        (outside / name).write_bytes(b"precious")
        (work / name).symlink_to(outside / name)
    before = contents(outside)
    words = ("-o", str(work / names[0]), "--html", str(work / names[1]), "--map", str(work), "--map-frames", "0")
    result = vkssim("score", "-r", str(clips / "ref.yuv"), "-d", str(clips / "ref.yuv"), *HOW, *words)
    assert result.exit_code == 0, result.stderr
    assert contents(outside) == before
    assert set(contents(work)) == set(names)
    assert not any((work / name).is_symlink() for name in names)


def test_modes_of_what_is_written(tmp_path: Path) -> None:
    """The mode of a new file follows the umask, and an existing file keeps its mode; a link's target has no effect."""
    mask = os.umask(0o027)
    try:
        for name, there in (("new", None), ("private", 0o600), ("shared", 0o664)):
            path = tmp_path / name
            if there is not None:
                path.touch()
                path.chmod(there)
            replace_file(b"data", path)
            assert stat.S_IMODE(path.stat().st_mode) == (0o640 if there is None else there)
        (tmp_path / "link").symlink_to("shared")
        replace_file(b"data", tmp_path / "link")
        assert stat.S_IMODE((tmp_path / "link").lstat().st_mode) == 0o640
    finally:
        os.umask(mask)
