"""Out of memory and lost devices: runs go on where what was on its way is still there, and say so."""

from __future__ import annotations

import os
import re
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkssim
import vkssim.vapoursynth
from vkssim.backends import sessions, vulkan
from vkssim.backends.sessions import close_sessions
from vkssim.engine import source_cache as opening
from vkssim.engine.journal import open_journal
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.pools import WorkerOptions
from vkssim.engine.source_cache import open_sources as opened_sources
from vkssim.errors import (
    DeviceLostError,
    DeviceMemoryError,
    DeviceTimeoutError,
    HostMemoryError,
    InterruptedRunError,
    NoDeviceError,
    SmallerBatchWarning,
    VkssimError,
)
from vkssim.host.devices import DEVICE_VARIABLE, list_devices
from vkssim.host.instance import shared_instance
from vkssim.host.waiting import TIMEOUT_VARIABLE
from vkssim.ladder.batch import BatchSettings, score_pairs
from vkssim.ladder.manifest import Pair
from vkssim.shaders.interface import Shape

from ..support import vapoursynth_stand_in as stand_in
from ..support.clips import write, y4m_bytes
from ..support.commands import vkssim as command
from ..support.devices.faults import RESULTS, Fault, Reuse
from ..support.devices.faults import layer as new_layer
from ..support.pictures import clip

FRAMES = clip(20)
DISTORTED = np.roll(FRAMES, 1, axis=2)
FEATURE = "float_ssim=scale=1:window=uniform8"  # which compiles soonest
LOST = RESULTS["DEVICE_LOST"]
FULL = RESULTS["OUT_OF_DEVICE_MEMORY"]
TIMEOUT = 2
"""VK_TIMEOUT"""


REUSE = Reuse()
layer = partial(new_layer, reuse=REUSE)


@pytest.fixture(scope="module", autouse=True)
def reuse() -> Iterator[None]:
    yield
    REUSE.close()


@pytest.fixture(scope="module")
def expected() -> list[float]:
    return [float(score) for score in vkssim.ssim(FRAMES, DISTORTED, window="uniform8", backend="cpu")]  # type: ignore[union-attr]


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [write(tmp_path / name, y4m_bytes(frames)) for name, frames in (("r.y4m", FRAMES), ("d.y4m", DISTORTED))]


