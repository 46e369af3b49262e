"""ssim_and_grad and ms_ssim_and_grad of arrays, against the float64 twin."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkssim
from vkssim.backends import loss_engine as engine
from vkssim.errors import FrameError, NoDeviceError, OptionError
from vkssim.loss.spec import MS_SSIM_WEIGHTS

from .loss.images import images, relative, twin
from .support.commands import python_process
from .support.differences import check_array, check_number
from .support.tolerances import (
    LOSS_GRADIENT,
    LOSS_GRADIENT_FLAT,
    LOSS_SLOPE,
    LOSS_VALUE,
    LOSS_VALUE_FLAT,
    SYMMETRY,
    TWIN_DOUBLE,
)
from .test_properties import LAYOUTS

pytestmark = pytest.mark.usefixtures("shared_device")

Call = Callable[..., Any]
THREE = (0.3, 0.3, 0.4)
STRUCTURED = ("noise", "natural")
FLAT = ("ramps", "flat", "bright", "anti")
SMALL = [(11, 11), (11, 40), (16, 16), (23, 29), (70, 53)]
ACROSS_STRIPS = [(37, 515), (515, 37), (131, 190)]
PARTS: dict[str, Any] = {
    "whole": np.s_[:],
    "top": np.s_[:12],
    "bottom": np.s_[-12:],
    "left": np.s_[:, :12],
    "right": np.s_[:, -12:],
    "corner": np.s_[-6:, -6:],
}
"""The parts of a gradient that are compared by themselves, so that the inside does not hide its borders."""

by_padding = pytest.mark.parametrize("padding", ["same", "valid"])
by_pyramid = pytest.mark.parametrize("pyramid", ["average", "libvmaf"])
by_backend = pytest.mark.parametrize("backend", ["vulkan", "cpu"])
by_function = pytest.mark.parametrize("function", [vkssim.ssim_and_grad, vkssim.ms_ssim_and_grad])


def _weights(function: Call) -> tuple[float, ...]:
    return MS_SSIM_WEIGHTS if function is vkssim.ms_ssim_and_grad else (1.0,)


def _check(kind: str, got: Any, expected: Any, *, flat: bool = False) -> None:
    value, gradient = got
    assert (type(value), gradient.dtype) == (float, np.float32)
    of_value, of_gradient = (LOSS_VALUE_FLAT, LOSS_GRADIENT_FLAT) if flat else (LOSS_VALUE, LOSS_GRADIENT)
    where = f"{kind} {gradient.shape}"
    check_number(of_value, "", where, value, expected[0])
    for name, part in PARTS.items():
        check_number(of_gradient, name, where, relative(gradient[part], expected[1][part]), 0.0)


@by_padding
@pytest.mark.parametrize("size", SMALL + ACROSS_STRIPS)
def test_ssim_against_the_twin(size: tuple[int, int], padding: str) -> None:
    for kind in STRUCTURED + FLAT:
        pair = images(kind, *size)
        got = vkssim.ssim_and_grad(*pair, data_range=1.0, padding=padding)
        _check(kind, got, twin(*pair, padding=padding), flat=kind in FLAT)


@by_padding
@by_pyramid
@pytest.mark.parametrize(
    ("size", "weights"),
    [((20, 31), (0.5,)), ((41, 44), THREE), ((63, 91), THREE), ((161, 165), MS_SSIM_WEIGHTS), ((259, 270), MS_SSIM_WEIGHTS)],
)
def test_ms_ssim_against_the_twin(size: tuple[int, int], weights: tuple[float, ...], padding: str, pyramid: str) -> None:
    for kind in (*STRUCTURED, "ramps", "bright"):
        pair = images(kind, *size)
        got = vkssim.ms_ssim_and_grad(*pair, data_range=1.0, weights=weights, padding=padding, pyramid=pyramid)
        _check(kind, got, twin(*pair, weights=weights, padding=padding, pyramid=pyramid), flat=kind in FLAT)


@pytest.mark.parametrize("size", [(1, 1), (5, 7), (3, 40)])
def test_zeros_around_images_smaller_than_the_window(size: tuple[int, int]) -> None:
    pair = images("noise", *size)
    value, gradient = vkssim.ssim_and_grad(*pair, data_range=1.0, padding="same")
    expected = twin(*pair, padding="same")
    check_number(LOSS_VALUE, "", f"{size}", float(value), expected[0])
    check_number(LOSS_GRADIENT, "whole", f"{size}", relative(gradient, expected[1]), 0.0)


@by_padding
def test_samples_against_differences(padding: str) -> None:
    """Independent of any gradient but the one in question: the twin's value with one sample moved."""
    reference, distorted = images("natural", 60, 75)
    _, gradient = vkssim.ms_ssim_and_grad(reference, distorted, data_range=1.0, weights=THREE, padding=padding)
    for place in [(0, 0), (0, 40), (59, 74), (30, 0), (31, 37), (6, 70)]:
        moved = [distorted.astype(np.float64) for _ in range(2)]
        for image, step in zip(moved, (1e-4, -1e-4), strict=True):
            image[place] += step
        above, below = (twin(reference, image, weights=THREE, padding=padding)[0] for image in moved)
        unit = np.abs(gradient).max()
        check_number(LOSS_SLOPE, "", f"{padding} {place}", gradient[place] / unit, (above - below) / 2e-4 / unit)


