"""Inputs that change while they are read: scores of two files never look like those of one."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkssim import RawDescription, score_files
from vkssim.engine import worker
from vkssim.engine.run import score_range
from vkssim.errors import InputError
from vkssim.maps.frames import frame_pictures
from vkssim.report.results import ScoreReport
from vkssim.storage.inputs import Opened

from ..frames.encoding import encode_frames, video_frame
from ..frames.reading import describe
from ..ladder.ladders import lossless
from ..support.buckets import put_in_place
from ..support.clips import raw_bytes, raw_flags, write, y4m_bytes
from ..support.commands import TINY, vkssim
from ..support.pictures import clip
from .in_ranges import in_ranges, small_ranges

LUMA = clip(40)
OTHER = np.roll(LUMA, 5, axis=2)
RAW = describe(LUMA)
CPU: dict[str, Any] = {"features": "float_ssim=scale=1", "backend": "cpu"}
CHANGED = "was changed while it was read"
TOUCHED = "Score it again if it may have been written to"
SAMPLED = 4096  # bytes at the start, which are sampled


def _overwrite(path: Path) -> None:
    """As `cp -p` and rsync --inplace do: the same inode, size and time of change."""
    found = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _overwrite_a_block(path: Path) -> None:
    """As rsync --inplace does with one block that is no sample: the same size and time of change."""
    found = path.stat()
    with path.open("r+b") as file:
        file.seek(SAMPLED)
        block = file.read(64)
        file.seek(SAMPLED)
        file.write(bytes(255 - value for value in block))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(len(raw_bytes(LUMA[:1]))))


def _replace(path: Path) -> None:
    path.with_name("new").write_bytes(path.read_bytes())
    path.with_name("new").replace(path)


def _touch(path: Path) -> None:
    os.utime(path)


CHANGES = (_overwrite, _append, _replace, _touch, Path.unlink)


def _once(change: Callable[[Path], object], path: Path) -> Callable[..., None]:
    """Change a file when the first frames have been scored."""
    left = [change]

    def hook(*_: object) -> None:
        while left:
            time.sleep(0.01)
            left.pop()(path)

    return hook


def _pair(folder: Path, kind: str) -> tuple[Path, Path, RawDescription]:
    if kind == "mkv":
        for name, luma in (("r", LUMA), ("d", OTHER)):
            lossless(folder / f"{name}.mkv", luma)
        return folder / "r.mkv", folder / "d.mkv", RawDescription()
    make, raw = (y4m_bytes, RawDescription()) if kind == "y4m" else (raw_bytes, RAW)
    first, second = (Path(write(folder / f"{name}.{kind}", make(luma))) for name, luma in (("r", LUMA), ("d", OTHER)))
    return first, second, raw


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["yuv", "y4m", "mkv"])
def test_scores_are_refused_and_kept(tmp_path: Path, kind: str, change: Callable[[Path], object]) -> None:
    reference, distorted, raw = _pair(tmp_path, kind)
    with pytest.raises(InputError, match=f"{distorted.name} {CHANGED}") as raised:
        score_files(reference, distorted, raw=raw, progress=_once(change, distorted), **CPU)
    assert raised.value.report is not None
    assert raised.value.report.frames


def _link(path: Path) -> None:
    path.chmod(0o600)
    path.with_name(f"{path.name} too").hardlink_to(path)


@pytest.mark.parametrize(
    ("kind", "change"), [("yuv", _overwrite_a_block), ("y4m", _overwrite_a_block), ("yuv", _link), ("mkv", _link)]
)
def test_a_changed_status_is_warned_of(tmp_path: Path, kind: str, change: Callable[[Path], object]) -> None:
    """Nothing tells new names and permissions from a rewrite between the samples that restores the time."""
    reference, distorted, raw = _pair(tmp_path, kind)
    assert TOUCHED not in str(score_files(reference, distorted, raw=raw, **CPU).warnings)
    report = score_files(reference, distorted, raw=raw, progress=_once(change, distorted), **CPU)
    assert len(report.frames) == len(LUMA)
    (warning,) = [warning for warning in report.warnings if warning.endswith(TOUCHED)]
    assert warning.startswith(f"the status of {distorted} changed while it was read")


def test_a_changed_status_of_a_sequence(tmp_path: Path) -> None:
    pictures = [
        encode_frames(tmp_path / f"{number}.png", [video_frame(32, 24, "gray", [LUMA[number]])], "png") for number in range(4)
    ]
    name = str(tmp_path / "%d.png")
    for change, touched in ((str, False), (_link, True)):
        report = score_files(name, name, progress=_once(change, Path(pictures[1])), **CPU)
        assert (TOUCHED in str(report.warnings)) == touched


def test_a_batch_writes_why_and_scores_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three pairs of one reference one changes on the way."""
    reference, distorted, _ = _pair(tmp_path, "yuv")
    for name in ("1", "2"):
        (tmp_path / name).write_bytes(distorted.read_bytes())
    rows = "".join(f"{reference},{name}\n" for name in ("1", "2", distorted.name))
    (tmp_path / "ladder.csv").write_text(f"reference,distorted\n{rows}")
    words = ("batch", str(tmp_path / "ladder.csv"), "-o", str(tmp_path / "out.jsonl"), *raw_flags(LUMA), *TINY, "-q")
    hook = _once(_overwrite, tmp_path / "2")
    read = vars(Opened)["changed"].fget

    def changed(self: Opened) -> bool:
        if self.path == str(tmp_path / "2"):
            hook()
        return bool(read(self))

    monkeypatch.setattr(Opened, "changed", property(changed))
    assert vkssim(*words).exit_code == 1
    errors = [json.loads(line)["error"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [error is not None and CHANGED in error for error in errors] == [False, True, False]
    assert vkssim(*words).exit_code == 0


def _changed_between_ranges(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> ScoreReport | Exception:
    """Return the outcome of a pair whose distorted clip changes after the first range. Each range opens the clips anew."""
    reference, distorted, raw = _pair(folder, "yuv")
    small_ranges(monkeypatch)
    whole, _ = in_ranges(str(reference), str(distorted), raw)
    assert isinstance(whole, ScoreReport)
    assert whole.warnings == []
    hook = _once(change, distorted)

    def score_one(*arguments: Any, **options: Any) -> Any:
        scores = score_range(*arguments, **options)
        hook()
        return scores

    monkeypatch.setattr(worker, "score_range", score_one)
    outcome, ranges = in_ranges(str(reference), str(distorted), raw)
    assert len(ranges) > 2
    return outcome


def test_ranges_of_two_files_are_not_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = _changed_between_ranges(tmp_path, monkeypatch, _overwrite)
    assert isinstance(outcome, InputError)
    assert CHANGED in str(outcome)


@pytest.mark.parametrize("machines", [("one", "one"), ("one", "two")])
def test_a_status_that_changes_between_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machines: tuple[str, str]
) -> None:
    """Copies on two machines have statuses of their own."""
    monkeypatch.setattr("platform.node", lambda: machines[0])

    def change(path: Path) -> None:
        _link(path)
        monkeypatch.setattr("platform.node", lambda: machines[1])

    outcome = _changed_between_ranges(tmp_path, monkeypatch, change)
    assert isinstance(outcome, ScoreReport)
    assert (TOUCHED in str(outcome.warnings)) == (machines[0] == machines[1])


def test_maps_of_two_files(tmp_path: Path) -> None:
    reference, distorted, raw = _pair(tmp_path, "yuv")
    pictures = frame_pictures(reference, distorted, [0, 1], raw=raw, backend="cpu")
    next(pictures)
    time.sleep(0.01)
    _overwrite(distorted)
    next(pictures)
    with pytest.raises(InputError, match=CHANGED):
        next(pictures)


def test_a_url_of_another_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bucket = put_in_place(monkeypatch)
    reference = write(tmp_path / "r.yuv", raw_bytes(LUMA))
    bucket.pipe_file("clips/d.yuv", raw_bytes(OTHER))

    def change(_path: Path) -> None:
        bucket.pipe_file("clips/d.yuv", raw_bytes(LUMA))

    with pytest.raises(InputError, match=f"d.yuv {CHANGED}"):
        score_files(reference, "s3://clips/d.yuv", raw=RAW, progress=_once(change, tmp_path), **CPU)
