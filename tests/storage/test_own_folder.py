"""The folder of unfinished scores: what vkssim removes and writes there, and what it never touches."""

from __future__ import annotations

import errno
import os
import pickle
import stat
from functools import partial
from pathlib import Path

import pytest

from vkssim.errors import OutputError
from vkssim.host.device import Device
from vkssim.storage.folder import Folder
from vkssim.storage.own_folder import MARKER, OwnFolder, parts_folder

from ..support.buckets import Bucket, put_in_place
from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import TINY, vkssim
from ..support.damage import flipped_bits
from ..support.pictures import clip
from .test_writing import contents


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    return put_in_place(monkeypatch)


@pytest.fixture(params=["path", "file://", "s3://"])
def place(request: pytest.FixtureRequest, tmp_path: Path, bucket: Bucket) -> str:
    """A folder that is not there yet."""
    return {"path": str(tmp_path / "a.parts"), "file://": f"file://{tmp_path}/a.parts", "s3://": "s3://b/a.parts"}[
        request.param
    ]


@pytest.fixture
def folder(tmp_path: Path) -> OwnFolder:
    """A local folder with two files."""
    made = OwnFolder(tmp_path / "o.parts")
    made.make()
    made.write("k.parts", b"1")
    made.write("k.whole", b"2")
    return made


# -- its own ----------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_and_removed(place: str) -> None:
    folder = OwnFolder(place)
    assert (folder.exists(), folder.names(), folder.read("a.whole")) == (False, set(), None)
    folder.make()
    folder.make()
    for name in ("a.whole", "a.000000000000-32", "b.parts"):
        folder.write(name, b"old")
        folder.write(name, name.encode())
    other = pickle.loads(pickle.dumps(folder))
    assert other.exists()
    assert other.names() == {"a.whole", "a.000000000000-32", "b.parts"}
    assert (other.read("b.parts"), other.read("absent")) == (b"b.parts", None)
    other.remove(["a.whole", "absent"])
    assert folder.names() == {"a.000000000000-32", "b.parts"}
    folder.discard()
    folder.discard()
    assert (folder.exists(), folder.names()) == (False, set())


def test_nothing_of_it_is_left(tmp_path: Path, bucket: Bucket) -> None:
    for place in (str(tmp_path / "o.parts"), "s3://b/o.parts"):
        folder = OwnFolder(place)
        folder.make()
        folder.write("a.whole", b"1")
        folder.discard()
    assert list(tmp_path.iterdir()) == []
    assert Folder("s3://b").names() == set()


def test_it_is_the_users_alone(tmp_path: Path, folder: OwnFolder) -> None:
    assert stat.S_IMODE((tmp_path / "o.parts").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "o.parts").iterdir()} == {0o600}


def test_a_worker_makes_no_folder(place: str) -> None:
    """On a node without the share, for one, it would stay for good."""
    with pytest.raises(OutputError, match="the folder does not exist"):
        OwnFolder(place).write("a.whole", b"1")
    assert not OwnFolder(place).exists()


def test_what_a_killed_writer_left_goes_as_well(tmp_path: Path, folder: OwnFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_words, **_options: None)  # a process that is killed here removes nothing
        folder.write("k.000000000000-32", b"half")
    assert len(list((tmp_path / "o.parts").glob("*.tmp"))) == 1
    assert folder.names() == {"k.parts", "k.whole"}
    folder.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [[], [f"{MARKER}.12345678.tmp"]], ids=["empty", "half a marker"])
def test_killed_while_it_is_made_or_removed(tmp_path: Path, left: list[str]) -> None:
    """An empty folder without a marker is taken: nothing in it can be lost."""
    place = tmp_path / "o.parts"
    place.mkdir()
    for name in left:
        (place / name).touch()
    folder = OwnFolder(place)
    assert not folder.exists()
    folder.discard()
    folder.make()
    folder.write("k.whole", b"1")
    assert folder.read("k.whole") == b"1"
    folder.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path, folder: OwnFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    other = OwnFolder(tmp_path / "other.parts")
    for use in (partial(folder.write, "k.whole", b"new"), other.make):
        with pytest.raises(OutputError, match=r"\.parts cannot be used for unfinished scores: No space left on device"):
            use()
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["o.parts"]


# -- what is not its own ----------------------------------------------------------------------------------------------

MINE = {"000000000000-47": b"x", ".vkssim-notes.txt": b"y", "src/000000000000-47": b"x", "Maildir/new/1": b"mail"}
"""A user's files, some of them with names that look like vkssim's."""


def _fill(folder: Path) -> dict[str, bytes | str]:
    for name, data in MINE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return contents(folder)


def test_other_files_in_it_stay_and_the_folder_with_them(tmp_path: Path, folder: OwnFolder) -> None:
    place = tmp_path / "o.parts"
    _fill(place)
    assert folder.names() == {"k.parts", "k.whole"}
    folder.discard()
    assert {name: data for name, data in contents(place).items() if name != MARKER} == MINE
    folder.make()
    folder.write("k.whole", b"again")
    assert folder.names() == {"k.whole"}


