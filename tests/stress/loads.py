"""The loads that tests/stress/soak repeats.

After each round, a load passes the number of units that it did to `tick`, which raises Enough to end it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import vkssim
from tests.frames.encoding import encode_frames, flat_chroma
from vkssim.backends.loss_engine import LossEngine, LossStep
from vkssim.backends.sessions import close_sessions
from vkssim.frames.open import open_file
from vkssim.frames.options import RawDescription
from vkssim.loss.spec import Loss, constants
from vkssim.report.results import FrameScores, rows

SIDE = 64
CLIP_FRAMES = 1000
FEATURE = "float_ssim=scale=1:window=uniform8"
"""Compiles soonest; what it computes does not matter here."""

_STACK = 8

Images = npt.NDArray[Any]
Tick = Callable[[int], None]


class Enough(Exception):  # noqa: N818 - no error
    """The end of a load."""


@dataclass(frozen=True)
class Place:
    """The device and the folder that a load uses, its chance, and how much it does."""

    device: str | None
    folder: Path
    random: random.Random
    amount: int


def images(count: int, height: int, width: int, dtype: Any = np.uint8, peak: float = 255) -> tuple[Images, Images]:
    """Return references and distorted copies, (count, height, width), of samples in 0..peak: noise, and other noise on it."""
    reference, other = np.random.default_rng(0).random((2, count, height, width)) * peak
    return reference.astype(dtype), ((reference + other) / 2).astype(dtype)


def clips(folder: Path, frames: int) -> tuple[str, str, RawDescription]:
    """Return two raw clips that are mostly holes and take no room on the disk."""

    def write(name: str, head: Images) -> str:
        path = folder / f"{name}-{frames}.yuv"
        with path.open("wb") as stream:
            stream.write(head.tobytes())
            stream.truncate(frames * SIDE * SIDE)
        return str(path)

    reference, distorted = images(_STACK, SIDE, SIDE)
    return write("reference", reference), write("distorted", distorted), RawDescription(SIDE, SIDE, "400", 8)


def files(place: Place, tick: Tick) -> None:
    """Raw clips through score_files, over and over."""
    reference, distorted, raw = clips(place.folder, min(CLIP_FRAMES, max(1, place.amount // 20)))
    while True:
        tick(len(vkssim.score_files(reference, distorted, raw=raw, features=FEATURE, device=place.device).frames))


def report(place: Place, tick: Tick) -> None:
    """One clip of all the frames through score_files, whose report grows with it."""
    reference, distorted, raw = clips(place.folder, place.amount)
    scored = 0

    def progress(done: int, _total: int | None) -> None:
        nonlocal scored
        before, scored = scored, done
        tick(done - before)

    vkssim.score_files(reference, distorted, raw=raw, features=FEATURE, progress=progress, device=place.device)


def results(_place: Place, tick: Tick) -> None:
    """Nothing but the scores that a report has of frames, in batches: what they cost is taken off the growth of `report`."""
    held: list[FrameScores] = []
    while True:
        numbers = range(len(held), len(held) + _STACK)
        held += rows({"float_ssim": np.random.default_rng(0).random(_STACK)}, numbers, [number / 25 for number in numbers])
        tick(_STACK)


def scorer(place: Place, tick: Tick) -> None:
    """Frames through one Scorer, their scores dropped."""
    pairs = list(zip(*images(_STACK, SIDE, SIDE), strict=True))
    with vkssim.Scorer(SIDE, SIDE, bits=8, features=FEATURE, device=place.device) as opened:
        while True:
            tick(sum(len(opened.feed(*pair)) for pair in pairs))


def array_functions(place: Place, tick: Tick) -> None:
    """Stacks of 2 to 8 images through ssim, every other time with its maps."""
    reference, distorted = images(_STACK, SIDE, SIDE)
    try:
        while True:
            for count in range(2, _STACK + 1):
                vkssim.ssim(reference[:count], distorted[:count], window="uniform8", device=place.device)
                vkssim.ssim(reference[:count], distorted[:count], return_map=True, device=place.device)
                tick(2 * count)
    finally:
        close_sessions()


def gradients(place: Place, tick: Tick) -> None:
    """Stacks of 8 images through ssim_and_grad."""
    reference, distorted = images(_STACK, SIDE, SIDE, np.float32, 1.0)
    try:
        while True:
            vkssim.ssim_and_grad(reference, distorted, data_range=1.0, device=place.device)
            tick(_STACK)
    finally:
        close_sessions()


def _any_scorer(place: Place) -> dict[str, Any]:
    """Return the arguments of a scorer for frames of any size and kind. Those that compile long come seldom."""
    choose = place.random.choice
    feature, least = FEATURE, 8
    if place.random.random() < 0.1:
        feature, least = f"float_ssim=scale=1:precision={choose(('exact', 'fast'))}:enable_lcs=true", 11
    if place.random.random() < 0.02:
        feature, least = f"float_ms_ssim=precision={choose(('exact', 'fast'))}", 176
    size = {side: least + place.random.randrange(100) for side in ("width", "height")}
    samples: dict[str, Any] = {"bits": choose((8, 9, 10, 12, 14, 16))}
    if place.random.random() < 0.25:
        samples = {"dtype": choose((np.float32, np.float64)), "data_range": choose((1.0, 255.0))}
    planes = {"planes": "yuv", "chroma": "444"} if place.random.random() < 0.1 else {}
    return {**size, **samples, **planes, "features": feature, "batch": choose((1, 2, 8))}


def scorers(place: Place, tick: Tick) -> None:
    """Scorers of any size, depth and metric, opened for one frame and closed."""
    while True:
        arguments = _any_scorer(place)
        bits = arguments.get("bits", 8)
        peak = arguments.get("data_range", 2**bits - 1)
        dtype = arguments.get("dtype", np.uint8 if bits == 8 else np.uint16)
        reference, distorted = images(3, arguments["height"], arguments["width"], dtype, peak)
        with vkssim.Scorer(**arguments, device=place.device) as opened:
            pair = (reference, distorted) if "planes" in arguments else (reference[0], distorted[0])
            assert len([*opened.feed(*pair), *opened.flush()]) == 1
        tick(1)


def engines(place: Place, tick: Tick) -> None:
    """Open engines of losses for images of any size, and close each again."""
    while True:
        height, width = (11 + place.random.randrange(100) for _ in range(2))
        reference, distorted = images(1, height, width, np.float32, 1.0)
        gradient = np.empty_like(distorted)
        with LossEngine(LossStep(Loss(height, width, **constants(1.0)), gradient=True), device=place.device) as engine:
            engine.run(reference, distorted, gradient)
        tick(1)


def containers(place: Place, tick: Tick) -> None:
    """Open a container, decode two frames of it, and close it."""
    path = encode_frames(place.folder / "clip.mp4", flat_chroma(images(_STACK, SIDE, SIDE)[0]), "libx264")
    while True:
        with open_file(path, RawDescription()) as source:
            targets = [source.info.new_planes(1) for _ in range(2)]
            assert source.read(range(2), targets) == 2
        tick(1)


Load = Callable[[Place, Tick], None]
