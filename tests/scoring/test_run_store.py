"""The store of a run: what it gives back, what it takes for damaged, and whose frames it takes for another run's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vkssim.errors import InputError, InterruptedRunError, OptionError, OutputError, TruncatedInputError
from vkssim.report.backend_info import BackendInfo
from vkssim.report.frame_scores import FrameScores
from vkssim.scoring.options import ScoreOptions
from vkssim.scoring.run_store import RunStore
from vkssim.storage.own_folder import OwnFolder
from vkssim.utils.wording import counted

INFO = BackendInfo("vulkan", "Made Up 9000", "driver 1.2")
OTHER = BackendInfo("vulkan", "Made Up 9001", "driver 1.3")
OPTIONS = ScoreOptions(("float_ssim",))
IDENTITY = {"reference": "abc", "features": ["float_ssim"], "selection of frames": {"start": None}}
VALUES = (0.1 + 0.2, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.0)
FRAMES = [FrameScores(3 * number, {"float_ssim": value}, number / 3) for number, value in enumerate(VALUES)]


def _opened(path: Path, resume: bool = True, identity: Mapping[str, Any] = IDENTITY) -> tuple[RunStore, list[str]]:
    told: list[str] = []
    return RunStore(path, str(path.with_suffix(".parts")), identity, resume=resume, tell=told.append), told


def _begun(store: RunStore, info: BackendInfo = INFO) -> list[FrameScores]:
    """The frames that one device goes on behind."""
    return list(store.begin(OPTIONS, info, ["float_ssim"]).frames)


def _written(path: Path) -> list[bytes]:
    """The lines of a journal with FRAMES."""
    with _opened(path)[0] as journal:
        assert _begun(journal) == []
        journal.add(FRAMES[:2])
        journal.add(FRAMES[2:])
    return path.read_bytes().splitlines(keepends=True)


def _found(path: Path) -> list[FrameScores]:
    with _opened(path)[0] as journal:
        return _begun(journal)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scores.json.journal"


def test_doubles_come_back_as_they_were(path: Path) -> None:
    assert len(_written(path)) == 2 + len(FRAMES)
    assert list(map(repr, _found(path))) == list(map(repr, FRAMES)), "nan equals nothing, -0.0 equals 0.0"


DAMAGES: dict[str, tuple[Callable[[list[bytes]], bytes], int]] = {
    "torn": (lambda lines: b"".join(lines)[:-3], 6),
    "no end of line": (lambda lines: b"".join(lines)[:-1], 6),
    "zeros behind": (lambda lines: b"".join(lines) + bytes(600), 7),
    "doubled": (lambda lines: b"".join([*lines[:5], lines[4], *lines[5:]]), 3),
    "left out": (lambda lines: b"".join([*lines[:5], *lines[6:]]), 3),
    "exchanged": (lambda lines: b"".join([*lines[:5], lines[6], lines[5], *lines[7:]]), 3),
    "altered": (lambda lines: b"".join([*lines[:3], lines[3].replace(b"[3,", b"[4,"), *lines[4:]]), 1),
    "another line": (lambda lines: b"".join([*lines[:4], b"my diary\n", *lines[4:]]), 2),
    "header altered": (lambda lines: b"".join(lines).replace(b"Made", b"Mode"), 0),
    "header torn": (lambda lines: lines[0][:9], 0),
    "empty": (lambda lines: b"", 0),
    "never on the disk": (lambda lines: bytes(500), 0),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_from_the_first_bad_line_on_all_is_dropped(path: Path, name: str) -> None:
    damage, left = DAMAGES[name]
    path.write_bytes(damage(_written(path)))
    journal, told = _opened(path)
    with journal:
        assert list(map(repr, _begun(journal))) == list(map(repr, FRAMES[:left]))
        journal.add(FRAMES[left:])
    damaged = f"{path} is damaged behind {counted(left, 'frame')}; the frames behind them are scored again"
    assert told[:1] == ([] if name == "empty" else [damaged])
    assert list(map(repr, _found(path))) == list(map(repr, FRAMES))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_damage_gives_another_score(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Bytes anywhere behind the first word are anything: what is given is a part of what was written, or there is an error."""
    path = tmp_path_factory.mktemp("journal") / "journal"
    whole = b"".join(_written(path))
    start = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:start] + data.draw(st.binary(max_size=40)) + whole[data.draw(st.integers(start, len(whole))) :])
    try:
        found = _found(path)
    except (InputError, OptionError):
        return
    assert list(map(repr, found)) == list(map(repr, FRAMES[: len(found)]))


def test_another_file_is_not_taken_for_a_journal(path: Path) -> None:
    path.write_text("my diary\n")
    for resume in (False, True):
        with pytest.raises(InputError, match="is not a journal of vkssim; move it away"):
            _opened(path, resume)
    assert path.read_text() == "my diary\n"


@pytest.mark.parametrize(
    ("identity", "names", "info", "differing"),
    [
        (IDENTITY | {"reference": "another"}, ["float_ssim"], INFO, "reference differ"),
        (IDENTITY | {"features": [], "reference": ""}, ["float_ssim"], INFO, "reference, features differ"),
        (IDENTITY, ["float_ssim", "float_ms_ssim"], INFO, "scores differ"),
        (IDENTITY, ["float_ssim"], OTHER, "device, driver differ"),
        (IDENTITY, ["float_ssim"], BackendInfo("cpu", "NumPy", ""), "backend, device, driver differ"),
    ],
)
def test_another_run_is_an_error_that_says_what_differs(
    path: Path, identity: dict[str, Any], names: list[str], info: BackendInfo, differing: str
) -> None:
    before = b"".join(_written(path))
    with _opened(path, identity=identity)[0] as journal, pytest.raises(OptionError) as caught:
        journal.begin(OPTIONS, info, names)
    assert f"belongs to another run: {differing}. Without `resume` the run starts again" in str(caught.value)
    assert path.read_bytes() == before
    journal, told = _opened(path, resume=False, identity=identity)
    with journal:
        assert journal.begin(OPTIONS, info, names).frames == ()
    assert told == [f"{path} had 7 frames of a run that was cut off; with `resume` the run would have continued from them"]


def test_it_goes_when_the_run_is_done(path: Path) -> None:
    for failures in ([], [TruncatedInputError("ends within frame 7")]):
        _written(path)
        with _opened(path)[0] as journal:
            _begun(journal)
            journal.settle(failures)
        assert not path.exists()


@pytest.mark.parametrize("error", [InterruptedRunError("stopped"), OutputError("full")])
def test_it_stays_where_the_run_was_cut_off(path: Path, error: InterruptedRunError) -> None:
    _written(path)
    with _opened(path)[0] as journal:
        _begun(journal)
        journal.settle([error])
    assert str(error).endswith("; `resume` continues from there")
    assert len(_found(path)) == len(FRAMES)


def test_without_frames_nothing_is_left(path: Path) -> None:
    with _opened(path)[0] as journal:
        _begun(journal)
    assert not path.exists()


def test_a_folder_that_cannot_be_listed_hides_no_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, told = _opened(path)
    with store:
        store.begin_ranges([INFO])

        def gone(self: OwnFolder) -> set[str]:
            raise OutputError("the share is gone")

        monkeypatch.setattr(OwnFolder, "names", gone)
        error = InterruptedRunError("stopped")
        store.settle([error])
        assert str(error) == "stopped", "it promises nothing that it cannot know"
    assert told == []
    assert path.exists()
