"""Choose frames from a report, and return their SSIM maps and pictures, which show where two clips differ."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, OptionError
from ..frames.open import can_reopen
from ..frames.options import PictureOptions, RawDescription, Selection
from ..frames.pairing.preprocessing import common_format, open_pair
from ..frames.pairing.schedule import schedule_pairs
from ..frames.pixels import to_rgb
from ..frames.source import FrameSource, check_unchanged
from ..report.results import ScoreReport, metric_of_choice, worst_frames
from ..storage.atomic import write_file
from ..storage.location import is_url, redact_url
from ..types import FloatPlane, Planes
from ..utils.limits import check_option, integer, whole_number
from ..utils.version import require_extra
from ..utils.wording import counted
from .mapper import SsimMapper

Rgb = npt.NDArray[np.uint8]
"""(H, W, 3) uint8."""


@dataclass(frozen=True, eq=False)
class FramePictures:
    """The pictures of a pair of frames, and their SSIM map.

    `index` is as in `FrameScores`. `reference` and `distorted` are (H, W, 3) uint8, grey if there is no chroma. `ssim_map` is
    (H-10, W-10) float32, SSIM of every 11x11 window at full size, at most 1 and possibly negative. Its sample (y, x) belongs to
    the window centred on sample (y + 5, x + 5) of the pictures. With 8x8 windows the map is (H-7, W-7), and its sample (y, x)
    belongs to the window of samples (y, x) to (y + 7, x + 7).
    """

    index: int
    reference: Rgb
    distorted: Rgb
    ssim_map: FloatPlane


def frame_pictures(
    reference: str | os.PathLike[str],
    distorted: str | os.PathLike[str],
    indices: Iterable[int],
    *,
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),  # noqa: B008 - frozen
    sync: str = "index",
    pictures: PictureOptions = PictureOptions(),  # noqa: B008 - frozen
    window: str = "gaussian11",
    backend: str = "vulkan",
    device: str | int | None = None,
) -> Iterator[FramePictures]:
    """Return pictures and SSIM maps of some pairs of frames, which are read anew, with one pair in memory at a time.

    Parameters
    ----------
    reference, distorted : str or path
        Files, as for `score_files`; standard input cannot be read again.
    indices : iterable of int
        Numbers of pairs as in `FrameScores.index`. They come in rising order, each once, whatever their order here.
    raw : RawDescription
        Size, pixel format and depth of raw files.
    selection : Selection
        The selection for the scores. Only its streams count, and its skips and its offset, which determine pair 0.
    sync : {"index", "pts"}
        The way in which frames were paired.
    pictures : PictureOptions
        The changes of the pictures.
    window : {"gaussian11", "uniform8"}
        The window of the maps, as the option of float_ssim.
    backend : {"vulkan", "cpu"}
        The backend that computes the maps. It is never replaced by the other one.
    device : str or int, optional
        Index, part of the name, or UUID of the Vulkan device.

    Returns
    -------
    iterator of FramePictures
        Both frames of each pair as pictures, and SSIM of every window.

    Raises
    ------
    OptionError
        A source is not a file that can be reopened, an index is negative, or the window is unknown.
    InputError
        A file cannot be read, the formats differ, the frames are smaller than the window, or a clip ends before a requested
        pair.
    DeviceError
        No device can be used.

    """
    paths = os.fspath(reference), os.fspath(distorted)
    check_can_reopen(paths)
    numbers = sorted({integer("a frame number", index) for index in indices})
    if numbers and numbers[0] < 0:
        raise OptionError(f"frame {numbers[0]} is impossible; frames count from 0")

    def read() -> Iterator[FramePictures]:
        with ExitStack() as stack:
            pair = open_pair(paths, raw, pictures, streams=selection.streams)
            sources = [stack.enter_context(source) for source in pair]
            frame = common_format(sources[0], sources[1])
            pairing = schedule_pairs(selection, sources[0], sources[1], sync).pairing
            mapper = SsimMapper(frame, {"scale": 1, "window": window}, backend=backend, device=device, batch=1)
            stack.enter_context(mapper)
            for index in numbers:
                first_pair = pairing.pair_of(index)
                pairs = range(first_pair, first_pair + 1)
                if list(pairing.indices(pairs)) != [index]:
                    raise InputError(f"a map of frame {index} is impossible: no pair of frames has this number")
                first, second = _read(sources[0], *pairing.reference(pairs)), _read(sources[1], *pairing.distorted(pairs))
                _, (ssim_map,) = mapper.run(first[0][None], second[0][None])
                yield FramePictures(index, to_rgb(first, sources[0].info), to_rgb(second, sources[1].info), ssim_map)
            for source in sources:
                check_unchanged(source)

    return read()


def scored_pictures(
    report: ScoreReport,
    indices: Iterable[int],
    *,
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    backend: str = "vulkan",
    device: str | int | None = None,
    urls: bool = False,
) -> Iterator[FramePictures]:
    """Return `frame_pictures` of the clips that a report names, read as they were when it was made.

    Its window is the first that the report names, otherwise the Gaussian. Raises OptionError for a clip at a URL unless `urls`
    is True: otherwise the author of the report would choose the servers.
    """
    named = next(filter(is_url, (report.reference, report.distorted)), None)
    if named is not None and not urls:
        raise OptionError(f"the report names the URL {redact_url(named)}; `urls` allows connections to the URLs of a report")
    features = () if report.scoring is None else report.scoring.features
    windows = (str(feature.options["window"]) for feature in features if "window" in feature.options)
    return frame_pictures(
        report.reference,
        report.distorted,
        indices,
        raw=raw,
        selection=report.selection,
        sync=report.sync,
        pictures=report.pictures,
        window=next(windows, "gaussian11"),
        backend=backend,
        device=device,
    )


def check_can_reopen(paths: Iterable[str]) -> None:
    """Raise OptionError if a path is no file: a pipe has already been read when the frames are chosen."""
    for path in paths:
        if not can_reopen(path):
            name = "standard input" if path == "-" else path
            raise OptionError(f"maps need files that can be read a second time; {name} cannot. Give the file itself")


def _read(source: FrameSource, number: int) -> Planes:
    """Return the planes of a frame, including chroma if there is any."""
    planes = source.info.new_planes()
    if source.read([number], [planes]) == 0:
        raise source.problem or InputError(f"a map of frame {number} is impossible: {source.info.path} has no such frame")
    return planes


def parse_choice(how: str) -> tuple[str, tuple[int, ...]]:
    """Return ``"worst"``, ``"every"`` or ``""``, and the numbers of `worst:N`, `every:N` or a list such as `3,17,40`.

    Raises OptionError for anything else.
    """
    check_option("a choice of frames", how)
    kind, colon, rest = how.strip().partition(":")
    words = [rest] if colon else kind.split(",")
    numbers = tuple(number for number in map(whole_number, words) if number is not None)
    if len(numbers) == len(words):
        if not colon:
            return "", numbers
        if numbers[0] > 0 and kind in ("worst", "every"):
            return kind, numbers
    raise OptionError(
        f"{how!r} chooses no frames; worst:5 (the five lowest scores), every:10 (each tenth scored frame) or numbers"
        " such as 3,17,40 do"
    )


def choose_frames(report: ScoreReport, how: str) -> list[int]:
    """Return numbers of some of the frames of a report.

    Parameters
    ----------
    report : ScoreReport
        The frames and their scores.
    how : str
        ``"worst:N"`` chooses the N frames with the lowest float_ms_ssim, otherwise float_ssim, otherwise the first score of the
        report. A frame without a score is worse than all others, and of equal frames the earlier one is chosen.
        ``"every:N"`` chooses each N-th scored frame, and ``"3,17,40"`` the frames with these numbers.

    Returns
    -------
    list of int
        The numbers, rising.

    Raises
    ------
    OptionError
        `how` is none of these, names a frame that was not scored, or requests the worst frames of a report without scores.

    """
    kind, numbers = parse_choice(how)
    scored = [frame.index for frame in report.frames]
    if kind == "worst" and not report.names:
        raise OptionError(f"{how!r} chooses frames by their scores; the report has none")
    if kind == "every":
        return scored[:: numbers[0]]
    if kind == "worst":
        return sorted(frame.index for frame in worst_frames(report, metric_of_choice(report), numbers[0]))
    missing = sorted(set(numbers) - set(scored))
    if missing:
        there = f"{counted(len(scored), 'frame')} from {scored[0]} to {scored[-1]}" if scored else "none"
        raise OptionError(f"frame {', '.join(map(str, missing))} was not scored; {there} were")
    return sorted(set(numbers))


def colour(ssim_map: FloatPlane) -> Rgb:
    """Return a map as a picture in matplotlib's colours viridis.

    Parameters
    ----------
    ssim_map : (H', W') array of float32
        SSIM of every window.

    Returns
    -------
    (H', W', 3) array of uint8
        Dark violet at 0 to yellow at 1, always, so that pictures compare. A negative value looks like 0, and NaN is black.

    Raises
    ------
    OptionError
        Matplotlib is not installed.

    """
    viridis = picture_library("matplotlib").colormaps["viridis"]
    painted: Rgb = viridis(np.clip(ssim_map, 0, 1), bytes=True)[..., :3]
    return np.ascontiguousarray(painted)


def png(path: str | os.PathLike[str] | None, picture: Rgb) -> bytes:
    """Return a picture as PNG, and write it to a file if there is a path.

    Parameters
    ----------
    path : str, path or None
        The file; None writes none.
    picture : (H, W, 3) array of uint8
        The picture.

    Returns
    -------
    bytes
        The PNG.

    Raises
    ------
    OptionError
        Pillow is not installed.
    OutputError
        The file cannot be written.

    """
    memory = io.BytesIO()
    picture_library("PIL.Image").fromarray(picture).save(memory, "PNG")
    data = memory.getvalue()
    if path is not None:
        write_file(data, Path(path))
    return data


def check_pictures() -> None:
    """Raise OptionError if the packages for `colour` and `png` are not installed."""
    picture_library("matplotlib")
    picture_library("PIL.Image")


def picture_library(module: str) -> Any:
    """Import a module that draws pictures of maps. Raises OptionError if it is not installed."""
    return require_extra(module, "report", "a picture of a map")
