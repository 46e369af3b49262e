"""ms_ssim and ssim of arrays."""

from __future__ import annotations

import inspect
import math
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import vkssim
from vkssim.errors import DepthWarning, FrameError, NoDeviceError, OptionError
from vkssim.metrics import FEATURES

from .support.commands import python_process
from .support.pictures import Picture, clip, distort, pair, texture

pytestmark = pytest.mark.usefixtures("shared_device")

BACKENDS = ("vulkan", "cpu")
FUNCTIONS = (vkssim.ms_ssim, vkssim.ssim)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_one_image_gives_a_float_and_a_stack_an_array(function: Any, backend: str, dtype: type[Any]) -> None:
    reference = clip(3, 180, 190).astype(dtype)
    distorted = np.roll(reference, 1, axis=1)
    function = partial(function, backend=backend, data_range=255)
    stack = function(reference, distorted)
    assert (stack.shape, stack.dtype) == ((3,), np.float64)
    for scores, first, second in zip(stack, reference, distorted, strict=True):
        single = function(first, second)
        assert type(single) is float
        assert single == scores


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_every_type(function: Any, dtype: type[Any]) -> None:
    reference = texture(180, 190)
    peak = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1.0
    images: list[Picture] = [(picture * peak).astype(dtype) for picture in (reference, distort(reference))]
    got, expected = (function(*images, data_range=peak, backend=backend) for backend in BACKENDS)
    assert got == pytest.approx(expected, abs=5e-5)
    assert 0.5 < got < 1


def test_ten_bits_by_their_range() -> None:
    reference, distorted = pair(64, 64, bits=10)
    with vkssim.Scorer(64, 64, bits=10, features="float_ssim=scale=1") as scorer:
        (expected,) = scorer.score([(reference, distorted)])
    assert vkssim.ssim(reference, distorted, data_range=1023) == expected.metrics["float_ssim"]


def test_scale_and_precision() -> None:
    reference, distorted = pair(300, 400)
    by_scale = [vkssim.ssim(reference, distorted, scale=scale) for scale in (0, 1, 2)]
    assert by_scale[0] == by_scale[1] != by_scale[2]
    assert by_scale[1] != vkssim.ssim(reference, distorted, precision="fast") == pytest.approx(by_scale[1], abs=5e-5)


def test_negative_structure() -> None:
    image = clip(1, 180, 180)[0]
    score = vkssim.ms_ssim(image, 255 - image)
    assert isinstance(score, float)
    assert math.isnan(score)
    assert vkssim.ms_ssim(image, 255 - image, negative="clamp") == 0.0


IMAGE = np.zeros((64, 64), np.uint8)


@pytest.mark.parametrize(
    ("reference", "distorted", "message"),
    [
        (IMAGE, IMAGE[:63], "must be alike"),
        (IMAGE, IMAGE.astype(np.uint16), "must be alike"),
        (IMAGE[0], IMAGE[0], r"must be \(H, W\) or \(N, H, W\)"),
        (IMAGE[None, None], IMAGE[None, None], "one plane at a time"),
        (np.empty((0, 64, 64), np.uint8),) * 2 + ("has no image",),
        (IMAGE.astype(np.int32),) * 2 + ("samples are int32",),
        (IMAGE.astype(np.float32),) * 2 + ("give data_range",),
        (IMAGE[:10],) * 2 + ("needs 11x11",),
        (np.zeros((64, 64, 3), np.uint8),) * 2 + (r"shape \(64, 64, 3\), which is \(H, W, colours\).*`image\[\.\.\., 0\]`",),
        (np.zeros((2, 64, 64, 4), np.uint8),) * 2 + (r"which is \(N, H, W, colours\).*`images\[\.\.\., 0\]`",),
    ],
)
def test_what_is_refused(reference: Any, distorted: Any, message: str) -> None:
    with pytest.raises(FrameError, match=message) as caught:
        vkssim.ssim(reference, distorted)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_masks_are_not_dropped_in_silence(function: Any) -> None:
    masked = np.ma.masked_greater(IMAGE, 100)
    for images in ((masked, IMAGE), (IMAGE, masked)):
        with pytest.raises(FrameError, match=r"is a masked array.*`\.filled\(value\)`"):
            function(*images)
    with pytest.raises(FrameError, match="reference is a masked array"):
        function([masked, masked], np.stack([IMAGE, IMAGE]))


@pytest.mark.parametrize("name", ["reference", "distorted"])
@pytest.mark.parametrize("with_map", [False, True])
def test_samples_beyond_the_range_are_refused(name: str, with_map: bool) -> None:
    images = dict(zip(("reference", "distorted"), pair(64, 64, bits=10), strict=True))
    images[name][40, 3] = 1024
    function = partial(vkssim.ssim, return_map=True) if with_map else vkssim.ssim
    with pytest.raises(FrameError, match=rf"{name} frame.* has a sample of 1024, and 1023 is the largest"):
        function(images["reference"], images["distorted"], data_range=1023)
    function(images["reference"], images["distorted"], data_range=4095)


