"""Scores two video files: reads both ahead of the device, batch after batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, cast

from .backends.open import open_backend
from .distributed.devices import alone, chosen_devices
from .errors import DemandError
from .features.plane_metrics import feature_texts
from .frames.open import RawDescription, readable_again
from .frames.pictures import PictureOptions, open_pair
from .frames.selection import Selection
from .report.frame_scores import FrameScores
from .report.results import ScoreReport
from .report.thresholds import parse_demand, parse_pooled
from .scoring.inputs import check_inputs
from .scoring.options import ScoreOptions, Selector
from .scoring.recovery import Engines, score_on
from .scoring.run import OnFrames, Progress
from .scoring.session import score_sources, stopped_error
from .utils.thread_pool import close_at_end
from .utils.wording import counted

if TYPE_CHECKING:
    from .distributed.kept import KeptParts
    from .scoring.frame_journal import FrameJournal


def score_files(
    reference: str | os.PathLike[str],
    distorted: str | os.PathLike[str],
    *,
    features: Sequence[str] | str = ("float_ms_ssim", "float_ssim"),
    planes: str = "y",
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),  # noqa: B008 - frozen
    sync: str = "index",
    pictures: PictureOptions = PictureOptions(),  # noqa: B008 - frozen
    strict: bool = False,
    backend: str = "vulkan",
    device: Selector = None,
    profile: bool = False,
    progress: Progress | None = None,
    on_frames: OnFrames | None = None,
    fail_under: Sequence[str] = (),
    pooled: Sequence[str] = (),
    done: Sequence[FrameScores] = (),
    journal: FrameJournal | KeptParts | None = None,
) -> ScoreReport:
    """Score a distorted clip against its reference, frame by frame.

    Parameters
    ----------
    reference, distorted
        Files: raw YUV, Y4M, or what FFmpeg reads, pictures and their sequences (``frame_%04d.png``) among them; ``-`` for raw
        or Y4M on standard input, one of the two. Also by URL, ``s3://``, ``gs://``, ``https://`` or ``file://`` (extra
        `remote`), but for sequences.
    features
        Metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``.
    planes
        ``"y"``, the luma; ``"yuv"``, all three planes; ``"all"``, also their mean weighted by area. See `Scorer`.
    raw
        Size, pixel format and depth of raw files.
    selection
        Which frames are compared.
    sync
        ``"index"`` pairs frames by their number, ``"pts"`` by the time at which they are shown.
    pictures
        Whether they are scaled or cropped first.
    strict
        Raise DemandError where one file is shorter than the other, where frames have no partner or are not shown together, and
        where frame rates differ; otherwise the report has a warning.
    backend, device
        Where to compute; see `Scorer`. Several devices, ``"all"`` or a list, score ranges of frames side by side, each in a
        process of its own, so that a script needs ``if __name__ == "__main__":``. The report is the same.
    profile
        Take the time of each stage, for `ScoreReport.stage_seconds`.
    progress
        Called after every batch.
    on_frames
        Called with each frame as soon as it is scored. Batches are of one frame then, and none waits for the next: scores come
        early, but fewer a second. Of several devices they come range by range.
    fail_under
        Raise DemandError where a pooled score is lower: ``"float_ms_ssim=0.98"`` for the mean, ``"float_ms_ssim:p5=0.95"`` for
        another pooled value (`vkssim.report.thresholds.POOLINGS`). One that does not exist counts as lower.
    pooled
        Pooled values that will be asked of the report, such as ``"float_ms_ssim:p5"``: raise OptionError before anything is
        scored where the report will have no such value.
    done
        The first frames' scores from an earlier run of the same, which was cut off: this one goes on behind them. The last of
        them is scored once more, so that something is read of what comes before. For one device.
    journal
        Keeps each batch as it is scored, and has the frames done in place of `done`; for several devices a `KeptParts`.

    Returns
    -------
    ScoreReport
        Scores of every pair of frames.

    Raises
    ------
    VkssimError
        See `vkssim.errors`. Where frames were scored before it went wrong its attribute `report` holds them.

    Notes
    -----
    A device that is lost on the way is opened again, once, and one that runs out of memory gets smaller batches: the files are
    opened again and scored from there on, which the report warns of. What comes from a pipe cannot be read again.

    """
    demands = [*map(parse_demand, fail_under), *map(parse_pooled, pooled)]
    paths = os.fspath(reference), os.fspath(distorted)
    check_inputs(*paths)
    devices = chosen_devices(backend, device)
    hinted = partial(_with_hint, paths, raw, selection, sync, pictures)
    if len(devices) > 1:
        from .distributed.pair import score_on_devices

        options = ScoreOptions(feature_texts(features), planes, selection, sync, pictures, strict)
        several = partial(score_on_devices, paths, raw, options, devices, profile, demands, progress, on_frames, done, journal)
        return hinted(several)
    one = cast("FrameJournal | None", journal)
    batch = None if on_frames is None else 1
    engines = Engines(partial(open_backend, backend, device=alone(devices, device), profile=profile), batch)

    def score(done: Sequence[FrameScores]) -> ScoreReport:
        with ExitStack() as stack:
            opened = open_pair(*paths, raw, pictures, chroma=planes != "y", streams=selection.streams)
            first, second = (close_at_end(stack, source) for source in opened)
            return score_sources(
                (first, second),
                paths,
                engines,
                features=features,
                planes=planes,
                raw=raw,
                selection=selection,
                sync=sync,
                pictures=pictures,
                strict=strict,
                profile=profile,
                progress=progress,
                on_frames=on_frames,
                demands=demands,
                done=done,
                journal=one,
            )

    return hinted(partial(score_on, score, engines, done, again=readable_again(paths)))


def _with_hint(
    paths: tuple[str, str],
    raw: RawDescription,
    selection: Selection,
    sync: str,
    pictures: PictureOptions,
    score: Callable[[], ScoreReport],
) -> ScoreReport:
    """Return the report of a run, with a warning where the clips scored low and seem to be shifted."""
    from .scoring.offset import add_hint

    outcome: ScoreReport | DemandError
    try:
        outcome = score()
    except DemandError as error:
        outcome = error
    try:
        add_hint(outcome, paths, raw, selection, sync, pictures)
    except KeyboardInterrupt as stop:
        report = outcome.report if isinstance(outcome, DemandError) else outcome
        frames = counted(len(report.frames), "frame")
        raise stopped_error(stop, f"stopped when all of {frames} had been scored; the scores are kept", report) from None
    if isinstance(outcome, DemandError):
        raise outcome
    return outcome
