"""Both backends against libvmaf itself, on a few hundred random pairs of pictures.

The twin is no judge of an assumption that both backends share, and the scores in fixtures/ are those of a few pairs.
`tests/stress/precision` continues for as long as it is given.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from gate_matrix import FIXTURES, LARGE_PAIRS, CasePair, stored_samples, stored_scores

from vkssim import Scorer

from .support import golden
from .support.against_libvmaf import BOTH, Draw, compare, disagreements, draw
from .support.hard_pictures import KINDS, hard_pair
from .support.libvmaf import (
    DEPTHS,
    Scores,
    libvmaf_adm,
    libvmaf_cambi,
    libvmaf_models,
    libvmaf_motion,
    libvmaf_scores,
    libvmaf_vif,
)

pytestmark = pytest.mark.usefixtures("shared_device")

DRAWS = 56
DRAWS_OF_A_TEST = 4
"""Few, so that workers share the draws, and a test ends in time on a busy machine."""


@pytest.mark.parametrize("first", range(0, DRAWS, DRAWS_OF_A_TEST))
def test_random_pairs(first: int) -> None:
    wrong = [text for number in range(first, first + DRAWS_OF_A_TEST) for text in disagreements(draw(number))]
    assert not wrong, "\n".join([*wrong, "`tests/stress/precision --first NUMBER --draws 1` repeats a draw"])


@pytest.mark.parametrize("side", [128, 384, 640, 1152, 1664])
def test_automatic_downscales_half_way_between_two_factors(side: int) -> None:
    """The smaller side divided by 256 ends in .5 here."""
    pair = hard_pair("shift", side, (side + 9, side), 8)
    assert not disagreements(Draw(side, (pair,), ("float_ssim",), 0))


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        *(("faint likeness", seed) for seed in (967, 922, 565, 1197)),  # mean structures of 4e-6, 3.6e-5, -1e-5, -2e-5
        *(("against black", seed) for seed in (6, 18, 42, 57)),  # luminance of 1.1e-4 to 1.2e-4
        *(("strong checkerboard", seed) for seed in (44, 57)),  # contrast of 2e-3 and 3e-3
    ],
)
def test_means_near_0(kind: str, seed: int) -> None:
    """A mean of luminance, contrast or structure near 0, whose power magnifies its error."""
    assert not disagreements(Draw(seed, (hard_pair(kind, seed, (192, 180), 8),), BOTH, 0))


@pytest.mark.parametrize(("name", "key"), [pair for pair in golden.case_keys() if pair[1] in ("libvmaf", "libvmaf_scale1")])
def test_this_libvmaf_gives_the_scores_of_fixtures(name: str, key: str) -> None:
    case = golden.load_case(name, key)
    features = [feature.partition("=")[0] for feature in golden.FEATURES[key]]
    (scores,) = libvmaf_scores([(case.reference, case.distorted)], case.bits, features, int(key == "libvmaf_scale1"))
    rounded = {name: None if score is None else round(score, 6) for name, score in scores.items()}
    stored = {name: None if score is None else round(score, 6) for name, score in case.scores.items()}  # some have 16 decimals
    assert rounded == stored


@pytest.mark.parametrize("pair", LARGE_PAIRS, ids=lambda pair: "{}x{}".format(*pair.tiled))
def test_scores_of_large_frames_are_those_of_libvmaf(pair: CasePair) -> None:
    """fixtures/cases.json has them for the gate."""
    case = json.loads((FIXTURES / "cases.json").read_text("utf-8"))["cases"][pair.case]
    with np.load(FIXTURES / "cases.npz") as archive:
        (scores,) = libvmaf_scores([stored_samples(pair, archive)], case["bitdepth"], BOTH)
    assert {name: None if score is None else round(score, 6) for name, score in scores.items()} == stored_scores(pair, case)


@pytest.mark.filterwarnings("ignore::vkssim.errors.DepthWarning")  # of dark pictures
@pytest.mark.parametrize("bits", DEPTHS)
def test_vif_of_hard_pairs(bits: int) -> None:
    """The kernels give the float32 numbers of libvmaf for every kind of picture, with and without a limit of the gain."""
    rng = np.random.default_rng(bits)
    kinds = list(enumerate(KINDS))
    for group in range(4):
        width, height = (int(side) for side in rng.integers(64, 300, 2))
        limit = (100, 1)[group % 2]
        pairs = [hard_pair(kind, seed, (width, height), bits) for seed, kind in kinds[group::4]]
        planes = [(pair.reference, pair.distorted) for pair in pairs]
        with Scorer(width, height, bits=bits, features=f"vif=vif_enhn_gain_limit={limit}") as scorer:
            frames = list(scorer.score(planes))
        for pair, scores, expected in zip(pairs, frames, libvmaf_vif(planes, bits, limit), strict=True):
            got = [np.float32(score) for score in scores.metrics.values()]
            assert got == [np.float32(score) for score in expected.values()], (str(pair), limit)


@pytest.mark.filterwarnings("ignore::vkssim.errors.DepthWarning")  # of dark pictures
@pytest.mark.parametrize("bits", DEPTHS)
def test_adm_of_hard_pairs(bits: int) -> None:
    """The kernels give the numbers of libvmaf, of a size for which its vector code gives those of its C code."""
    width, height = 320, 180
    pairs = [hard_pair(kind, seed, (width, height), bits) for seed, kind in enumerate(KINDS)]
    for limit in (100, 1):
        planes = [(pair.reference, pair.distorted) for pair in pairs]
        with Scorer(width, height, bits=bits, features=f"adm=adm_enhn_gain_limit={limit}") as scorer:
            frames = list(scorer.score(planes))
        for pair, scores, expected in zip(pairs, frames, libvmaf_adm(planes, bits, limit), strict=True):
            assert list(scores.metrics.values()) == pytest.approx(list(expected.values()), abs=1e-9), (str(pair), limit)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("frames", [1, 2, 3, 9])
def test_motion_of_random_walks(frames: int, wide: bool, average: bool) -> None:
    """Of clips that are shorter than the window too."""
    steps = np.random.default_rng(frames).normal(size=(frames, 60, 100))
    clip = np.clip(128 + 10 * np.cumsum(steps, axis=0), 0, 255).astype(np.uint8)
    options = {"motion_five_frame_window": wide, "motion_moving_average": average}
    feature = f"motion={':'.join(f'{name}={str(value).lower()}' for name, value in options.items())}"
    with Scorer(100, 60, bits=8, features=feature, batch=2) as scorer:
        got = [[*scores.metrics.values()] for scores in scorer.score([(picture, picture) for picture in clip])]
    expected = [[*scores.values()] for scores in libvmaf_motion(list(clip), 8, options)]
    np.testing.assert_allclose(np.array(got), np.array(expected, np.float64), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::vkssim.errors.DepthWarning")  # of dark pictures
@pytest.mark.parametrize("bits", DEPTHS)
def test_cambi_of_random_bands(bits: int) -> None:
    """Slopes of few levels, with and without noise, and blocks, of an odd size."""
    random = np.random.default_rng(bits)
    width, height, peak = 301, 217, 2**bits - 1
    rows, columns = np.mgrid[:height, :width] / max(width, height)
    slopes = [random.uniform(0.1, 1) * rows + random.uniform(0.1, 1) * columns for _ in range(4)]
    pictures = [peak * np.floor(slope * levels) / 60 for slope, levels in zip(slopes, random.integers(6, 30, 4), strict=True)]
    pictures.append(pictures[0] + random.integers(0, 2, rows.shape))
    pictures.append(np.kron(random.integers(0, peak + 1, (28, 38)), np.ones((8, 8)))[:height, :width])
    planes = [np.clip(picture, 0, peak).astype(np.uint8 if bits == 8 else np.uint16) for picture in pictures]
    pairs = [(planes[0], plane) for plane in planes]
    expected = [scores["cambi"] for scores in libvmaf_cambi(pairs, bits)]
    for backend, tolerance in (("cpu", 1e-9), ("vulkan", 1e-6)):
        with Scorer(width, height, bits=bits, features="cambi", backend=backend) as scorer:
            got = [scores.metrics["cambi"] for scores in scorer.score(pairs)]
        assert got == pytest.approx(expected, abs=tolerance)
    assert max(filter(None, expected)) > 0.1


@pytest.mark.filterwarnings("ignore::vkssim.errors.DepthWarning")  # of dark pictures
@pytest.mark.parametrize("bits", DEPTHS)
def test_vmaf_of_hard_clips(bits: int) -> None:
    """Clips whose frames have nothing in common, and clips that pan: the models and the motion that they use."""
    width, height = 320, 180
    models = {"vmaf": "vmaf_v0.6.1", "vmaf_neg": "vmaf_v0.6.1neg"}
    pairs = [hard_pair(kind, seed, (width, height), bits) for seed, kind in enumerate(KINDS)]
    panned = [[np.roll(plane, 2 * n, axis=1) for plane in (pairs[0].reference, pairs[0].distorted)] for n in range(5)]
    for clip in ([(pair.reference, pair.distorted) for pair in pairs], [(first, second) for first, second in panned]):
        features = [*(f"vmaf=model={model}:name={name}" for name, model in models.items()), "motion"]
        with Scorer(width, height, bits=bits, features=features, batch=3) as scorer:
            frames = [scores.metrics for scores in scorer.score(clip)]
        for scores, expected in zip(frames, libvmaf_models(clip, bits, models), strict=True):
            assert {name: scores[name] for name in expected} == pytest.approx(expected, abs=3e-6)


TERMS: Scores = {f"float_ms_ssim_{term}_scale{scale}": 0.5 for term in "lcs" for scale in range(5)}


@pytest.mark.parametrize(
    ("got", "expected", "agree"),
    [
        ({"float_ms_ssim": 0.5 + 0.9e-6}, {"float_ms_ssim": 0.5}, True),
        ({"float_ms_ssim": 0.5 + 1.1e-6}, {"float_ms_ssim": 0.5}, False),
        ({"float_ms_ssim": None}, {"float_ms_ssim": None}, True),
        ({"float_ms_ssim": None}, {"float_ms_ssim": 0.5}, False),
        ({"float_ms_ssim": 0.5}, {"float_ms_ssim": None}, False),
        ({"float_ms_ssim": 0.5}, {"float_ms_ssim": None, "float_ms_ssim_s_scale2": -2e-5}, False),
        ({"float_ms_ssim": 0.5}, {"float_ms_ssim": None, "float_ms_ssim_s_scale2": -9e-6}, True),
        ({"float_ms_ssim": 0.5 + 1.1e-6}, {"float_ms_ssim": 0.5, "float_ms_ssim_s_scale2": 9e-5}, True),
        ({"float_ms_ssim": 0.5 + 1e-4}, {"float_ms_ssim": 0.5, "float_ms_ssim_s_scale2": 9e-5}, False),
        ({"float_ms_ssim": 0.5 + 1e-4}, {"float_ms_ssim": 0.5, "float_ms_ssim_s_scale2": 0.0}, True),
        ({"float_ms_ssim": 0.5, "float_ms_ssim_s_scale2": 0.5 + 1.1e-6}, {"float_ms_ssim": 0.5}, False),
    ],
)
def test_what_agrees(got: Scores, expected: Scores, agree: bool) -> None:
    right = TERMS | expected
    assert all(it.is_allowed for it in compare("", right | got, right)) == agree
