"""Test the warning about floats that do not fit their data_range, which gives a score without meaning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import vkssim
from vkssim import torch as losses
from vkssim.errors import DataRangeWarning
from vkssim.torch import autograd

from .support.pictures import clip

Image = npt.NDArray[np.float32]


def _stretched(image: npt.NDArray[np.uint8]) -> Image:
    """Return a picture with samples from 0 to 1."""
    samples = image.astype(np.float32) - np.float32(image.min())
    samples /= samples.max()
    return samples


REFERENCE, DISTORTED = map(_stretched, clip(2, 32, 40))
WEIGHTS = (0.5, 0.5)


def _scores(reference: Image, distorted: Image, data_range: float) -> list[float]:
    with vkssim.Scorer(40, 32, dtype=np.float32, data_range=data_range, features="float_ssim=scale=1", backend="cpu") as scorer:
        return [frame.metrics["float_ssim"] for frame in scorer.score([(reference, distorted)] * 2)]


def _of_tensors(function: Callable[..., torch.Tensor]) -> Callable[..., float]:
    def value(*pair: Image, data_range: float) -> float:
        first, second = (torch.from_numpy(np.array(image)[None, None]) for image in pair)
        return function(first, second, data_range=data_range, backend="cpu").item()

    return value


def _compiled(first: torch.Tensor, second: torch.Tensor, **options: Any) -> torch.Tensor:
    function = torch.compile(losses.ssim, fullgraph=True, backend="eager")
    return function(first, second, **options)


SCORES: dict[str, Callable[..., Any]] = {
    "ssim": lambda *pair, **given: vkssim.ssim(*pair, backend="cpu", **given),
    "map": lambda *pair, **given: vkssim.ssim(*pair, backend="cpu", return_map=True, **given),
    "Scorer": _scores,
}
LOSSES: dict[str, Callable[..., Any]] = {
    "ssim_and_grad": lambda *pair, **given: vkssim.ssim_and_grad(*pair, backend="cpu", **given),
    "ms_ssim_and_grad": lambda *pair, **given: vkssim.ms_ssim_and_grad(*pair, backend="cpu", weights=WEIGHTS, **given),
    "torch.fused_ssim": _of_tensors(losses.fused_ssim),
    "torch.ssim": _of_tensors(losses.ssim),
    "torch.compile": _of_tensors(_compiled),
}
DOORS = SCORES | LOSSES

by_door = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
by_loss = pytest.mark.parametrize("door", LOSSES.values(), ids=LOSSES)


@pytest.fixture(autouse=True)
def first_batches() -> Iterator[None]:
    """Have losses look at the batches of this test."""
    autograd._looked_at.clear()
    yield
    autograd._looked_at.clear()


def _warns(text: str) -> AbstractContextManager[object]:
    return pytest.warns(DataRangeWarning, match=text)


@by_door
@pytest.mark.parametrize("offset", [100, 1000, -100])
def test_far_outside(door: Callable[..., Any], offset: float) -> None:
    with _warns(r"samples of reference lie below -0.75 or above 1.75, far outside of 0 to 1\. .* give the largest"):
        door(REFERENCE + np.float32(offset), DISTORTED + np.float32(offset), data_range=1.0)


@by_door
@pytest.mark.parametrize(("scale", "data_range"), [(1, 255), (1, 65535), (255, 65535), (1023, 255), (255, 1), (2, 1)])
def test_of_another_range(door: Callable[..., Any], scale: float, data_range: float) -> None:
    """The last one is -1 to 1, as networks have it."""
    shift = np.float32(1 if scale == 2 else 0)
    with _warns("far outside|a small part"):
        door(REFERENCE * np.float32(scale) - shift, DISTORTED * np.float32(scale) - shift, data_range=data_range)


@by_door
@pytest.mark.parametrize(("scale", "shift", "data_range"), [(1.1, 0.05, 1), (255, 0, 255), (2.2, 1.1, 2), (1, 0.5, 1)])
def test_a_little_outside(door: Callable[..., Any], scale: float, shift: float, data_range: float) -> None:
    """Also -1 to 1 with a range of 2, and chroma around 0."""
    door(*(image * np.float32(scale) - np.float32(shift) for image in (REFERENCE, DISTORTED)), data_range=data_range)


@by_door
@pytest.mark.parametrize("data_range", [1, 255])
def test_black_pictures(door: Callable[..., Any], data_range: float) -> None:
    """Both black; and one of them with noise, beside a picture."""
    door(np.zeros_like(REFERENCE), np.zeros_like(REFERENCE), data_range=data_range)
    door(REFERENCE * np.float32(data_range), REFERENCE * np.float32(0.001 * data_range), data_range=data_range)


@by_door
@pytest.mark.parametrize("sample", [1e3, 1e12, np.inf, np.nan])
def test_a_lamp_far_outside(door: Callable[..., Any], sample: float) -> None:
    """A few samples far beyond the range are light, and no wrong range."""
    lit = REFERENCE.copy()
    lit[3:5, 7:9] = sample
    with np.errstate(all="ignore"):
        door(lit, DISTORTED, data_range=1.0)


def test_one_picture_far_outside() -> None:
    """A score has no meaning then. The output of a network may be so at first."""
    for doors, expected in ((SCORES, _warns("samples of distorted lie")), (LOSSES, nullcontext())):
        for door in doors.values():
            with expected:
                door(REFERENCE, DISTORTED * np.float32(30), data_range=1.0)


def test_modules_inherit_a_range_of_bytes() -> None:
    """As in pytorch-msssim, from which the default comes."""
    pair = [torch.from_numpy(np.array(image)[None, None]) for image in (REFERENCE, DISTORTED)]
    with _warns("no sample exceeds 1.99, a small part of the range of 255.*data_range=1.0"):
        losses.MS_SSIM(weights=WEIGHTS, backend="cpu")(*pair)


def test_losses_look_at_the_first_batch_alone() -> None:
    """A look at a tensor of a GPU waits for it, and a training has many steps."""
    pair = [torch.from_numpy(np.array(image)[None, None]) for image in (REFERENCE, DISTORTED)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            losses.ssim(pair[0], pair[1], backend="cpu")
    assert [warning.category for warning in caught] == [DataRangeWarning]


@pytest.mark.parametrize(("scale", "data_range"), [(1, 255), (255, 1)])
def test_frame_by_frame_the_warning_is_shown_once(scale: float, data_range: float) -> None:
    """As Python does by default with warnings that are equal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for step in range(5):
            brighter = np.float32(scale * (1 + step / 10))
            vkssim.ssim(REFERENCE * brighter, DISTORTED * brighter, data_range=data_range, backend="cpu")
    assert len(caught) == 1


def test_integers_have_the_warning_of_depth_alone() -> None:
    vkssim.ssim(*clip(2, 32, 40), backend="cpu")