def test_links_in_it_are_not_followed(tmp_path: Path, folder: OwnFolder) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    for path in [path for path in (tmp_path / "o.parts").iterdir() if path.name != MARKER]:
        path.unlink()
        path.symlink_to(victim)
    assert folder.read("k.parts") is None
    folder.write("k.parts", b"1")
    folder.discard()
    assert contents(tmp_path) == {"victim": b"precious"}


@pytest.mark.parametrize("moment", ["listdir", "unlink"])
def test_a_folder_that_is_exchanged_meanwhile_is_not_touched(
    tmp_path: Path, folder: OwnFolder, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    place, victim = tmp_path / "o.parts", tmp_path / "victim"
    victim.mkdir()
    for path in place.iterdir():
        (victim / path.name).write_bytes(b"precious")
    before, call = contents(victim), getattr(os, moment)

    def exchange(*words: object, **options: object) -> object:
        if not place.is_symlink():
            place.rename(tmp_path / "moved")
            place.symlink_to(victim)
        return call(*words, **options)

    monkeypatch.setattr(os, moment, exchange)
    folder.discard()
    assert contents(victim) == before
    assert place.is_symlink()


def test_a_folder_of_somebody_else_is_not_touched(tmp_path: Path, folder: OwnFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    before, user = contents(tmp_path), os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)
    for use in (folder.exists, folder.make, folder.discard, lambda: folder.write("k.whole", b"")):
        with pytest.raises(OutputError, match="belongs to user"):
            use()
    assert contents(tmp_path) == before


def test_a_damaged_marker_is_none(tmp_path: Path, folder: OwnFolder) -> None:
    """Whatever bit of it is another."""
    marker = tmp_path / "o.parts" / MARKER
    for damaged in flipped_bits(marker.read_bytes()):
        marker.write_bytes(damaged)
        before = contents(tmp_path)
        for use in (folder.exists, folder.make, folder.names, folder.discard):
            with pytest.raises(
                OutputError, match=r"o\.parts is in the way.*its marker \.vkssim-folder is damaged.*move it away"
            ):
                use()
        assert contents(tmp_path) == before


def test_objects_of_others_stay(bucket: Bucket) -> None:
    results, folder = Folder("s3://b"), OwnFolder("s3://b/o.parts")
    results.write("o.parts/mine", b"1")
    for use in (folder.exists, folder.make, folder.discard, lambda: folder.write("a.whole", b"")):
        with pytest.raises(OutputError, match=r"s3://b/o\.parts is in the way"):
            use()
    assert results.names() == {"o.parts/mine"}
    results.remove(["o.parts/mine"])
    folder.make()
    folder.write("a.whole", b"1")
    results.write("o.parts/mine", b"1")
    folder.discard()
    assert results.names() == {"o.parts/mine", f"o.parts/{MARKER}"}


# -- the command line -------------------------------------------------------------------------------------------------

LUMA = clip(2, 16, 16)


@pytest.fixture
def words(tmp_path: Path, device: Device, request: pytest.FixtureRequest) -> list[str]:
    """A command whose output is o.csv."""
    for name in ("ref.yuv", "dis.yuv"):
        write(tmp_path / name, raw_bytes(LUMA))
    write(tmp_path / "m.csv", b"reference,distorted\nref.yuv,dis.yuv\n")
    command, devices = request.param
    score = ["score", "-r", str(tmp_path / "ref.yuv"), "-d", str(tmp_path / "dis.yuv")]
    several = ["--feature", "float_ssim=scale=1", "--device", f"{device.info.uuid},{device.info.uuid}"]
    where = several if devices == 2 else TINY
    first = score if command == "score" else ["batch", str(tmp_path / "m.csv")]
    return [*first, *raw_flags(LUMA), *where, "-o", str(tmp_path / "o.csv")]


KINDS = ["link", "folder", "file", "pipe", "dangling link", "others may write"]


@pytest.mark.parametrize("words", [("score", 1), ("score", 2), ("batch", 1), ("batch", 2)], indirect=True, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_that_name_that_is_not_vkssims(tmp_path: Path, words: list[str], kind: str) -> None:
    """It is an error that names it, before anything is scored; whatever it is or leads to stays as it is."""
    place, victim = tmp_path / "o.csv.parts", tmp_path / "victim"
    if kind == "folder":
        _fill(place)
    elif kind == "file":
        place.write_bytes(b"precious")
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "others may write":
        OwnFolder(place).make()
        place.chmod(0o770)
    else:
        if kind == "link":
            _fill(victim)
        place.symlink_to(victim)
    before, names = contents(tmp_path), sorted(path.name for path in tmp_path.rglob("*"))
    result = vkssim(*words)
    assert result.exit_code == 2
    assert f"{place} is in the way: vkssim stores unfinished scores in a folder of that name" in result.stderr
    assert "It was not touched; move it away, or give another --output" in result.stderr
    assert contents(tmp_path) == before
    assert sorted(path.name for path in tmp_path.rglob("*")) == names


@pytest.mark.parametrize("words", [("score", 1), ("batch", 1)], indirect=True, ids=str)
def test_what_a_killed_run_on_several_devices_left_goes(tmp_path: Path, words: list[str]) -> None:
    folder = OwnFolder(parts_folder(tmp_path / "o.csv"))
    folder.make()
    folder.write("a.whole", b"unfinished")
    assert vkssim(*words).exit_code == 0
    assert not (tmp_path / "o.csv.parts").exists()
