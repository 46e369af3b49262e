"""Scores as frame properties: on the stand-in, and on VapourSynth itself if it is installed."""

from __future__ import annotations

import gc
import re
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import vkssim
import vkssim.vapoursynth
from vkssim.errors import ColourWarning, FrameError

from .support import vapoursynth_stand_in as stand_in
from .support.pictures import Picture, clip, distort, quantise, texture

pytestmark = pytest.mark.usefixtures("shared_device")


def real_clip(name: str, luma: Picture, **props: int) -> Any:
    import vapoursynth

    def fill(n: int, f: Any) -> Any:
        filled = f.copy()
        np.copyto(np.asarray(filled[0]), luma[n])
        return filled

    height, width = luma.shape[1:]
    blank = vapoursynth.core.std.BlankClip(
        format=getattr(vapoursynth, name), width=width, height=height, length=len(luma), keep=True
    )
    filled = blank.std.ModifyFrame(clips=blank, selector=fill)
    return filled.std.SetFrameProps(**props) if props else filled


MakeClip = Callable[..., Any]
LUMA = clip(6, 40, 48)
DISTORTED = np.roll(LUMA, 1, axis=2)
TINY: dict[str, Any] = {"backend": "cpu", "features": "float_ssim=scale=1"}


@pytest.fixture(params=[stand_in.clip_of, *([real_clip] if find_spec("vapoursynth") else [])])
def make_clip(request: pytest.FixtureRequest) -> MakeClip:
    make: MakeClip = request.param
    return make


def expected(reference: Picture, distorted: Picture, **samples: Any) -> list[float]:
    with vkssim.Scorer(48, 40, **samples, **TINY) as scorer:
        return [scores.metrics["float_ssim"] for scores in scorer.score(zip(reference, distorted, strict=True))]


def test_both_metrics_on_the_device(make_clip: MakeClip) -> None:
    reference, distorted = (np.stack([quantise(picture, 8)]) for picture in (texture(176, 192), distort(texture(176, 192))))
    marked = vkssim.vapoursynth.ssim(make_clip("YUV420P8", reference), make_clip("YUV420P8", distorted))
    props = marked.get_frame(0).props
    assert props["float_ms_ssim"] == vkssim.ms_ssim(reference[0], distorted[0])
    assert props["float_ssim"] == vkssim.ssim(reference[0], distorted[0])
    assert 0 < props["float_ssim"] < 1


@pytest.mark.parametrize(("form", "bits"), [("GRAY8", 8), ("YUV420P8", 8), ("YUV420P10", 10), ("GRAY16", 16)])
def test_integers(make_clip: MakeClip, form: str, bits: int) -> None:
    reference = clip(3, 40, 48, bits)
    distorted = np.roll(reference, 1, axis=2)
    marked = vkssim.vapoursynth.ssim(make_clip(form, reference), make_clip(form, distorted), **TINY)
    assert [marked.get_frame(n).props["float_ssim"] for n in range(3)] == expected(reference, distorted, bits=bits)


def test_floats(make_clip: MakeClip) -> None:
    """Luma from 0 to 1 scores as the same luma in 8 bits."""
    reference, distorted = ((samples / np.float32(255)).astype(np.float32) for samples in (LUMA, DISTORTED))
    marked = vkssim.vapoursynth.ssim(make_clip("GRAYS", reference), make_clip("GRAYS", distorted), **TINY)
    assert marked.get_frame(0).props["float_ssim"] == pytest.approx(expected(LUMA, DISTORTED, bits=8)[0], abs=1e-6)


def test_any_order_from_many_threads(make_clip: MakeClip) -> None:
    """Each frame has its own scores, whoever asks first."""
    marked = vkssim.vapoursynth.ssim(make_clip("GRAY8", LUMA), make_clip("GRAY8", DISTORTED), **TINY)
    wanted = [5, 0, 3, 3, 1, 4, 2, 5, 0, 2]
    start = threading.Barrier(4)

    def ask(numbers: list[int]) -> list[float]:
        start.wait()
        return [marked.get_frame(number).props["float_ssim"] for number in numbers]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, [wanted] * 4))
    scores = expected(LUMA, DISTORTED, bits=8)
    assert len(set(scores)) == len(scores)
    assert found == [[scores[number] for number in wanted]] * 4


def test_the_frame_keeps_its_picture_and_its_properties(make_clip: MakeClip) -> None:
    first = vkssim.vapoursynth.ssim(make_clip("GRAY8", LUMA), make_clip("GRAY8", DISTORTED), **TINY)
    again = vkssim.vapoursynth.ssim(
        make_clip("GRAY8", LUMA), first, backend="cpu", features="float_ssim=scale=1:enable_lcs=true"
    )
    frame = again.get_frame(2)
    np.testing.assert_array_equal(np.asarray(frame[0]), DISTORTED[2])
    assert {"float_ssim", "float_ssim_l", "float_ssim_c", "float_ssim_s"} <= set(frame.props)


