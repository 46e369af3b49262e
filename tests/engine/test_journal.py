"""The journal of a run: what it gives back, what it takes for damaged, and whose frames it takes for another run's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vkssim.engine import journal as module
from vkssim.engine.journal import Journal, open_journal, run_identity
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.ranges import FrameRange, RangeBoundary, ScoredFrame
from vkssim.errors import InputError, InterruptedRunError, OptionError, OutputError, TruncatedInputError, VkssimError
from vkssim.frames.info import VideoPackets
from vkssim.report.results import FrameScores
from vkssim.types import BackendInfo
from vkssim.utils.wording import counted

from ..support.buckets import put_in_place
from ..support.clips import write
from ..support.journals import entries

INFO = BackendInfo("vulkan", "Made Up 9000", "driver 1.2")
OTHER = BackendInfo("vulkan", "Made Up 9001", "driver 1.3")
IDENTITY = {"reference": "abc", "features": ["float_ssim"], "selection of frames": {"start": None}}
VALUES = (0.1 + 0.2, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.0)
FRAMES: dict[int, ScoredFrame] = {
    number: (FrameScores(3 * number, {"float_ssim": value}, number / 3), None, INFO) for number, value in enumerate(VALUES)
}
WHOLE = 0, None
CUTS = [RangeBoundary(3, (1, 2), (3, 4)), RangeBoundary(5, (5, 6), (7, 8))]
RANGES = [FrameRange(None, CUTS[0]), FrameRange(*CUTS), FrameRange(CUTS[1], None)]


def _opened(path: Path, resume: bool = True, identity: Mapping[str, Any] = IDENTITY) -> tuple[Journal, list[str]]:
    told: list[str] = []
    return Journal(path, told.append, identity=identity, resume=resume), told


def _begun(journal: Journal) -> list[FrameScores]:
    """The frames that one device goes on behind."""
    journal.check([INFO])
    journal.begin()
    return [frame for frame, _, _ in journal.pair(journal.key).earlier(FrameRange())]


def _add(journal: Journal, numbers: range) -> None:
    """Add frames, each with an entry of its own."""
    for number in numbers:
        journal.pair(journal.key).add(WHOLE, number, [FRAMES[number]])


def _written(path: Path) -> list[bytes]:
    """The lines of a journal with FRAMES."""
    with _opened(path)[0] as journal:
        assert _begun(journal) == []
        _add(journal, range(len(FRAMES)))
    return path.read_bytes().splitlines(keepends=True)


def _found(path: Path) -> list[FrameScores]:
    with _opened(path)[0] as journal:
        return _begun(journal)


def _shown(frames: list[FrameScores] | int) -> list[str]:
    """Frames as they are to be found, the first so many; nan equals nothing, and -0.0 equals 0.0."""
    return list(map(repr, [frame for frame, _, _ in FRAMES.values()][:frames] if isinstance(frames, int) else frames))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scores.json.journal"


def test_doubles_come_back_as_they_were(path: Path) -> None:
    assert len(_written(path)) == 1 + len(FRAMES)
    assert _shown(_found(path)) == _shown(len(FRAMES))


DAMAGES: dict[str, tuple[Callable[[list[bytes]], bytes], int]] = {
    "torn": (lambda lines: b"".join(lines)[:-3], 6),
    "no end of line": (lambda lines: b"".join(lines)[:-1], 6),
    "zeros behind": (lambda lines: b"".join(lines) + bytes(600), 7),
    "doubled": (lambda lines: b"".join([*lines[:4], lines[3], *lines[4:]]), 3),
    "left out": (lambda lines: b"".join([*lines[:4], *lines[5:]]), 3),
    "exchanged": (lambda lines: b"".join([*lines[:4], lines[5], lines[4], *lines[6:]]), 3),
    "altered": (lambda lines: b"".join([*lines[:2], lines[2].replace(b"[[3,", b"[[4,"), *lines[3:]]), 1),
    "another line": (lambda lines: b"".join([*lines[:3], b"my diary\n", *lines[3:]]), 2),
    "header altered": (lambda lines: b"".join(lines).replace(b"abc", b"abx"), 0),
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
        assert _shown(_begun(journal)) == _shown(left)
        _add(journal, range(left, len(FRAMES)))
    damaged = f"{path} is damaged after {counted(left, 'frame')}; what is missing is scored again"
    assert told[:1] == ([] if name == "empty" else [damaged])
    assert _shown(_found(path)) == _shown(len(FRAMES))


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
    assert _shown(found) == _shown(len(found))


@pytest.mark.parametrize(
    ("identity", "info", "differing"),
    [
        (IDENTITY | {"reference": "another"}, INFO, "reference differ"),
        (IDENTITY | {"features": [], "reference": ""}, INFO, "reference, features differ"),
        (IDENTITY, OTHER, "device, driver differ"),
        (IDENTITY, BackendInfo("cpu", "NumPy", ""), "backend, device, driver differ"),
    ],
)
def test_another_run_is_an_error_that_says_what_differs(
    path: Path, identity: dict[str, Any], info: BackendInfo, differing: str
) -> None:
    before = b"".join(_written(path))
    with _opened(path, identity=identity)[0] as journal, pytest.raises(OptionError) as caught:
        journal.check([info])
    assert f"belongs to another run: {differing}. Without `resume` the run starts again, and its 7 frames are lost" in str(
        caught.value
    )
    assert path.read_bytes() == before
    journal, told = _opened(path, resume=False, identity=identity)
    with journal:
        journal.check([info])
        assert _begun(journal) == []
    assert told == [f"{path} had 7 frames of a run that was cut off; with `resume` the run would have continued from them"]


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (None, 0),
        (TruncatedInputError("cut"), 0),
        (InterruptedRunError("stopped"), len(FRAMES)),
        (OutputError("full"), len(FRAMES)),
    ],
)
def test_it_stays_if_the_run_was_cut_off(path: Path, error: VkssimError | InterruptedRunError | None, left: int) -> None:
    _written(path)
    with _opened(path)[0] as journal:
        _begun(journal)
        journal.discard_frames([error] if error else [])
    assert path.exists() == bool(left) == str(error).endswith("; `resume` continues from there")
    assert len(_found(path)) == left
    assert path.exists() == bool(left), "without frames nothing is left"


def test_a_run_that_never_began_leaves_what_it_found(path: Path) -> None:
    before = b"".join(_written(path))
    for resume in (False, True):
        with _opened(path, resume)[0] as journal:
            journal.discard_frames([InputError("no video")])
        assert path.read_bytes() == before


# -- ranges -----------------------------------------------------------------------------------------------------------


def test_frames_of_a_range_count_in_that_range_alone(path: Path) -> None:
    """Unless they were read from the start. A pair that is begun anew in one range keeps only the latter."""
    with _opened(path)[0] as journal:
        pair = journal.pair(journal.key)
        packets = VideoPackets(5678, 1.25), None
        pair.divide(RANGES, packets)
        _add(journal, range(2))
        pair.add((3, 5), 3, [FRAMES[3]])
        pair.add((5, None), 5, [FRAMES[5], FRAMES[6]])
    with _opened(path)[0] as journal:
        pair = journal.pair(journal.key)
        assert (pair.ranges, pair.packets) == (RANGES, packets)
        found = [pair.earlier(frame_range) for frame_range in (*RANGES, FrameRange())]
        assert [[frame.index for frame, _, _ in frames] for frames in found] == [[0, 3], [9], [15, 18], [0, 3]]
        pair.start_over()
    with _opened(path)[0] as journal:
        pair = journal.pair(journal.key)
        assert (pair.ranges, journal.frames) == ([], 2)


# -- batches ----------------------------------------------------------------------------------------------------------

KEYS = ["a" * 64, "b" * 64]


@pytest.mark.parametrize("results", ["{folder}/r.csv", "s3://bucket/r.csv"])
def test_the_record_of_a_finished_pair_replaces_its_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: str
) -> None:
    """The journal of results at a URL is in the user's state folder, and nothing else is written at the URL."""
    bucket = put_in_place(monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    notes: list[str] = []

    def opened() -> Journal:
        return open_journal(results.format(folder=tmp_path), notes.append)

    with opened() as journal:
        for key in KEYS:
            for number in range(4):
                journal.pair(key).add(WHOLE, number, [FRAMES[number]])
        journal.finish(KEYS[0], {"key": KEYS[0], "error": None})
    with opened() as journal:
        assert list(journal.records) == KEYS[:1]
        assert list(journal.unfinished) == KEYS[1:]
        assert _shown([frame for frame, _, _ in journal.pair(KEYS[1]).earlier(FrameRange())]) == _shown(4)
        journal.finish(KEYS[1], {"key": KEYS[1], "error": {"type": "InputError", "message": "no"}})
    with opened() as journal:
        assert (list(journal.records), journal.frames) == (KEYS, 0)
    (path,) = tmp_path.rglob("*.journal")
    if results.startswith("s3"):
        assert path.parent == tmp_path / "state" / "vkssim"
        assert f"the journal of {results} is {path}; the same command on this machine continues from it" in notes
        assert bucket.find("bucket") == []
    assert path.stat().st_mode & 0o777 == 0o600


def test_other_results_at_a_url_have_another_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with open_journal("s3://bucket/a.csv") as journal:
        journal.finish(KEYS[0], {"key": KEYS[0], "error": None})
    with open_journal("s3://bucket/b.csv") as journal:
        assert journal.records == {}
    with open_journal("s3://bucket/a.csv") as journal:
        assert list(journal.records) == KEYS[:1]


def test_a_state_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", write(tmp_path / "state", b"a file"))
    with pytest.raises(OutputError, match=r"the journal .*\.journal cannot be written: "):
        open_journal("s3://bucket/a.csv")


def test_a_journal_does_not_grow_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that nobody needs are dropped, and what is needed stays as it was."""
    monkeypatch.setattr(module, "_MIN_BYTES_TO_REWRITE", 20_000)
    path = tmp_path / "r.csv.journal"
    sizes = []
    with open_journal(tmp_path / "r.csv") as journal:
        unfinished = journal.pair("unfinished")
        unfinished.divide(RANGES, None)
        for number in (0, 1, 3):
            unfinished.add(WHOLE, number, [FRAMES[number]])
        for pair in range(100):
            for number in range(7):
                journal.pair(f"{pair}").add(WHOLE, number, [FRAMES[number]])
            journal.finish(f"{pair}", {"key": f"{pair}", "error": None})
            sizes.append(path.stat().st_size)
        with pytest.raises(OutputError, match="another process is writing the same output"):
            open_journal(tmp_path / "r.csv")
    assert max(sizes) < 40_000 < sum(max(0, later - earlier) for earlier, later in pairwise(sizes))
    assert len([entry for entry in entries(path) if "record" in entry]) == 100
    with open_journal(tmp_path / "r.csv") as journal:
        assert len(journal.records) == 100
        assert journal.pair("unfinished").frames.keys() == {WHOLE}
        assert list(journal.pair("unfinished").frames[WHOLE]) == [0, 1, 3]
        assert journal.pair("unfinished").ranges == RANGES


def test_a_model_that_changed_is_another_run(tmp_path: Path) -> None:
    clip, model = write(tmp_path / "clip.yuv", b"luma"), tmp_path / "model.json"
    options = ScoreOptions((f"vmaf=model={model}", "float_ssim"))

    def identity() -> Mapping[str, Any]:
        return run_identity(Clips(clip, clip), options)

    write(model, b"{}")
    first = identity()
    assert identity() == first
    write(model, b"{ }")
    assert {key for key, value in identity().items() if value != first[key]} == {"models"}
