"""Test the arguments that are numbers: each type of number works in every function, or is an OptionError in every function."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import vkssim
from vkssim import torch as losses
from vkssim.errors import OptionError

from .support.pictures import clip

FIRST, SECOND = (image.astype(np.float32) for image in clip(2, 32, 40))
TENSORS: Any = tuple(torch.from_numpy(image[None, None]) for image in (FIRST, SECOND))
WEIGHTS = (0.5, 0.5)

Door = Callable[..., Any]


def _module(kind: type[torch.nn.Module], **options: Any) -> float:
    value: torch.Tensor = kind(backend="cpu", **options)(*TENSORS)
    return value.item()


def _scores(**options: Any) -> float:
    options = {"dtype": np.float32, "data_range": 255, "width": 40, "height": 32, **options}
    with vkssim.Scorer(**options, features="float_ssim=scale=1", backend="cpu") as scorer:
        (scores,) = scorer.score([(FIRST, SECOND)])
    return scores.metrics["float_ssim"]


OF_RANGE: dict[str, Door] = {
    "ssim": partial(vkssim.ssim, FIRST, SECOND, backend="cpu"),
    "ssim_and_grad": lambda **given: vkssim.ssim_and_grad(FIRST, SECOND, backend="cpu", **given)[0],
    "ms_ssim_and_grad": lambda **given: vkssim.ms_ssim_and_grad(FIRST, SECOND, backend="cpu", weights=WEIGHTS, **given)[0],
    "Scorer": _scores,
    "torch.fused_ssim": lambda **given: losses.fused_ssim(*TENSORS, backend="cpu", **given).item(),
    "torch.ssim": lambda **given: losses.ssim(*TENSORS, backend="cpu", **given).item(),
    "torch.ms_ssim": lambda **given: losses.ms_ssim(TENSORS[0], TENSORS[1], backend="cpu", weights=WEIGHTS, **given).item(),
    "torch.SSIM": partial(_module, losses.SSIM),
    "torch.MS_SSIM": partial(_module, losses.MS_SSIM, weights=WEIGHTS),
}

NUMBERS: dict[str, Callable[[int], Any]] = {
    "int": int,
    "float32": np.float32,
    "int64": np.int64,
    "Fraction": Fraction,
    "Decimal": Decimal,
    "array": np.array,
    "tensor": torch.tensor,
}

NO_NUMBERS = (
    "255",
    np.str_("255"),
    True,
    np.True_,
    255j,
    [255.0],
    np.array([255.0]),
    torch.tensor([255.0]),
    float("nan"),
    float("inf"),
    10**5000,
    Decimal("sNaN"),
)


@pytest.mark.parametrize("door", OF_RANGE.values(), ids=OF_RANGE)
def test_every_number_is_a_range(door: Door) -> None:
    expected = door(data_range=255.0)
    assert {name: door(data_range=kind(255)) for name, kind in NUMBERS.items()} == dict.fromkeys(NUMBERS, expected)


@pytest.mark.parametrize("door", OF_RANGE.values(), ids=OF_RANGE)
def test_anything_else_is_no_range(door: Door) -> None:
    for value in NO_NUMBERS:
        with pytest.raises(OptionError, match="data_range"):
            door(data_range=value)


@pytest.mark.parametrize("kind", NUMBERS.values(), ids=NUMBERS)
def test_every_whole_number_is_one(kind: Callable[[int], Any]) -> None:
    score = partial(vkssim.ssim, FIRST, SECOND, data_range=255, backend="cpu")
    assert score(scale=kind(2)) == score(scale=2)
    assert _scores(width=kind(40), height=kind(32), batch=kind(1)) == _scores()
    losses.ssim(TENSORS[0], TENSORS[1], win_size=kind(11), backend="cpu")
    losses.SSIM(spatial_dims=kind(2))


@pytest.mark.parametrize("value", [None, "x", True, 1.5, [2], np.array([2, 3]), torch.tensor([2, 3]), float("nan")], ids=repr)
def test_anything_else_is_no_whole_number(value: Any) -> None:
    with pytest.raises(OptionError, match=r"scale is .* it must be a whole number from 0 to 10"):
        vkssim.ssim(FIRST, SECOND, data_range=255, scale=value, backend="cpu")
    with pytest.raises(OptionError, match=r"width is .* it must be a whole number"):
        _scores(width=value)


def test_a_whole_number_without_end_is_none() -> None:
    with pytest.raises(OptionError, match="scale is a number of thousands of digits; it must be a whole number from 0 to 10"):
        vkssim.ssim(FIRST, SECOND, data_range=255, scale=10**5000, backend="cpu")


@pytest.mark.parametrize("name", ["k", "weights"])
@pytest.mark.parametrize("value", [0.1, None, "ab", (True, True), ("1", "2"), ([1], [2])])
def test_sequences_of_numbers(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=rf"(?i)\b{name} is .* must be a"):
        vkssim.ms_ssim_and_grad(FIRST, SECOND, data_range=255, backend="cpu", **{name: value})
    argument = {"k": "K"}.get(name, name)
    if (name, value) != ("weights", None):  # the default
        with pytest.raises(OptionError, match=rf"\b{argument} is .* must be a"):
            losses.ms_ssim(*TENSORS, backend="cpu", **{argument: value})
    compute: Door = partial(vkssim.ms_ssim_and_grad, FIRST, SECOND, data_range=255, backend="cpu")
    expected = compute(**{"weights": WEIGHTS, name: (0.25, 0.5)})
    np.testing.assert_equal(compute(**{"weights": WEIGHTS, name: (Fraction(1, 4), np.float32(0.5))}), expected)
