"""A reference that hardware decodes once for several distorted clips, with the stand-ins for a GPU that decodes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from vkssim import PictureOptions, ScoreReport, score_files
from vkssim.engine import worker
from vkssim.engine.engine import Job, score_jobs
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.pools import WorkerOptions
from vkssim.errors import DeviceError
from vkssim.frames.decode.hardware import HardwareDecoder

from ..frames import test_surfaces
from ..frames.encoding import encode_colours
from ..frames.test_surfaces import FEATURES, ON_DEVICE
from ..support.devices.host_cuda import Gpu, HostCopies

stand_in, surfaces, copies = test_surfaces.stand_in, test_surfaces.surfaces, test_surfaces.copies

pytestmark = pytest.mark.usefixtures("shared_device")

FRAMES, GOP = 20, 10
SIZE = 66, 50
RENDITIONS = ("30", "36", "42")
TO_HOST = "device", "host"
OPTIONS = ScoreOptions((*FEATURES,), decode="cuda")

Outcomes = list[ScoreReport | Exception]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ladder")
    for name, samples in ("eight", "yuv420p"), ("ten", "yuv420p10le"):
        for crf in ("10", *RENDITIONS):
            encode_colours(folder / f"{name}-{crf}.mp4", SIZE, FRAMES, samples, crf=crf, g=str(GOP), preset="ultrafast")
    for scale in "4", "20":
        encode_colours(folder / f"mpeg4-{scale}.mp4", SIZE, FRAMES, codec="mpeg4", qmin=scale, qmax=scale)
    return folder


@pytest.fixture
def on_gpu(surfaces: Callable[[int], None], copies: HostCopies, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have the GPU decode each clip that it can; the function that is returned has its decoders fail at a frame."""
    monkeypatch.setattr(worker, "hardware_decoder", lambda *_words: HardwareDecoder("cuda", Gpu(copies), required=False))
    return surfaces


def _score(folder: Path, reference: str, distorted: Sequence[str], options: ScoreOptions) -> Outcomes:
    jobs = [Job(name, Clips(str(folder / reference), str(folder / name))) for name in distorted]
    outcomes: dict[str, ScoreReport | Exception] = {}
    try:
        for job, outcome in score_jobs(jobs, options, WorkerOptions()):
            outcomes[job.key] = outcome
    except DeviceError as error:
        outcomes |= dict.fromkeys(distorted, error) | outcomes
    return [outcomes[name] for name in distorted]


def _renditions(name: str) -> tuple[str, list[str]]:
    return f"{name}-10.mp4", [f"{name}-{crf}.mp4" for crf in RENDITIONS]


def _check(folder: Path, reference: str, distorted: str, outcome: ScoreReport | Exception, options: ScoreOptions) -> None:
    """Check that a pair has the scores that it has alone, decoded by the CPU."""
    assert isinstance(outcome, ScoreReport), outcome
    alone = _scored_alone(folder / reference, folder / distorted, options)
    assert len(alone.frames) == FRAMES
    assert outcome.frames == alone.frames


@cache
def _scored_alone(reference: Path, distorted: Path, options: ScoreOptions) -> ScoreReport:
    features, planes, pictures = options.features, options.planes, options.pictures
    return score_files(reference, distorted, features=features, planes=planes, pictures=pictures, decode="cpu")


@pytest.mark.parametrize(("name", "planes", "copies_of_a_frame"), [("eight", "y", 1), ("eight", "all", 2), ("ten", "all", 2)])
def test_the_reference_is_decoded_once_and_stays_there(
    folder: Path,
    on_gpu: object,
    copies: HostCopies,
    decoded: Counter[str],
    name: str,
    planes: str,
    copies_of_a_frame: int,
) -> None:
    """No frame visits the host but the first ones of each clip, for the comparison with the CPU's."""
    reference, distorted = _renditions(name)
    options = replace(OPTIONS, planes=planes)
    outcomes = _score(folder, reference, distorted, options)
    assert decoded == dict.fromkeys([reference, *distorted], FRAMES)
    assert Counter(copies.made) == {ON_DEVICE: 2 * len(distorted) * FRAMES * copies_of_a_frame, TO_HOST: 4 * 2}
    for rendition, outcome in zip(distorted, outcomes, strict=True):
        _check(folder, reference, rendition, outcome, options)


@pytest.mark.parametrize("at", [1, GOP + 1])
def test_decoders_that_fail_on_the_way(folder: Path, on_gpu: Callable[[int], None], copies: HostCopies, at: int) -> None:
    """The CPU decodes the reference and the distorted clips from there on, and their frames go on in the same memory."""
    on_gpu(at)
    reference, distorted = _renditions("eight")
    options = replace(OPTIONS, planes="all")
    outcomes = _score(folder, reference, distorted, options)
    assert Counter(copies.made)["host", "device"] == 2 * len(distorted) * (FRAMES - at) * 2
    for rendition, outcome in zip(distorted, outcomes, strict=True):
        _check(folder, reference, rendition, outcome, options)
        assert isinstance(outcome, ScoreReport)
        assert sum("decoded on the CPU from here" in warning for warning in outcome.warnings) == 2


def test_a_run_that_fails_holds_up_nobody(
    folder: Path, on_gpu: object, copies: HostCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, once = HostCopies.copy, threading.Lock()
    failure = DeviceError("cuMemcpy2DAsync failed: CUDA_ERROR_ILLEGAL_ADDRESS")

    def fail_once(self: HostCopies, *words: Any) -> None:
        if copies.made.count(ON_DEVICE) >= 20 and once.acquire(blocking=False):
            raise failure
        copy(self, *words)

    monkeypatch.setattr(HostCopies, "copy", fail_once)
    reference, distorted = _renditions("eight")
    outcomes = _score(folder, reference, distorted, OPTIONS)
    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == [failure]
    for rendition, outcome in zip(distorted, outcomes, strict=True):
        if outcome is not failure:
            _check(folder, reference, rendition, outcome, OPTIONS)


def test_clips_beside_the_surfaces_of_the_reference(
    folder: Path, on_gpu: object, copies: HostCopies, decoded: Counter[str]
) -> None:
    """The runs whose distorted clip the CPU decodes share one copy of each reference frame on the host."""
    reference, distorted = "eight-10.mp4", ["eight-30.mp4", "mpeg4-4.mp4", "mpeg4-20.mp4"]
    outcomes = _score(folder, reference, distorted, OPTIONS)
    assert decoded[reference] == FRAMES
    assert Counter(copies.made) == {ON_DEVICE: 2 * FRAMES, TO_HOST: FRAMES + 2 * 2}
    for rendition, outcome in zip(distorted, outcomes, strict=True):
        _check(folder, reference, rendition, outcome, OPTIONS)


def test_pictures_that_are_changed_on_the_host(folder: Path, on_gpu: object, copies: HostCopies) -> None:
    reference, distorted = _renditions("eight")
    options = replace(OPTIONS, pictures=PictureOptions(crop="60x40+2+2"))
    outcomes = _score(folder, reference, distorted, options)
    assert Counter(copies.made) == {TO_HOST: FRAMES + len(distorted) * FRAMES + 4 * 2}
    for rendition, outcome in zip(distorted, outcomes, strict=True):
        _check(folder, reference, rendition, outcome, options)