@pytest.fixture(autouse=True)
def eight_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches of a CPU, whatever the device."""
    monkeypatch.setattr(vulkan, "_LARGEST_BATCH", dict.fromkeys(Shape, 8))


@pytest.fixture(autouse=True)
def tried(expected: list[float]) -> None:
    """The self-test is done before a layer counts."""
    with vkssim.Scorer(32, 24, bits=8, features=[FEATURE]):
        pass


def _values(frames: Sequence[vkssim.FrameScores]) -> list[float]:
    assert [frame.index for frame in frames] == list(range(len(frames)))
    return [frame.metrics["float_ssim"] for frame in frames]


def _close(got: Sequence[float], expected: Sequence[float]) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=5e-5)


# -- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("largest", "batch"), [(10000, 4), (4000, 2), (1700, 1)])
def test_batches_are_halved_until_they_fit(paths: list[str], expected: list[float], largest: int, batch: int) -> None:
    """A frame pair of 32x24 is 1536 bytes; eight of them are a batch."""
    with layer() as made:
        made.largest = largest
        report = vkssim.score_files(*paths, features=[FEATURE])
    assert not made.left
    _close(_values(report.frames), expected)
    (warning,) = report.warnings
    assert os.environ[DEVICE_VARIABLE] in warning
    assert warning.endswith(f" has no memory for batches of 8 frames; batches of {batch} are used")


def test_one_frame_that_does_not_fit_is_an_error(paths: list[str]) -> None:
    with layer() as made:
        made.largest = 1000
        with pytest.raises(DeviceMemoryError, match="out of memory"):
            vkssim.score_files(*paths, features=[FEATURE])
    assert not made.left


def test_arrays_and_scorers_warn(expected: list[float]) -> None:
    with layer() as made:
        made.largest = 4000
        with pytest.warns(SmallerBatchWarning, match="batches of 8 frames; batches of 2 are used"):
            _close(vkssim.ssim(FRAMES, DISTORTED, window="uniform8"), expected)  # type: ignore[arg-type]
        _close(vkssim.ssim(FRAMES, DISTORTED, window="uniform8"), expected)  # type: ignore[arg-type] # has said so
        close_sessions()
        with pytest.warns(SmallerBatchWarning):
            vkssim.Scorer(32, 24, bits=8, features=[FEATURE]).close()
    assert not made.left


def test_a_warning_that_is_an_error_leaves_nothing_open() -> None:
    with layer() as made, warnings.catch_warnings():
        made.largest = 4000
        warnings.simplefilter("error")
        with pytest.raises(SmallerBatchWarning):
            vkssim.Scorer(32, 24, bits=8, features=[FEATURE])
    assert not made.left


def test_memory_that_runs_out_on_the_way(paths: list[str], expected: list[float]) -> None:
    with layer(Fault("vkQueueSubmit", 1, FULL)) as made:
        report = vkssim.score_files(*paths, features=[FEATURE])
    assert not made.left
    _close(_values(report.frames), expected)
    (warning,) = report.warnings
    assert "ran out of memory after" in warning
    assert warning.endswith("batches of 4 were used from there on")


def test_memory_that_never_suffices_on_the_way(paths: list[str]) -> None:
    with layer(Fault("vkQueueSubmit", 1, FULL, forever=True)) as made, pytest.raises(DeviceMemoryError) as caught:
        vkssim.score_files(*paths, features=[FEATURE])
    assert made.injected == 4, "batches of 8, 4, 2 and 1"
    assert not made.left
    assert len(caught.value.report.warnings) == 3


# -- a lost device ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("call", [0, 1, 2])
def test_files_go_on_behind_what_was_scored(paths: list[str], expected: list[float], call: int, live: bool) -> None:
    told: list[int] = []

    def tell(frames: Sequence[vkssim.FrameScores]) -> None:
        told.extend(frame.index for frame in frames)

    with layer(Fault("vkWaitForFences", call, LOST)) as made:
        report = vkssim.score_files(*paths, features=[FEATURE], on_frames=tell if live else None)
    assert (made.injected, made.left) == (1, {})
    _close(_values(report.frames), expected)
    (warning,) = report.warnings
    assert "was lost after" in warning
    assert report.resumed == 0, "this run has scored all of them"
    assert told == (list(range(20)) if live else [])


def test_a_second_loss_keeps_everything(paths: list[str], expected: list[float], tmp_path: Path) -> None:
    scores = tmp_path / "scores.json"
    with layer(Fault("vkWaitForFences", 2, LOST), Fault("vkWaitForFences", 4, LOST)) as made:
        result = command("score", "-r", paths[0], "-d", paths[1], "--feature", FEATURE, "-o", str(scores), "-q")
    assert (result.exit_code, made.injected, made.left) == (3, 2, {})
    assert "device was lost" in result.stderr
    from vkssim.report.reading import read_report

    frames = read_report(scores).frames
    assert 8 <= len(frames) < 20
    _close(_values(frames), expected[: len(frames)])


def test_a_second_loss_at_once_keeps_what_the_first_left(paths: list[str]) -> None:
    faults = Fault("vkWaitForFences", 1, LOST), Fault("vkCreateDevice", 1, LOST)
    with layer(*faults) as made, pytest.raises(DeviceLostError) as caught:
        vkssim.score_files(*paths, features=[FEATURE])
    assert (made.injected, made.left) == (2, {})
    assert len(caught.value.report.frames) == 8


@pytest.mark.parametrize(
    ("stop", "error"), [(KeyboardInterrupt(), InterruptedRunError), (MemoryError(), HostMemoryError)], ids=str
)
def test_a_second_try_that_never_begins_keeps_what_the_first_left(
    paths: list[str], monkeypatch: pytest.MonkeyPatch, stop: BaseException, error: type[VkssimError]
) -> None:
    """The user stops the run, or the memory runs out, while the files or the device are opened again."""
    tries: list[object] = []

    def open_sources(*arguments: Any) -> Any:
        tries.append(arguments)
        if len(tries) == 2:
            raise stop
        return opened_sources(*arguments)

    monkeypatch.setattr(opening, "open_sources", open_sources)
    with layer(Fault("vkWaitForFences", 1, LOST)) as made, pytest.raises(error) as caught:
        vkssim.score_files(*paths, features=[FEATURE])
    assert (made.injected, made.left, len(tries)) == (1, {}, 2)
    assert caught.value.report is not None
    assert len(caught.value.report.frames) == 8


def test_standard_input_is_not_read_again(paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", open(paths[1]))  # noqa: SIM115 - for the time of the patch
    with layer(Fault("vkWaitForFences", 1, LOST)) as made, pytest.raises(DeviceLostError) as caught:
        vkssim.score_files(paths[0], "-", features=[FEATURE])
    assert not made.left
    assert len(caught.value.report.frames) == 8


def test_a_scorer_says_what_it_did_not_score(expected: list[float]) -> None:
    """What it had scored is not lost, and a new one goes on."""
    given: list[vkssim.FrameScores] = []
    with layer(Fault("vkWaitForFences", 2, LOST)) as made:
        with vkssim.Scorer(32, 24, bits=8, features=[FEATURE], batch=4) as scorer:
            with pytest.raises(DeviceLostError, match=r"; frames 8 to 1\d were not scored. Score them with a new Scorer"):
                given.extend(scorer.score(zip(FRAMES, DISTORTED, strict=True)))
            given += scorer.flush()
            assert scorer.flush() == []
            with pytest.raises(DeviceLostError, match=r"frames 8 to .* were not scored"):
                scorer.feed(FRAMES[0], DISTORTED[0])
        assert not made.left
        with vkssim.Scorer(32, 24, bits=8, features=[FEATURE], batch=4) as scorer:
            rest = list(scorer.score(zip(FRAMES[8:], DISTORTED[8:], strict=True)))
    _close(_values(given) + _values(rest), expected)


@pytest.mark.parametrize("function", ["vkWaitForFences", "vkQueueSubmit", "vkGetFenceStatus"])
def test_arrays_are_scored_again(expected: list[float], function: str) -> None:
    close_sessions()
    with layer(Fault(function, 0, LOST)) as made:
        _close(vkssim.ssim(FRAMES, DISTORTED, window="uniform8"), expected)  # type: ignore[arg-type]
        close_sessions()
    assert (made.injected, made.left) == (1, {})
    with layer(Fault(function, 0, LOST, forever=True)) as made, pytest.raises(DeviceLostError):
        vkssim.ssim(FRAMES, DISTORTED, window="uniform8")
    assert not made.left
    _close(vkssim.ssim(FRAMES, DISTORTED, window="uniform8"), expected)  # type: ignore[arg-type]


def test_maps_are_made_again() -> None:
    right = vkssim.ssim(FRAMES, DISTORTED, window="uniform8", return_map=True)
    close_sessions()
    with layer(Fault("vkWaitForFences", 1, LOST)) as made:
        again = vkssim.ssim(FRAMES, DISTORTED, window="uniform8", return_map=True)
        close_sessions()
    assert (made.injected, made.left) == (1, {})
    for one, other in zip(right, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_tensors_are_scored_again() -> None:
    import torch

    from vkssim.torch import ssim

    first, second = (torch.from_numpy(frames[:4, None].astype(np.float32)) for frames in (FRAMES, DISTORTED))
    right = ssim(first, second)
    with new_layer(Fault("vkWaitForFences", 0, LOST)) as made:  # what stays open behind it has its own device
        assert ssim(first, second) == right
    assert made.injected == 1


def test_a_clip_of_vapoursynth_goes_on(expected: list[float]) -> None:
    clips = [stand_in.clip_of("GRAY8", frames) for frames in (FRAMES, DISTORTED)]
    marked = vkssim.vapoursynth.ssim(*clips, features=FEATURE)
    with new_layer(Fault("vkWaitForFences", 1, LOST)) as made:
        got = [marked.get_frame(number).props["float_ssim"] for number in range(4)]
    assert made.injected == 1
    _close(got, expected[:4])
    with new_layer(Fault("vkWaitForFences", 0, LOST, forever=True)), pytest.raises(stand_in.Error, match="device was lost"):
        marked.get_frame(4)
    _close([marked.get_frame(4).props["float_ssim"]], expected[4:5])


def test_another_device_never_takes_its_place(paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKSSIM_DEVICE", "0")
    vkssim.score_files(*paths, features=[FEATURE])
    close_sessions()  # it would go on with the device that is open
    other = [replace(device, uuid=uuid.UUID(int=7)) for device in list_devices(shared_instance())]
    monkeypatch.setattr(sessions, "list_devices", lambda _: other)
    with pytest.raises(NoDeviceError, match=f"is no longer available; found {re.escape(other[0].name)}"):
        vkssim.score_files(*paths, features=[FEATURE])


# -- a batch ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def score_ladder(tmp_path: Path, paths: list[str]) -> Callable[[], list[Any]]:
    pairs = []
    for number in range(3):
        other = write(tmp_path / f"d{number}.y4m", y4m_bytes(np.roll(FRAMES, number + 1, axis=2)))
        pairs.append(Pair(paths[0], other, Clips(paths[0], other)))

    settings = BatchSettings(workers=WorkerOptions())

    def score() -> list[Any]:
        with open_journal(tmp_path / "scores.jsonl") as journal:
            return list(score_pairs(pairs, ScoreOptions((FEATURE,)), journal, None, settings))

    return score


@pytest.mark.parametrize(("function", "result"), [("vkWaitForFences", LOST), ("vkQueueSubmit", LOST), ("vkQueueSubmit", FULL)])
def test_pairs_on_a_device_that_failed_are_scored_again(
    score_ladder: Callable[[], list[Any]], expected: list[float], function: str, result: int
) -> None:
    with layer(Fault(function, 3, result)) as made:
        records = score_ladder()
    assert (made.injected, made.left) == (1, {})
    assert [record["error"] for record in records] == [None] * 3
    assert abs(records[0]["pooled"]["float_ssim"]["mean"] - np.mean(expected)) < 5e-5
    warnings = [warning for record in records for warning in record["warnings"]]
    assert any(("ran out of memory after" if result == FULL else "was lost after") in warning for warning in warnings)


def test_a_device_lost_again_and_again_ends_a_batch(score_ladder: Callable[[], list[Any]]) -> None:
    with layer(Fault("vkWaitForFences", 3, LOST, forever=True)) as made, pytest.raises(DeviceLostError):
        score_ladder()
    assert not made.left
    assert len(score_ladder()) == 3, "the same again goes on"


def test_smaller_batches_are_told_of_once(score_ladder: Callable[[], list[Any]]) -> None:
    with layer() as made:
        made.largest = 4000
        records = score_ladder()
    assert sum("batches of 2 are used" in warning for record in records for warning in record["warnings"]) == 1


# -- a device that hangs ----------------------------------------------------------------------------------------------


def test_a_device_that_hangs_keeps_what_was_scored(paths: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_layer(Fault("vkWaitForFences", 1, TIMEOUT, forever=True)) as made:
        monkeypatch.setenv(TIMEOUT_VARIABLE, "0.3")
        with pytest.raises(DeviceTimeoutError, match="VKSSIM_TIMEOUT=SECONDS") as caught:
            vkssim.score_files(*paths, features=[FEATURE])
        made.faults = ()
    assert len(caught.value.report.frames) == 8
    assert made.calls.count("vkDestroyDevice") == 0, "nothing that may be in use is destroyed"
    assert "vkDeviceWaitIdle" not in made.calls
    assert made.injected == 3, "and nothing waits for it again"