@pytest.mark.parametrize(
    ("form", "first", "second", "words"),
    [
        ("YUV420P8", {"_Range": 1}, {"_Range": 0}, "the reference clip states full range, the distorted clip limited"),
        ("YUV420P8", {"_Range": 1}, {}, "the reference clip states full range, the distorted clip none"),
        ("YUV420P8", {"_ColorRange": 0}, {"_Range": 0}, "the reference clip states full range, the distorted clip limited"),
        ("YUV420P8", {"_ColorRange": 0}, {"_Range": 1}, None),
        ("YUV420P8", {"_ColorRange": 1}, {}, None),
        ("YUV420P8", {"_Matrix": 1}, {"_Matrix": 9}, "the reference clip states BT.709 matrix, the distorted clip BT.2020"),
        ("GRAY8", {"_Matrix": 1}, {"_Matrix": 5}, "the reference clip states BT.709 matrix, the distorted clip BT.601"),
        ("YUV420P8", {"_Matrix": 5}, {"_Matrix": 6}, None),
        ("YUV420P8", {"_Matrix": 1}, {"_Matrix": 2}, None),
        ("YUV420P8", {"_Transfer": 16}, {"_Transfer": 1}, "the reference clip states PQ transfer, the distorted clip BT.709"),
        ("GRAYS", {"_Range": 1}, {"_Range": 0}, None),  # white of floats is 1
    ],
)
def test_properties_that_differ_in_meaning(
    make_clip: MakeClip, form: str, first: dict[str, int], second: dict[str, int], words: str | None
) -> None:
    """One warning for all frames, as files get it; the samples are scored as they are."""
    luma = (LUMA / np.float32(255)).astype(np.float32) if form == "GRAYS" else LUMA
    marked = vkssim.vapoursynth.ssim(make_clip(form, luma, **first), make_clip(form, luma, **second), **TINY)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = {marked.get_frame(n).props["float_ssim"] for n in range(3)}
    assert scores == {1.0}
    assert [entry.category for entry in caught] == [ColourWarning] * (words is not None)
    assert words is None or re.match(re.escape(words), str(caught[0].message))


def test_the_device_is_let_go_with_the_clip(make_clip: MakeClip, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Watched(vkssim.Scorer):
        def close(self) -> None:
            closed.append(self)
            super().close()

    monkeypatch.setattr(vkssim.vapoursynth, "Scorer", Watched)
    marked = vkssim.vapoursynth.ssim(make_clip("GRAY8", LUMA), make_clip("GRAY8", DISTORTED), **TINY)
    marked.get_frame(0)
    assert not closed
    del marked
    gc.collect()
    assert len(closed) == 1


@pytest.mark.parametrize(
    ("reference", "distorted", "message"),
    [
        (("GRAY8", LUMA), ("GRAY8", LUMA[:3]), "48x40 Gray8 with 6 frames, the distorted clip is 48x40 Gray8 with 3 frames"),
        (("GRAY8", LUMA), ("GRAY8", LUMA[:, :32]), "same size, format and length"),
        (("GRAY8", LUMA), ("YUV420P8", LUMA), "same size, format and length"),
        (("RGB24", LUMA), ("RGB24", LUMA), "the clips are RGB24; the formats must be Gray or YUV"),
        (("GRAYH", LUMA), ("GRAYH", LUMA), "32-bit floats"),
        (("GRAY8", LUMA[:, :8, :8]), ("GRAY8", LUMA[:, :8, :8]), "11x11 at least"),
    ],
)
def test_refused_when_the_filter_is_made(
    make_clip: MakeClip, reference: tuple[str, Picture], distorted: tuple[str, Picture], message: str
) -> None:
    with pytest.raises(FrameError, match=message):
        vkssim.vapoursynth.ssim(make_clip(*reference), make_clip(*distorted), **TINY)


@pytest.mark.parametrize("feature", ["vmaf", "motion=motion_five_frame_window=true:motion_moving_average=true"])
@pytest.mark.parametrize("frames", [1, 2, 6])
def test_metrics_that_compare_frames_in_any_order(make_clip: MakeClip, frames: int, feature: str) -> None:
    luma, distorted = (clip[:frames] for clip in (LUMA, DISTORTED))
    marked = vkssim.vapoursynth.ssim(make_clip("GRAY8", luma), make_clip("GRAY8", distorted), features=feature, backend="cpu")
    with vkssim.Scorer(48, 40, bits=8, features=feature, backend="cpu") as scorer:
        name = scorer.names[-1]
        scores = [scores.metrics[name] for scores in scorer.score(zip(luma, distorted, strict=True))]
    found = {n: marked.get_frame(n).props[name] for n in (0, frames - 1, frames // 2, *range(frames))}
    assert [found[n] for n in range(frames)] == scores


def test_a_clip_that_changes_is_refused(make_clip: MakeClip) -> None:
    changing = make_clip("GRAY8", LUMA)
    if make_clip is real_clip:
        import vapoursynth

        changing = vapoursynth.core.std.Splice([changing, make_clip("GRAY16", clip(1, 20, 48, 16))], mismatch=True)
    else:
        changing.width = changing.height = 0
    with pytest.raises(FrameError, match="changes its size or format"):
        vkssim.vapoursynth.ssim(make_clip("GRAY8", LUMA), changing, **TINY)