@pytest.mark.parametrize("with_map", [False, True])
def test_an_error_counts_the_images_of_its_call(with_map: bool) -> None:
    images = pair(64, 64, bits=10)
    function = partial(vkssim.ssim, data_range=1023, return_map=with_map)
    for _ in range(3):  # the device stays open
        function(*images)
    wrong = np.stack([images[0], np.full_like(images[0], 1024)])
    for count, stack in ((0, wrong[1]), (1, wrong)):
        with pytest.raises(FrameError, match=f"the reference frame {count} has a sample of 1024"):
            function(stack, stack)


@pytest.mark.parametrize(
    "function", [*FUNCTIONS, partial(vkssim.ssim, return_map=True), vkssim.ssim_and_grad, vkssim.ms_ssim_and_grad]
)
def test_ten_bits_in_sixteen_are_warned_of(function: Any) -> None:
    stack = np.stack([np.zeros((180, 180), np.uint16), pair(180, 180, bits=10)[0]])
    bright = stack.copy()
    bright[1, 90, 90] = 16384
    with pytest.warns(DepthWarning) as said:
        function(stack, bright)
    assert [str(warning.message) for warning in said] == [
        "no sample of reference exceeds 1023, a quarter of the range or less; if the samples have 10 bits, give data_range=1023"
    ]
    function(stack, bright, data_range=65535)
    function(np.zeros_like(stack), bright)


def test_what_to_pass_for_colours_last_is_right() -> None:
    """The expressions that the errors name give what can be scored."""
    image = np.random.default_rng(0).integers(0, 256, (32, 48, 3), np.uint8)
    planes = vkssim.ssim(np.moveaxis(image, -1, 0), np.moveaxis(image, -1, 0), backend="cpu")
    assert np.shape(planes) == (3,)
    assert vkssim.ssim(image[..., 0], image[..., 0], backend="cpu") == 1.0
    for colours, cure in ((image, r"np\.moveaxis\(image, -1, 0\)\[None\]"), (image[None], r"np\.moveaxis\(images, -1, 1\)")):
        with pytest.raises(FrameError, match=rf"with the colours last; pass \(N, C, H, W\): `{cure}`"):
            vkssim.ssim_and_grad(colours, colours, backend="cpu")
    first = np.moveaxis(image, -1, 0)[None]
    assert vkssim.ssim_and_grad(first, first, backend="cpu")[0] == pytest.approx(1)


def test_options_that_cannot_be() -> None:
    with pytest.raises(OptionError, match="a whole number from 0 to 10"):
        vkssim.ssim(IMAGE, IMAGE, scale=11)
    with pytest.raises(OptionError, match="`backend` is"):
        vkssim.ssim(IMAGE, IMAGE, backend="cuda")
    with pytest.raises(NoDeviceError, match="voodoo"):
        vkssim.ssim(IMAGE, IMAGE, device="voodoo")


def test_names_of_the_package() -> None:
    public = import_module("vkssim").__all__  # which the stub does not declare
    for name in public:
        assert getattr(vkssim, name) is not None
    assert set(dir(vkssim)) == set(public)
    with pytest.raises(AttributeError, match="No vkssim attribute psnr"):
        vkssim.psnr  # type: ignore[attr-defined] # noqa: B018


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_in_decibels(function: Any, backend: str) -> None:
    """As `enable_db` of the metrics: infinite for identical images, unless it is limited to what their size can tell apart."""
    reference = clip(2, 180, 190)
    distorted = reference.copy()
    distorted[1] = np.roll(distorted[1], 1, axis=1)
    scores = function(reference, distorted, backend=backend)
    with np.errstate(divide="ignore"):
        expected = -10 * np.log10(1 - scores)
    np.testing.assert_allclose(function(reference, distorted, enable_db=True, backend=backend), expected)
    assert expected[0] == np.inf
    limit = math.ceil(10 * math.log10(255**2 * 2 * 180 * 190))
    clipped = function(reference, distorted, enable_db=True, clip_db=True, backend=backend)
    np.testing.assert_allclose(clipped, [limit, expected[1]])
    np.testing.assert_array_equal(function(reference, distorted, clip_db=True, backend=backend), scores)


@pytest.mark.parametrize(("function", "metric"), [(vkssim.ms_ssim, "float_ms_ssim"), (vkssim.ssim, "float_ssim")])
def test_options_are_those_of_the_metric(function: Any, metric: str) -> None:
    parameters = inspect.signature(function).parameters
    for name, option in FEATURES[metric].options.items():
        assert (name in parameters) == (not option.adds)
        assert (f"{name} : " in function.__doc__) == (not option.adds)
        assert option.adds or name == "scale" or parameters[name].default == option.default
    image = clip(1, 180, 190)
    with pytest.raises(OptionError, match="enable_lcs adds scores, and this function returns one"):
        function(image, image, enable_lcs=True)
    with pytest.raises(OptionError, match=f"{metric} has no option 'enable_bd'.*did you mean enable_db"):
        function(image, image, enable_bd=True)


def test_process_ends_well_with_devices_still_open() -> None:
    """At its end an interpreter lets go of things in an order of its own."""
    code = """
import numpy, vkssim
plane = numpy.zeros((64, 64), "u1")
vkssim.ssim(plane, plane)
vkssim.ssim_and_grad(plane, plane)
scorer = vkssim.Scorer(64, 64, dtype="u1", features="float_ssim")
scorer.feed(plane, plane)
"""
    result = python_process("-c", code)
    assert result.returncode == 0, result.stderr