@by_padding
@pytest.mark.parametrize("kind", ["identical", "flat", "bright", "noise"])
def test_identical_images_are_a_summit(kind: str, padding: str) -> None:
    image, _ = images(kind, 170, 181)
    for function in (vkssim.ssim_and_grad, vkssim.ms_ssim_and_grad):
        value, gradient = function(image, image, data_range=1.0, padding=padding)
        assert value == 1.0
        assert not gradient.any()


@by_function
@pytest.mark.parametrize("shape", [(3, 170, 166), (2, 3, 165, 170)])
def test_reductions(function: Call, shape: tuple[int, ...]) -> None:
    pair = images("natural", *shape)
    values, gradients = function(*pair, data_range=1.0, reduction="none")
    assert (values.shape, values.dtype, gradients.shape, gradients.dtype) == (shape[:1], np.float64, shape, np.float32)
    weights = _weights(function)
    for value, gradient, *one in zip(values, gradients, *pair, strict=True):
        expected = twin(*one, weights=weights)
        check_number(LOSS_VALUE, "", f"{shape}", value, expected[0])
        check_number(LOSS_GRADIENT, "whole", f"{shape}", relative(gradient, expected[1]), 0.0)
    for reduction, count in (("sum", 1), ("mean", len(values))):
        value, gradient = function(*pair, data_range=1.0, reduction=reduction)
        assert type(value) is float
        assert value == pytest.approx(values.sum() / count, rel=1e-15)
        check_number(LOSS_GRADIENT, "reduced", reduction, relative(gradient * np.float32(count), gradients), 0.0)


@by_function
def test_neighbours_do_not_change_the_bits(function: Call) -> None:
    pair = images("natural", 5, 163, 170)
    values, gradients = function(*pair, data_range=1.0, reduction="none")
    again = function(*pair, data_range=1.0, reduction="none")
    np.testing.assert_equal(again, (values, gradients))
    for index, (first, second) in enumerate(zip(*pair, strict=True)):
        for reduction in ("mean", "sum", "none"):
            np.testing.assert_equal(
                function(first, second, data_range=1.0, reduction=reduction), (values[index], gradients[index])
            )


def test_more_planes_than_a_batch_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a size of its own: an engine kept from before would have its larger batch."""
    pair = images("natural", 7, 2, 47, 59)
    monkeypatch.setattr(engine, "_BATCH_BYTES", 1)
    values, gradients = vkssim.ms_ssim_and_grad(*pair, data_range=1.0, weights=THREE, reduction="none")
    monkeypatch.undo()
    assert isinstance(values, np.ndarray)
    for value, gradient, *one in zip(values, gradients, *pair, strict=True):
        expected = vkssim.ms_ssim_and_grad(one[0][None], one[1][None], data_range=1.0, weights=THREE)
        np.testing.assert_equal((value, gradient), (expected[0], expected[1][0]))


@by_padding
@by_pyramid
def test_what_is_not_finite_stays_in_its_image(padding: str, pyramid: str) -> None:
    """No image gets a product of 0 and a neighbour's NaN."""
    reference, distorted = images("natural", 4, 3, 45, 61)
    distorted[1, :, -1, -1], distorted[2, 2, 0, 0], distorted[2, 2, 20, 60] = np.nan, np.inf, -np.inf
    options: dict[str, Any] = {"data_range": 1.0, "weights": THREE, "padding": padding, "pyramid": pyramid}
    values, gradients = vkssim.ms_ssim_and_grad(reference, distorted, reduction="none", **options)
    assert np.isfinite(values).tolist() == [True, False, False, True]
    for index in (0, 3):
        expected = twin(reference[index], distorted[index], **options)
        check_number(LOSS_GRADIENT, "beside NaN", pyramid, relative(gradients[index], expected[1]), 0.0)


