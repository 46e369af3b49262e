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
from vkssim.metrics.ssim import ssim_maps
from vkssim.metrics.uniform import uniform_maps
from vkssim.metrics.window import lcs_maps

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
        (IMAGE[None, None], IMAGE[None, None], r"must be \(H, W\) or \(N, H, W\)"),
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
    assert vkssim.ssim(image, image, channel_axis=-1, backend="cpu") == 1.0
    assert vkssim.ssim(image[..., 0], image[..., 0], backend="cpu") == 1.0
    for colours, cure in ((image, r"np\.moveaxis\(image, -1, 0\)\[None\]"), (image[None], r"np\.moveaxis\(images, -1, 1\)")):
        with pytest.raises(FrameError, match=rf"with the colours last; pass \(N, C, H, W\): `{cure}`"):
            vkssim.ssim_and_grad(colours, colours, backend="cpu")
    first = np.moveaxis(image, -1, 0)[None]
    assert vkssim.ssim_and_grad(first, first, backend="cpu")[0] == pytest.approx(1)


@pytest.fixture(scope="module")
def colours() -> tuple[np.ndarray, np.ndarray]:
    """Two stacks of two images, (2, 180, 190, 3)."""
    reference = np.random.default_rng(2).integers(0, 256, (2, 180, 190, 3), np.uint8)
    noise = np.random.default_rng(3).normal(0, (5, 20, 60), reference.shape)
    return reference, np.clip(reference + noise, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_channels_are_scored_plane_by_plane(function: Any, backend: str, colours: tuple[np.ndarray, np.ndarray]) -> None:
    function = partial(function, backend=backend)
    planes = np.array([function(*(images[..., channel] for images in colours)) for channel in range(3)])
    expected = planes.mean(axis=0)
    assert np.ptp(planes) > 0.01
    np.testing.assert_allclose(function(*colours, channel_axis=-1), expected, rtol=1e-12)
    first = [np.moveaxis(images, -1, 1) for images in colours]
    np.testing.assert_allclose(function(*first, channel_axis=1), expected, rtol=1e-12)
    single = function(colours[0][1], colours[1][1], channel_axis=2)
    assert type(single) is float
    assert single == pytest.approx(expected[1], rel=1e-12)


def test_a_map_has_the_channels_of_its_images(colours: tuple[np.ndarray, np.ndarray]) -> None:
    with_map: Any = partial(vkssim.ssim, return_map=True, backend="cpu")
    _, maps = with_map(*colours, channel_axis=-1)
    assert maps.shape == (2, 170, 180, 3)
    _, plane = with_map(colours[0][1, ..., 2], colours[1][1, ..., 2])
    np.testing.assert_array_equal(maps[1, ..., 2], plane)
    assert with_map(colours[0][1], colours[1][1], channel_axis=-1)[1].shape == (170, 180, 3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_psnr(backend: str, colours: tuple[np.ndarray, np.ndarray]) -> None:
    """By its formula, as scikit-image's `peak_signal_noise_ratio` has it."""
    squares = (colours[0].astype(np.float64) - colours[1]) ** 2
    function = partial(vkssim.psnr, backend=backend)
    for axis, reduced in ((-1, (1, 2, 3)), (None, (1, 2))):
        images = colours if axis else tuple(images[..., 0] for images in colours)
        noise = (squares if axis else squares[..., 0]).mean(axis=reduced)
        expected = 10 * np.log10(255**2 / noise)
        np.testing.assert_allclose(function(*images, channel_axis=axis), expected, rtol=1e-9)
        floats = [image[0] / 255 for image in images]
        assert function(*floats, data_range=1.0, channel_axis=axis) == pytest.approx(expected[0], abs=1e-4)
    assert function(colours[0][0, ..., 0], colours[0][0, ..., 0]) == 60


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("window", "maps", "middle", "side"), [("gaussian11", lcs_maps, 5, 11), ("uniform8", uniform_maps, 4, 8)]
)
def test_a_mask_weighs_windows(
    backend: str, window: str, maps: Any, middle: int, side: int, colours: tuple[np.ndarray, np.ndarray]
) -> None:
    """By the NumPy twin: the weight of a window is that of its middle sample."""
    reference, distorted = (images[..., 1] for images in colours)
    mask = np.zeros(reference.shape)
    mask[0, :60, 40:90], mask[1, 100:, :] = 1, np.linspace(0, 3, reference.shape[2])
    expected = []
    for first, second, weights in zip(reference, distorted, mask, strict=True):
        terms = ssim_maps(first.astype(np.float32), second.astype(np.float32), 1, maps)[0]
        rows, columns = terms.shape
        assert (rows, columns) == (181 - side, 191 - side)
        expected.append(np.average(terms, weights=weights[middle : middle + rows, middle : middle + columns]))
    score: Any = partial(vkssim.ssim, backend=backend, window=window)
    np.testing.assert_allclose(score(reference, distorted, mask=mask), expected, atol=1e-6)
    chosen = mask[0] > 0
    single = score(reference[0], distorted[0], mask=chosen)
    assert single == pytest.approx(expected[0], abs=1e-6)
    assert score(reference[0], distorted[0], mask=chosen, enable_db=True) == pytest.approx(-10 * np.log10(1 - single), abs=1e-9)
    unknown = distorted[0].astype(np.float32)
    unknown[100:] = np.nan
    assert score(reference[0].astype(np.float32), unknown, data_range=255, mask=chosen) == pytest.approx(single, abs=1e-6)
    value, whole = score(reference[0], distorted[0], mask=np.ones(mask[0].shape), return_map=True)
    assert value == pytest.approx(whole.mean(dtype=np.float64), abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"channel_axis": 4}, r"channel_axis is 4; images of shape \(2, 180, 190, 3\) have the axes 0 to 3"),
        ({"channel_axis": -1, "mask": np.ones((3, 3))}, r"mask has shape \(3, 3\); it must be \(180, 190\) or \(2, 180, 190\)"),
        ({"channel_axis": -1, "mask": np.zeros((180, 190))}, "for each image a window that counts"),
        ({"channel_axis": -1, "mask": -np.ones((180, 190))}, "weights of 0 or more"),
        ({"channel_axis": -1, "mask": np.ones((180, 190)), "scale": 2}, "it needs scale=1"),
        ({"channel_axis": -1, "mask": np.ones((180, 190)), "window": "uniform8", "estimate": True}, "leaves some out"),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
)
def test_axes_and_masks_that_cannot_be(arguments: dict[str, Any], message: str, colours: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises((FrameError, OptionError), match=message):
        vkssim.ssim(*colours, **arguments, backend="cpu")


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
    with pytest.raises(AttributeError, match="No vkssim attribute vif"):
        vkssim.vif  # type: ignore[attr-defined] # noqa: B018


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
vkssim.ssim(plane, plane, window="uniform8")
vkssim.ssim_and_grad(plane, plane)
scorer = vkssim.Scorer(64, 64, dtype="u1", features="float_psnr")
scorer.feed(plane, plane)
"""
    result = python_process("-c", code)
    assert result.returncode == 0, result.stderr
