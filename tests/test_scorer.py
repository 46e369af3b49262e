"""The scorer: order, bounds, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from vkssim import FrameScores, Scorer
from vkssim.backends.sessions import close_sessions
from vkssim.backends.vulkan import VulkanBackend
from vkssim.errors import DepthWarning, DeviceLostError, FrameError, NoDeviceError, OptionError
from vkssim.host.executor import Executor
from vkssim.metrics.motion import clip_sums, motion_scores

from .support.pictures import clip

pytestmark = pytest.mark.usefixtures("shared_device")

SIZE = 32, 24
FRAMES = clip(23)
DISTORTED = np.roll(FRAMES, 1, axis=2)
BACKENDS = ("vulkan", "cpu")


def _open(backend: str = "vulkan", **options: Any) -> Scorer:
    return Scorer(*SIZE, **{"bits": 8, "features": ["float_ssim"], "backend": backend, **options})


def _values(scores: list[FrameScores]) -> list[float]:
    return [score.metrics["float_ssim"] for score in scores]


@pytest.fixture(scope="module")
def expected() -> list[float]:
    """Each pair by itself."""
    with _open("cpu") as scorer:
        return _values([*scorer.score(zip(FRAMES, DISTORTED, strict=True))])


@pytest.mark.parametrize("batch", [1, 2, 5, None])
@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_come_in_order(expected: list[float], backend: str, batch: int | None) -> None:
    with _open(backend, batch=batch) as scorer:
        scores = list(scorer.score(zip(FRAMES, DISTORTED, strict=True)))
    assert [score.index for score in scores] == list(range(23))
    np.testing.assert_allclose(_values(scores), expected, atol=5e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_feed_and_flush(expected: list[float], backend: str) -> None:
    """Whatever feed gives early and flush gives late is together everything, once; numbers go on after a flush."""
    scores: list[FrameScores] = []
    with _open(backend, batch=4) as scorer:
        for number, pair in enumerate(zip(FRAMES, DISTORTED, strict=True)):
            scores += scorer.feed(*pair)
            if number == 9:
                scores += scorer.flush()
                assert len(scores) == 10
                assert scorer.flush() == []
        scores += scorer.flush()
    assert [score.index for score in scores] == list(range(23))
    np.testing.assert_allclose(_values(scores), expected, atol=5e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_reserve_and_commit(expected: list[float], backend: str) -> None:
    """Writing to the memory that the device reads is the same as feeding."""
    scores: list[FrameScores] = []
    with _open(backend) as scorer:
        for pair in zip(FRAMES, DISTORTED, strict=True):
            again = scorer.reserve()
            for target, same, source in zip(scorer.reserve(), again, pair, strict=True):
                assert target.shape == source.shape
                assert np.shares_memory(target, same), "reserving twice gives the same place"
                target[:] = source
            scores += scorer.commit()
        scores += scorer.flush()
    np.testing.assert_allclose(_values(scores), expected, atol=5e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("batch", [1, 3])
def test_a_frame_that_is_compared_with_the_next_one_waits_for_it(backend: str, batch: int) -> None:
    """`flush` ends the clip: the frames after it are those of another one."""
    expected = motion_scores(clip_sums(FRAMES[:7], 8), *SIZE).motion2.tolist()
    with _open(backend, features=["motion"], batch=batch) as scorer:
        for first_index in (0, 7):
            scores: list[FrameScores] = []
            for number, pair in enumerate(zip(FRAMES[:7], DISTORTED[:7], strict=True), 1):
                scores += scorer.feed(*pair)
                assert len(scores) < number
            scores += scorer.flush()
            assert [score.index for score in scores] == list(range(first_index, first_index + 7))
            assert [score.metrics["integer_motion2"] for score in scores] == expected


def test_a_frame_that_waited_for_one_that_is_lost_has_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    with _open("cpu", features=["motion"]) as scorer:
        scores = [*scorer.feed(FRAMES[0], DISTORTED[0]), *scorer.feed(FRAMES[1], DISTORTED[1])]

        def lost(_batch: Any) -> None:
            raise DeviceLostError("the device was lost")

        monkeypatch.setattr(scorer._backend, "collect", lost)
        with pytest.raises(DeviceLostError, match="frames 1 to 2 were not scored"):
            scorer.feed(FRAMES[2], DISTORTED[2])
        scores += scorer.flush()
    assert [score.index for score in scores] == [0]


@pytest.mark.parametrize("bad", [0, 1, 2, 4])
def test_a_frame_before_one_that_is_refused_is_the_last_of_its_clip(bad: int) -> None:
    frames = (FRAMES[:6] * 4.0).astype(np.uint16)
    frames[bad, 3, 3] = 1024
    scores: list[FrameScores] = []
    with Scorer(*SIZE, bits=10, features=["motion"], batch=2) as scorer:
        with pytest.raises(FrameError, match=f"frames from {bad} on are not scored"):
            scores.extend(scorer.score(zip(frames, frames, strict=True)))
        scores += scorer.flush()
    expected = motion_scores(clip_sums(frames[:bad], 10), *SIZE).motion2.tolist() if bad else []
    assert [score.metrics["integer_motion2"] for score in scores] == expected


@pytest.mark.parametrize("batch", [1, 4])
def test_commit_without_reserve_is_refused(batch: int) -> None:
    """Also right after another commit: the next place still holds an old frame."""
    with _open(batch=batch) as scorer:
        with pytest.raises(FrameError, match="no memory is reserved"):
            scorer.commit()
        scorer.feed(FRAMES[0], FRAMES[0])
        with pytest.raises(FrameError, match="no memory is reserved"):
            scorer.commit()


def test_masked_frames_are_refused() -> None:
    frame = FRAMES[0]
    with _open("cpu") as scorer, pytest.raises(FrameError, match="the reference frame is a masked array"):
        scorer.feed(np.ma.masked_less(frame, 9), frame)


def test_frames_in_flight_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that never says that it is done is waited for when all batches are on their way."""
    in_flight = most = 0
    submit, wait = Executor.submit, Executor.wait

    def counted_submit(self: Executor, slot: Any, frames: int, **options: Any) -> None:
        nonlocal in_flight, most
        submit(self, slot, frames, **options)
        in_flight += 1
        most = max(most, in_flight)

    def counted_wait(self: Executor, slot: Any) -> int:
        nonlocal in_flight
        in_flight -= 1
        return wait(self, slot)

    monkeypatch.setattr(Executor, "submit", counted_submit)
    monkeypatch.setattr(Executor, "wait", counted_wait)
    monkeypatch.setattr(Executor, "is_done", lambda *_: False)
    with _open(batch=2) as scorer:
        scores = list(scorer.score(zip(FRAMES, DISTORTED, strict=True)))
        assert 1 < most <= len(scorer._backend.batches)
    assert (len(scores), in_flight) == (23, 0)


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(32, 24), (24, 31), (24, 32, 1), (768,)])
def test_wrong_shape(backend: str, shape: tuple[int, ...]) -> None:
    good, wrong = FRAMES[0], np.zeros(shape, np.uint8)
    with _open(backend) as scorer:
        with pytest.raises(FrameError, match=r"the reference frame has shape .* \(H, W\) = \(24, 32\)"):
            scorer.feed(wrong, good)
        with pytest.raises(FrameError, match="the distorted frame has shape"):
            scorer.feed(good, wrong)
        scores = [*scorer.feed(good, good), *scorer.flush()]
    assert _values(scores) == [1.0], "what was refused left no half of a pair"