@by_function
def test_a_firefly_spoils_no_gradient_but_its_own(function: Call) -> None:
    """A sample far beyond the range, in both images, as renderers leave them."""
    reference, distorted = images("natural", 60, 76)
    for side in (reference, distorted):
        side[30, 36] = 1e3
    options: dict[str, Any] = {"weights": THREE} if function is vkssim.ms_ssim_and_grad else {}
    value, gradient = function(reference, distorted, data_range=1.0, **options)
    expected = twin(reference, distorted, **options)
    check_number(LOSS_VALUE, "arrays", "firefly", value, expected[0])
    near = np.s_[19:42, 25:48]
    for changed in (gradient, expected[1]):
        changed[near] = 0.0
    check_number(LOSS_GRADIENT, "beside a firefly", function.__name__, relative(gradient, expected[1]), 0.0)


def test_memory_that_nobody_wrote_is_not_read() -> None:
    """The C library fills what it hands out with 3e38, whose square is infinite; software devices take their memory there."""
    code = (
        "import numpy as np, vkssim; pair = np.random.default_rng(0).random((2, 161, 165), np.float32)\n"
        "for pyramid in ('average', 'libvmaf'):\n"
        "    value, gradient = vkssim.ms_ssim_and_grad(*pair, data_range=1.0, padding='same', pyramid=pyramid)\n"
        "    assert np.isfinite(value) and np.isfinite(gradient).all(), pyramid"
    )
    result = python_process("-c", code, environment={"MALLOC_PERTURB_": "128"})
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_in_memory_does_not_matter(layout: str) -> None:
    pair = images("natural", 45, 61)
    expected = vkssim.ssim_and_grad(*pair, data_range=1.0)
    got = vkssim.ssim_and_grad(*(LAYOUTS[layout](image) for image in pair), data_range=1.0)
    np.testing.assert_equal(got, expected)


@by_function
@pytest.mark.parametrize(
    ("dtype", "data_range"), [(np.uint8, None), (np.uint16, None), (np.uint16, 1023), (np.float64, 3.5), (np.float32, 255)]
)
def test_types_and_ranges(function: Call, dtype: type, data_range: float | None) -> None:
    """A gradient is per unit of the samples, whatever their range."""
    peak = data_range or np.iinfo(dtype).max
    pair: list[Any] = [(image * peak).astype(dtype) for image in images("natural", 165, 167)]
    weights = _weights(function)
    expected = twin(*pair, data_range=peak, weights=weights)
    _check(f"{dtype.__name__} {peak}", function(*pair, data_range=data_range), expected)


@by_function
def test_range_is_a_matter_of_scale(function: Call) -> None:
    pair = images("natural", 165, 167)
    value, gradient = function(*pair, data_range=1.0)
    for scale in (256, 255):
        other, smaller = function(*(image * np.float32(scale) for image in pair), data_range=scale)
        check_number(LOSS_VALUE, "range", f"{scale}", other, value)
        check_number(LOSS_GRADIENT, "range", f"{scale}", relative(smaller * np.float32(scale), gradient), 0.0)


@by_function
def test_swapped_images_have_the_same_value(function: Call) -> None:
    pair = images("natural", 165, 167)
    check_number(SYMMETRY, "loss", "", function(*pair, data_range=1.0)[0], function(*pair[::-1], data_range=1.0)[0])


def test_constants_by_k() -> None:
    pair, k = images("natural", 50, 51), (0.05, 0.4)
    _check(f"k {k}", vkssim.ssim_and_grad(*pair, data_range=1.0, k=k), twin(*pair, k=k))


@by_function
def test_cpu_is_the_twin_in_double(function: Call) -> None:
    pair = images("natural", 2, 3, 165, 167)
    value, gradient = function(*pair, data_range=1.0, padding="same", backend="cpu")
    expected = twin(*pair, weights=_weights(function), padding="same")
    check_number(TWIN_DOUBLE, "value", "front", value, expected[0])
    check_array(TWIN_DOUBLE, "front", gradient, expected[1])
    assert gradient.dtype == np.float64


