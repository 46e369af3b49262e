"""Scores two video files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace

from .distributed.pair import score_pair
from .errors import VkssimError
from .features.plane_metrics import feature_texts
from .frames.options import PictureOptions, RawDescription, Selection
from .report.results import ScoreReport
from .report.thresholds import parse_demand, parse_pooled
from .scoring.options import Clips, ScoreOptions, Selector
from .scoring.run_settings import OnFrames, Progress, RunSettings
from .scoring.run_store import RunStore, open_store


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
    resume: str | os.PathLike[str] | None = None,
    journal: RunStore | None = None,
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
    resume
        A path beside which scores are kept until the run is done, in ``PATH.journal``, of several devices also in
        ``PATH.parts``. Where a run of the same was cut off, this one goes on with what that one left there, also with more
        devices or with fewer, and `ScoreReport.resumed` counts its frames. Raises OptionError where those are of another run.
    journal
        Deprecated, for `resume`.

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
    clips = Clips(os.fspath(reference), os.fspath(distorted), raw)
    options = ScoreOptions(feature_texts(features), planes, selection, sync, pictures, strict, backend)
    settings = RunSettings(profile, progress, on_frames, demands, journal)
    if journal is not None:
        warnings.warn("journal= of score_files is deprecated; resume=PATH does the same", DeprecationWarning, stacklevel=2)
    if resume is None:
        return score_pair(clips, options, device, settings)
    with open_store(resume, clips, options, resume=True, tell=lambda _text: None) as store:
        try:
            report = score_pair(clips, options, device, replace(settings, store=store))
        except VkssimError as error:
            store.settle([error])
            raise
        store.settle([])
        return report