@pytest.mark.parametrize(
    ("opened_for", "fed"),
    [
        ({"bits": 8}, np.uint16),  # would wrap
        ({"bits": 8}, np.int8),
        ({"bits": 8}, np.float32),
        ({"bits": 10}, np.int16),
        ({"bits": 10}, np.uint8),  # would be dark
        ({"bits": None, "dtype": np.uint16}, np.uint8),
        ({"bits": 10}, np.uint32),
        ({"bits": None, "dtype": np.float32, "data_range": 1.0}, np.uint8),
        ({"bits": None, "dtype": np.float32, "data_range": 1.0}, np.complex64),
    ],
)
def test_wrong_type(opened_for: dict[str, Any], fed: type) -> None:
    with _open("cpu", **opened_for) as scorer, pytest.raises(FrameError, match=f"{np.dtype(fed)} samples"):
        scorer.feed(FRAMES[0].astype(fed), FRAMES[0].astype(fed))


@pytest.mark.parametrize(
    ("opened_for", "fed"),
    [
        ({"bits": 10}, ">u2"),
        ({"bits": None, "dtype": np.float32, "data_range": 255.0}, np.float64),
        ({"bits": None, "dtype": np.float64, "data_range": 255.0}, np.float16),
    ],
)
def test_types_that_lose_nothing_that_counts(opened_for: dict[str, Any], fed: Any) -> None:
    with _open("cpu", **opened_for) as scorer:
        frame = (FRAMES[0].astype(np.uint16) * 4 if opened_for["bits"] else FRAMES[0]).astype(fed)
        scores = [*scorer.feed(frame, frame), *scorer.flush()]
    assert _values(scores) == [1.0]