@by_backend
def test_negative_structure(backend: str) -> None:
    """One scale keeps it. Several have value and gradient 0 or NaN, and leave the images beside alone."""
    pair: list[Any] = [np.stack(sides) for sides in zip(images("anti", 170, 170), images("natural", 170, 170), strict=True)]
    options: dict[str, Any] = {"data_range": 1.0, "backend": backend}
    assert vkssim.ssim_and_grad(pair[0][0], pair[1][0], **options)[0] < -0.1
    for negative, worst in (("clamp", 0.0), ("null", np.nan)):
        values, gradients = vkssim.ms_ssim_and_grad(*pair, negative=negative, reduction="none", **options)
        assert isinstance(values, np.ndarray)
        np.testing.assert_equal(values[0], worst)
        np.testing.assert_equal(gradients[0], np.full_like(gradients[0], worst))
        assert values[1] > 0.5
        assert gradients[1].any()
    assert np.isnan(vkssim.ms_ssim_and_grad(*pair, negative="null", **options)[0])


IMAGE = np.zeros((64, 64), np.float32)
BYTES = IMAGE.astype(np.uint8)


@by_function
@by_backend
@pytest.mark.parametrize(
    ("reference", "distorted", "message"),
    [
        (BYTES, BYTES[:63], r"\(64, 64\).*\(63, 64\).*must be alike"),
        (BYTES, IMAGE, "uint8.*float32.*must be alike"),
        (BYTES[0], BYTES[0], r"\(64,\).*\(H, W\)"),
        (BYTES[None, None, None],) * 2 + (r"\(1, 1, 1, 64, 64\).*\(N, C, H, W\)",),
        (BYTES[:0], BYTES[:0], r"\(0, 64\)"),
        (BYTES[None, :0][:0],) * 2 + (r"an array of shape \(0, 0, 64\) has no image",),
        (BYTES.astype(np.int32),) * 2 + ("samples are int32",),
        (BYTES.astype(np.complex128),) * 2 + ("samples are complex128",),
        (IMAGE, IMAGE, "give data_range"),
        (BYTES[:10], BYTES[:10], "64x10 are too small"),
        (np.ma.masked_less(BYTES, 9), BYTES, "reference is a masked array"),
        (BYTES, np.ma.masked_less(BYTES, 9), "distorted is a masked array"),
    ],
)
def test_images_that_are_refused(function: Call, reference: Any, distorted: Any, message: str, backend: str) -> None:
    with pytest.raises(FrameError, match=message) as caught:
        function(reference, distorted, backend=backend)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("option", "value", "choices"),
    [
        ("reduction", "median", ("mean", "sum", "none")),
        ("padding", "reflect", ("same", "valid")),
        ("pyramid", "bilinear", ("average", "libvmaf")),
        ("negative", "abs", ("clamp", "null")),
        ("negative", "keep", ("clamp", "null")),
        ("backend", "cuda", ("vulkan", "cpu")),
        ("weights", (), ("one number or more",)),
        ("weights", (0.5, -0.5), ("none negative",)),
        ("weights", (0.5, np.nan), ("none negative",)),
        ("k", (0.0, 0.03), ("above 0",)),
        ("k", (0.01,), ("K1", "K2")),
    ],
)
def test_options_that_are_refused(option: str, value: Any, choices: tuple[str, ...]) -> None:
    """The message has what was got and what would be possible."""
    with pytest.raises(OptionError) as caught:
        vkssim.ms_ssim_and_grad(BYTES, BYTES, **{"weights": (1.0, 1.0), option: value})
    for word in (str(value) if isinstance(value, str) else "", *choices):
        assert word in str(caught.value)


@by_function
@pytest.mark.parametrize("data_range", [0.0, -1.0, math.nan, math.inf, 1e300, "255"])
def test_ranges_that_are_refused(function: Call, data_range: float) -> None:
    with pytest.raises(OptionError, match=rf"data_range is {re.escape(repr(data_range))}.* a number "):
        function(BYTES, BYTES, data_range=data_range)


@by_function
def test_samples_beyond_the_range_are_refused(function: Call) -> None:
    beyond = np.full_like(BYTES, 100)
    beyond[5, 6] = 101
    with pytest.raises(FrameError, match="distorted has a sample of 101, but 100 is the largest"):
        function(np.full_like(BYTES, 100), beyond, data_range=100)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(NoDeviceError, match="voodoo"):
        vkssim.ssim_and_grad(BYTES, BYTES, device="voodoo")
