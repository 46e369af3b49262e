"""Score VapourSynth clips, and attach the scores to their frames as properties."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .backends.failures import with_retries
from .errors import ColourWarning, FrameError
from .frames.info import VideoInfo
from .frames.pairing.preprocessing import colour_warnings
from .frames.pixels import MATRICES, TRANSFERS
from .report.results import FrameScores
from .scorer import Scorer
from .types import Samples
from .utils.wording import counted

if TYPE_CHECKING:
    from vapoursynth import VideoFrame, VideoNode

_RANGES = {"_Range": {0: "limited", 1: "full"}, "_ColorRange": {0: "full", 1: "limited"}}
"""The ranges by the property of a frame, and by the one that it has replaced."""


def ssim(
    reference: VideoNode,
    distorted: VideoNode,
    *,
    features: Sequence[str] | str = ("float_ms_ssim", "float_ssim"),
    backend: str = "vulkan",
    device: str | int | None = None,
) -> VideoNode:
    """Return the distorted clip, with the scores `float_ms_ssim` and `float_ssim` as properties of each frame.

    Frames are scored when they are requested, in any order and from any thread, one at a time. The samples are scored as they
    are. `vmaf` and `motion` look at the frames before and after, which are then requested and computed too: a frame takes three
    times as long. If the frames of a pair state different ranges, matrices or transfers in their properties, a ColourWarning
    says so, once per difference.

    Parameters
    ----------
    reference, distorted
        Clips of one constant format, size and length: Gray or YUV, integers of 8 to 16 bits or 32-bit floats (luma 0 to 1).
        Only the luma is scored.
    features
        Metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``; every score that they give becomes a property.
    backend, device
        The backend and the device; see `Scorer`. The clip has memory on the device as long as it exists.

    Returns
    -------
    VideoNode
        The distorted clip. A score that does not exist is NaN.

    Raises
    ------
    FrameError
        The clips differ, vary, or have samples or a size that cannot be scored.
    OptionError
        A feature, an option or a backend is unknown.
    DeviceError
        No device can be used.

    """
    _check_alike(reference, distorted)
    samples = _samples(distorted.format)

    def open_scorer() -> Scorer:
        return Scorer(distorted.width, distorted.height, **samples, features=features, backend=backend, device=device, batch=1)

    clip = _ScoredClip(open_scorer)
    clips = [distorted, reference]
    offsets = [*range(-clip.frames_before, 0), *range(1, clip.frames_after + 1)]
    clips += [_shifted(node, offset) for offset in offsets for node in (distorted, reference)]
    reported: set[str] = set()

    def select(n: int, f: Sequence[VideoFrame]) -> VideoFrame:
        """Score a frame; ModifyFrame calls this for each of them."""
        for text in colour_warnings(
            _stated("the reference clip", f[1], reference), _stated("the distorted clip", f[0], distorted)
        ):
            if text not in reported:
                reported.add(text)
                warnings.warn(text, ColourWarning, stacklevel=2)
        around = dict(zip(offsets, zip(f[3::2], f[2::2], strict=True), strict=True)) | {0: (f[1], f[0])}
        there = [offset for offset in sorted(around) if 0 <= n + offset < distorted.num_frames]
        pairs = [(np.asarray(first[0]), np.asarray(second[0])) for first, second in (around[offset] for offset in there)]
        scores = with_retries(lambda: clip.score(pairs))[there.index(0)]
        marked = f[0].copy()
        marked.props.update(scores.metrics)
        return marked

    weakref.finalize(select, clip.close)  # VapourSynth does not announce the end of a filter, but drops its function
    return distorted.std.ModifyFrame(clips=clips, selector=select)


class _ScoredClip:
    """The scorer of a clip, for one thread at a time. After a failure there is a new one: frames are requested again."""

    def __init__(self, open_scorer: Callable[[], Scorer]) -> None:
        self._open = open_scorer
        self._turn = threading.Lock()
        self._scorer: Scorer | None = open_scorer()
        self.frames_before, self.frames_after = self._scorer.frames_before, self._scorer.frames_after

    def score(self, pairs: Sequence[tuple[Samples, Samples]]) -> list[FrameScores]:
        """Return the scores of pairs of frames, as if they were a whole clip."""
        with self._turn:
            self._scorer = self._scorer or self._open()
            try:
                return [*(scores for pair in pairs for scores in self._scorer.feed(*pair)), *self._scorer.flush()]
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the scorer."""
        scorer, self._scorer = self._scorer, None
        if scorer is not None:
            scorer.close()


def _shifted(clip: VideoNode, offset: int) -> VideoNode:
    """Return a clip whose frame n is frame n + offset of a clip; beyond its ends it is the first or the last frame."""
    for _ in range(min(abs(offset), clip.num_frames - 1)):
        clip = clip[0] + clip[:-1] if offset < 0 else clip[1:] + clip[-1]
    return clip


def _check_alike(reference: VideoNode, distorted: VideoNode) -> None:
    described = {}
    for name, clip in (("reference", reference), ("distorted", distorted)):
        if not clip.width or clip.format.color_family.name == "UNDEFINED":
            raise FrameError(
                f"the {name} clip changes its size or format; resize.Bicubic(width=…, height=…, format=…) fixes them"
            )
        described[name] = f"{clip.width}x{clip.height} {clip.format.name} with {counted(clip.num_frames, 'frame')}"
    if described["reference"] != described["distorted"]:
        raise FrameError(
            f"the reference clip is {described['reference']}, the distorted clip is {described['distorted']}; they must"
            " have the same size, format and length. Convert or trim one of them first"
        )


def _samples(form: Any) -> dict[str, Any]:
    """Return the arguments of Scorer for the samples of a VideoFormat."""
    family, kind, bits = form.color_family.name, form.sample_type.name, form.bits_per_sample
    if family in ("GRAY", "YUV"):
        if kind == "INTEGER" and bits <= 16:
            return {"bits": bits}
        if kind == "FLOAT" and bits == 32:
            return {"dtype": np.float32, "data_range": 1.0}
    raise FrameError(
        f"the clips are {form.name}; the formats must be Gray or YUV, integers of 8 to 16 bits or 32-bit floats. Convert"
        " them, for instance with resize.Bicubic(format=vs.GRAY16, matrix_s='709')"
    )


def _stated(name: str, frame: VideoFrame, clip: VideoNode) -> VideoInfo:
    """Return the colours that a frame of a clip states. Floats have one range."""
    props, form = frame.props, clip.format
    stated: dict[str, Any] = {"matrix": MATRICES.get(props.get("_Matrix")), "transfer": TRANSFERS.get(props.get("_Transfer"))}
    if form.sample_type.name == "INTEGER":
        ranges = (values.get(props.get(prop)) for prop, values in _RANGES.items())
        stated["range"] = next((value for value in ranges if value is not None), None)
    return VideoInfo(name, "VapourSynth", clip.width, clip.height, form.bits_per_sample, **stated)