@pytest.mark.parametrize(
    ("opened_for", "cure"),
    [({"bits": 12}, "bits=10"), ({"bits": 16}, "bits=10"), ({"bits": None, "dtype": np.uint16}, "data_range=1023")],
)
def test_samples_of_a_smaller_depth_are_warned_of(opened_for: dict[str, Any], cure: str) -> None:
    """The clip is warned of, and not the frame: it may begin in the dark."""
    dim = FRAMES[0].astype(np.uint16) * 4
    scorer = _open("cpu", **opened_for)
    scorer.feed(dim, dim)
    scorer.flush()
    with pytest.warns(DepthWarning) as said:
        scorer.close()
    assert len(said) == 2
    assert (
        f"the reference frames exceeds 1023, a quarter of the range or less; if the samples have 10 bits, give {cure}"
        in str(said[0].message)
    )
    bright = dim * (4 if opened_for["bits"] == 12 else 64)
    with _open("cpu", **opened_for) as scorer:
        scorer.feed(dim, dim)
        scorer.feed(bright, bright)
    for used in ({"bits": 10}, {"bits": None, "dtype": np.uint16, "data_range": 65535}):  # or stated
        with _open("cpu", **used) as scorer:
            scorer.feed(dim, dim)


@pytest.mark.parametrize("backend", BACKENDS)
def test_too_small_is_refused_when_it_is_opened(backend: str) -> None:
    """Not at the first frame."""
    with pytest.raises(FrameError, match="needs 176x176"):
        _open(backend, features=["float_ms_ssim"])


@pytest.mark.parametrize(
    ("backend", "options", "message"),
    [
        *(
            ("cpu", options, "either bits or dtype")
            for options in ({"bits": None}, {"bits": 8, "dtype": np.uint8}, {"bits": 8, "data_range": 100.0})
        ),
        ("cpu", {"features": []}, "no feature asked for"),
        ("cpu", {"features": ["float_ssim", "float_ssim=scale=1"]}, "asked for twice"),
        ("cuda", {}, "`backend` is 'cuda'; it must be vulkan or cpu"),
        ("cpu", {"device": 0}, "the cpu backend has no devices"),
        ("vulkan", {"device": "voodoo"}, "voodoo"),
    ],
)
def test_options_that_are_refused(backend: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises((OptionError, NoDeviceError), match=message):
        _open(backend, **options)


# -- closing ----------------------------------------------------------------------------------------------------------


def _backend(scorer: Scorer) -> VulkanBackend:
    shared: Any = scorer._backend
    assert isinstance(shared._backend, VulkanBackend)
    return shared._backend


@pytest.mark.usefixtures("own_devices")
@pytest.mark.parametrize("failing", [False, True])
def test_nothing_is_left_after_closing(failing: bool) -> None:
    scorer = _open(batch=2, features=["float_psnr"])  # whose kernel compiles soonest
    counted = _backend(scorer).device.live_objects
    with pytest.raises(FrameError) if failing else nullcontext(), scorer:
        for pair in zip(FRAMES[:7], DISTORTED, strict=False):
            scorer.feed(*pair)
        assert +counted
        scorer.feed(FRAMES[0], FRAMES[0][1:] if failing else FRAMES[0])
    assert not counted["Memory"]
    scorer.close()
    close_sessions()
    assert not +counted


@pytest.mark.parametrize("backend", BACKENDS)
def test_closed_scorer_takes_nothing(backend: str) -> None:
    """Its memory is gone with the device: writing there would end the process."""
    scorer = _open(backend, batch=2)
    scorer.feed(FRAMES[0], FRAMES[0])
    scorer.close()
    for call in (scorer.reserve, lambda: scorer.feed(FRAMES[0], FRAMES[0])):
        with pytest.raises(FrameError, match="the scorer is closed"):
            call()
    with pytest.raises(FrameError, match="no memory is reserved"):
        scorer.commit()
    assert scorer.flush() == []


def test_an_interrupted_scorer_does_not_count_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores after the lost frames would have their numbers."""
    frames = clip(6)
    with Scorer(32, 24, bits=8, features=["float_ssim=scale=1"], backend="cpu", batch=1) as scorer:
        collect, collected = scorer._backend.collect, []

        def interrupted(batch: Any) -> Any:
            collected.append(batch)
            if len(collected) == 3:
                raise KeyboardInterrupt
            return collect(batch)

        monkeypatch.setattr(scorer._backend, "collect", interrupted)
        got: list[FrameScores] = []

        def feed() -> None:
            for frame in frames:
                got.extend(scorer.feed(frame, frame))

        with pytest.raises(KeyboardInterrupt):
            feed()
        assert [scores.index for scores in [*got, *scorer.flush()]] == [0, 1]
        with pytest.raises(FrameError, match="frames from 2 on are not scored"):
            scorer.feed(frames[0], frames[0])
