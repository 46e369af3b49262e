"""Fuzz texts of options other than features: thresholds, positions, rectangles, sizes, selections of frames, precision."""

from __future__ import annotations

from collections.abc import Callable

from vkssim import PictureOptions, ScoreReport, Selection
from vkssim.frames.info import VideoInfo
from vkssim.frames.picture.steps import Crop
from vkssim.ladder.compare import DropLimit
from vkssim.maps.frames import choose_frames
from vkssim.report.numbers import NumberFormat
from vkssim.report.results import BackendInfo, FrameScores
from vkssim.report.thresholds import check_names, parse_threshold, unmet

from .harness import Choices, refusals

NAME = "float_ssim"
REPORT = ScoreReport("a", "b", 64, 48, 8, (NAME,), BackendInfo("cpu", "", ""), [FrameScores(i, {NAME: 0.9}) for i in range(9)])
INFO = VideoInfo("clip", "raw", 64, 48, 8)


def _fail_under(text: str) -> None:
    threshold = parse_threshold(text)
    check_names([threshold], REPORT.names, ())
    unmet([threshold], REPORT)


def _crop(text: str) -> None:
    if PictureOptions(crop=text).crop != "auto":
        str(Crop.parse(text).info(INFO))


READERS: tuple[Callable[[str], object], ...] = (
    _fail_under,
    _crop,
    lambda text: Selection(start=text),
    lambda text: Selection(end=text),
    lambda text: PictureOptions(scale=text),
    lambda text: PictureOptions(resampler=text),
    lambda text: choose_frames(REPORT, text),
    lambda text: NumberFormat.parse(text).text(0.5, ""),
    lambda text: DropLimit.parse(text),
    lambda text: DropLimit.parse(text, frame=True),
)


def texts(data: bytes) -> None:
    """A text, read by one of its readers."""
    choices = Choices(data)
    reader = choices.pick(READERS)
    with refusals():
        reader(choices.text())
